#include "apps/perf/fabric_session.h"

#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace uet::perf {
namespace {

constexpr std::uint64_t kTurnsBetweenLooks = 256;
constexpr std::chrono::milliseconds kTellEvery{500};

void check(int rc, const char* call) {
  if (rc != 0) FabricSession::fail(call, rc);
}

}  // namespace

Info find_provider(const std::string& provider, bool ordered) {
  // With keys, SIGHUP has them read again, unless the environment names another signal.
  (void)setenv("FI_UET_KEYS_SIGNAL", "hup", 0);
  Info hints(fi_allocinfo());
  if (!hints) throw std::runtime_error("fi_allocinfo: out of memory");
  hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->tx_attr->msg_order = ordered ? FI_ORDER_SAS : FI_ORDER_NONE;
  hints->rx_attr->msg_order = hints->tx_attr->msg_order;
  hints->fabric_attr->prov_name = strdup(provider.c_str());
  fi_info* found = nullptr;
  const int rc = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found);
  if (rc == 0) return Info(found);
  const char* const only = std::getenv("FI_PROVIDER");
  const std::string hint =
      only != nullptr && provider.find(only) == std::string::npos
          ? fmt::format("FI_PROVIDER={} in the environment leaves out others", only)
          : "is it installed, or FI_PROVIDER_PATH set? fi_info lists what is there";
  throw std::runtime_error(
      fmt::format("provider {} offers no RDM endpoint with messages, tags and RMA ({}); {}",
                  provider, fi_strerror(-rc), hint));
}

void FabricSession::fail(const char* call, ssize_t rc) {
  throw std::runtime_error(std::string(call) + ": " + fi_strerror(static_cast<int>(-rc)));
}

FabricSession::FabricSession(ControlChannel& control, Patience& patience,
                             const std::string& provider, bool ordered, std::size_t buffer_bytes)
    : control_(control),
      patience_(patience),
      info_(find_provider(provider, ordered)),
      buffer_(buffer_bytes) {
  open_endpoint();
  register_memory();
  exchange_addresses();
}

void FabricSession::open_endpoint() {
  fid_fabric* fabric = nullptr;
  check(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
  fabric_.reset(fabric);
  fid_domain* domain = nullptr;
  check(fi_domain(fabric, info_.get(), &domain, nullptr), "fi_domain");
  domain_.reset(domain);
  fi_cq_attr cq_attr{};
  cq_attr.format = FI_CQ_FORMAT_MSG;
  cq_attr.size = 4096;
  fid_cq* cq = nullptr;
  check(fi_cq_open(domain, &cq_attr, &cq, nullptr), "fi_cq_open");
  cq_.reset(cq);
  fi_av_attr av_attr{};
  av_attr.type = FI_AV_MAP;
  fid_av* av = nullptr;
  check(fi_av_open(domain, &av_attr, &av, nullptr), "fi_av_open");
  av_.reset(av);
  fid_ep* ep = nullptr;
  check(fi_endpoint(domain, info_.get(), &ep, nullptr), "fi_endpoint");
  ep_.reset(ep);
  check(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind(av)");
  check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind(cq)");
  check(fi_enable(ep), "fi_enable");
}

void FabricSession::register_memory() {
  const std::uint64_t access =
      FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  fid_mr* mr = nullptr;
  check(fi_mr_reg(domain_.get(), buffer_.data(), buffer_.size(), access, 0, 1, 0, &mr, nullptr),
        "fi_mr_reg");
  mr_.reset(mr);
  descriptor_ = fi_mr_desc(mr);
}

void FabricSession::exchange_addresses() {
  std::vector<std::uint8_t> name(256);
  std::size_t length = name.size();
  check(fi_getname(&ep_->fid, name.data(), &length), "fi_getname");
  name.resize(length);
  const bool virtual_addresses = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0 ||
                                 info_->domain_attr->mr_mode == FI_MR_BASIC;
  const std::uint64_t base =
      virtual_addresses ? reinterpret_cast<std::uint64_t>(buffer_.data()) : 0;
  const nlohmann::json theirs = control_.exchange(
      {{"name", name}, {"address", base}, {"key", fi_mr_key(mr_.get())}}, "the peer's endpoint");
  try {
    const auto peer_name = theirs.at("name").get<std::vector<std::uint8_t>>();
    remote_address_ = theirs.at("address").get<std::uint64_t>();
    remote_key_ = theirs.at("key").get<std::uint64_t>();
    // An address of another length would be read beyond its end.
    if (peer_name.size() != name.size() ||
        fi_av_insert(av_.get(), peer_name.data(), 1, &peer_, 0, nullptr) != 1)
      throw std::runtime_error(
          "fi_av_insert: the peer's address was refused; is it of the same "
          "family (IPv4 or IPv6) as ours?");
  } catch (const nlohmann::json::exception&) {
    throw ControlLost("the two sides run different versions of uet-perf");
  }
}

std::size_t FabricSession::poll() {
  if (++turns_ % kTurnsBetweenLooks == 0) look_up();
  fi_cq_msg_entry entries[32];
  const ssize_t got = fi_cq_read(cq_.get(), entries, 32);
  if (got == -FI_EAGAIN) return 0;
  if (got == -FI_EAVAIL) throw_error_entry();
  if (got < 0) fail("fi_cq_read", got);
  something_finished_ = true;
  for (ssize_t i = 0; i < got; ++i)
    if ((entries[i].flags & FI_RECV) != 0 && entries[i].len != expected_length_)
      throw std::runtime_error(fmt::format("wrong length: a message of {} bytes arrived with {}",
                                           expected_length_, entries[i].len));
  return static_cast<std::size_t>(got);
}

void FabricSession::look_up() {
  if (something_finished_) {
    patience_.progressed();
    // Writes and reads finish on one side only; the other one waits for a mark.
    if (const auto now = Patience::Clock::now(); now - told_ > kTellEvery) {
      told_ = now;
      control_.send({{"alive", true}});
    }
  }
  something_finished_ = false;
  patience_.check(waiting_for_);
  control_.look();
}

void FabricSession::throw_error_entry() {
  fi_cq_err_entry error{};
  const ssize_t rc = fi_cq_readerr(cq_.get(), &error, 0);
  if (rc != 1) fail("fi_cq_readerr", rc);
  throw std::runtime_error(std::string("operation failed: ") + fi_strerror(error.err) + " (" +
                           fi_cq_strerror(cq_.get(), error.prov_errno, error.err_data, nullptr, 0) +
                           ")");
}

void FabricSession::wait_for(std::uint64_t& finished, std::uint64_t count) {
  while (finished < count) finished += poll();
}

}  // namespace uet::perf
