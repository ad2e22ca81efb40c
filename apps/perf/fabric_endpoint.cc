#include "apps/perf/fabric_endpoint.h"

#include <fmt/core.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "apps/perf/memory.h"

namespace uet::perf {
namespace {

constexpr std::uint64_t kTurnsBetweenLooks = 256;

void check(int rc, const char* call) {
  if (rc != 0) FabricEndpoint::fail(call, rc);
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

void FabricEndpoint::fail(const char* call, ssize_t rc) {
  throw std::runtime_error(std::string(call) + ": " + fi_strerror(static_cast<int>(-rc)));
}

FabricEndpoint::FabricEndpoint(Patience& patience, const std::string& provider, bool ordered,
                               std::size_t buffer_bytes, std::function<void(bool)> look)
    : patience_(patience),
      info_(find_provider(provider, ordered)),
      buffer_(make_buffer(buffer_bytes)),
      look_(std::move(look)) {
  open();
  register_memory();
}

void FabricEndpoint::open() {
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

void FabricEndpoint::register_memory() {
  const std::uint64_t access =
      FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  fid_mr* mr = nullptr;
  check(fi_mr_reg(domain_.get(), buffer_.data(), buffer_.size(), access, 0, 1, 0, &mr, nullptr),
        "fi_mr_reg");
  mr_.reset(mr);
  descriptor_ = fi_mr_desc(mr);
}

std::vector<std::uint8_t> FabricEndpoint::name() {
  std::vector<std::uint8_t> bytes(256);
  std::size_t length = bytes.size();
  check(fi_getname(&ep_->fid, bytes.data(), &length), "fi_getname");
  bytes.resize(length);
  return bytes;
}

fi_addr_t FabricEndpoint::add_peer(const std::vector<std::uint8_t>& peer_name) {
  fi_addr_t peer = FI_ADDR_UNSPEC;
  // An address of another length would be read beyond its end.
  if (peer_name.size() != name().size() ||
      fi_av_insert(av_.get(), peer_name.data(), 1, &peer, 0, nullptr) != 1)
    throw std::runtime_error(
        "fi_av_insert: the peer's address was refused; is it of the same family (IPv4 or IPv6) as "
        "ours?");
  return peer;
}

std::uint64_t FabricEndpoint::address_for_peers() const {
  const bool virtual_addresses = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0 ||
                                 info_->domain_attr->mr_mode == FI_MR_BASIC;
  return virtual_addresses ? reinterpret_cast<std::uint64_t>(buffer_.data()) : 0;
}

std::size_t FabricEndpoint::poll() {
  if (++turns_ % kTurnsBetweenLooks == 0) {
    if (something_finished_) patience_.progressed();
    look_(std::exchange(something_finished_, false));
    patience_.check(waiting_for_);
  }
  fi_cq_msg_entry entries[32];
  const ssize_t got = fi_cq_read(cq_.get(), entries, 32);
  if (got == -FI_EAGAIN) return 0;
  if (got == -FI_EAVAIL) throw_error_entry();
  if (got < 0) fail("fi_cq_read", got);
  something_finished_ = true;
  for (ssize_t i = 0; i < got; ++i) {
    auto* const operation = static_cast<Operation*>(entries[i].op_context);
    if (operation != nullptr) operation->is_done = true;
    const std::size_t expected = operation != nullptr ? operation->bytes : expected_length_;
    if ((entries[i].flags & FI_RECV) != 0 && entries[i].len != expected)
      throw std::runtime_error(fmt::format("wrong length: a message of {} bytes arrived with {}",
                                           expected, entries[i].len));
  }
  return static_cast<std::size_t>(got);
}

void FabricEndpoint::throw_error_entry() {
  fi_cq_err_entry error{};
  const ssize_t rc = fi_cq_readerr(cq_.get(), &error, 0);
  if (rc != 1) fail("fi_cq_readerr", rc);
  throw std::runtime_error(std::string("operation failed: ") + fi_strerror(error.err) + " (" +
                           fi_cq_strerror(cq_.get(), error.prov_errno, error.err_data, nullptr, 0) +
                           ")");
}

void FabricEndpoint::wait_for(std::uint64_t& finished, std::uint64_t count) {
  while (finished < count) finished += poll();
}

}  // namespace uet::perf
