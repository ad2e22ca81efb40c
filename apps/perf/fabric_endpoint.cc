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
constexpr std::size_t kQueueSize = 4096;

/// Whether libfabric has it at all, whatever it can offer here and now.
bool is_installed(const std::string& provider) {
  const libfabric::Info hints = libfabric::make_hints();
  hints->fabric_attr->prov_name = strdup(provider.c_str());
  fi_info* found = nullptr;
  const int ret =
      fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, FI_PROV_ATTR_ONLY, hints.get(), &found);
  const libfabric::Info owned(found);
  return ret == 0;
}

}  // namespace

libfabric::Info find_provider(const std::string& provider, bool ordered) {
  // With keys, SIGHUP has them read again, unless the environment names another signal.
  const char* const keys = std::getenv("FI_UET_KEYS");
  if (keys != nullptr && *keys != '\0') (void)setenv("FI_UET_KEYS_SIGNAL", "hup", 0);
  const libfabric::Info hints = libfabric::make_hints();
  hints->caps = FI_MSG | FI_TAGGED | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  hints->tx_attr->msg_order = ordered ? FI_ORDER_SAS : FI_ORDER_NONE;
  hints->rx_attr->msg_order = hints->tx_attr->msg_order;
  hints->fabric_attr->prov_name = strdup(provider.c_str());
  libfabric::Offer offer = libfabric::get_info(FI_VERSION(1, 17), *hints);
  if (offer.error == 0) return std::move(offer.info);
  const char* const only = std::getenv("FI_PROVIDER");
  const std::string hint =
      only != nullptr && provider.find(only) == std::string::npos
          ? fmt::format("FI_PROVIDER={} in the environment leaves out others", only)
      : is_installed(provider)
          ? "it is installed, and FI_LOG_LEVEL=warn has it say why"
          : "is it installed, or FI_PROVIDER_PATH set? fi_info lists what is there";
  throw std::runtime_error(
      fmt::format("provider {} offers no RDM endpoint with messages, tags and RMA ({}); {}",
                  provider, fi_strerror(-offer.error), hint));
}

FabricEndpoint::FabricEndpoint(Patience& patience, const std::string& provider, bool ordered,
                               std::size_t buffer_bytes, std::function<void(bool)> look)
    : patience_(patience),
      info_(find_provider(provider, ordered)),
      buffer_(make_buffer(buffer_bytes)),
      endpoint_(*info_,
                {.av_type = FI_AV_MAP, .cq_format = FI_CQ_FORMAT_MSG, .cq_size = kQueueSize}),
      look_(std::move(look)) {
  constexpr std::uint64_t kAccess =
      FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  constexpr std::uint64_t kKey = 1;
  int error = 0;
  memory_ = endpoint_.add_memory(buffer_.data(), buffer_.size(), kAccess, kKey, 0, error);
  libfabric::check(error, "fi_mr_reg");
  descriptor_ = fi_mr_desc(memory_);
}

fi_addr_t FabricEndpoint::add_peer(const std::vector<std::uint8_t>& peer_name) {
  fi_addr_t peer = FI_ADDR_UNSPEC;
  // An address of another length would be read beyond its end.
  if (peer_name.size() != name().size() ||
      fi_av_insert(endpoint_.av.get(), peer_name.data(), 1, &peer, 0, nullptr) != 1)
    throw std::runtime_error(
        "fi_av_insert: the peer's address was refused; is it of the same family (IPv4 or IPv6) as "
        "ours?");
  return peer;
}

std::size_t FabricEndpoint::poll() {
  if (++turns_ % kTurnsBetweenLooks == 0) {
    if (something_finished_) patience_.progressed();
    look_(std::exchange(something_finished_, false));
    patience_.check(waiting_for_);
  }
  fi_cq_msg_entry entries[32];
  const ssize_t got = fi_cq_read(endpoint_.cq.get(), entries, 32);
  if (got == -FI_EAGAIN) return 0;
  if (got == -FI_EAVAIL) throw_error_entry();
  if (got < 0) libfabric::fail("fi_cq_read", got);
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
  const ssize_t rc = fi_cq_readerr(endpoint_.cq.get(), &error, 0);
  if (rc != 1) libfabric::fail("fi_cq_readerr", rc);
  throw std::runtime_error(
      std::string("operation failed: ") + fi_strerror(error.err) + " (" +
      fi_cq_strerror(endpoint_.cq.get(), error.prov_errno, error.err_data, nullptr, 0) + ")");
}

void FabricEndpoint::wait_for(std::uint64_t& finished, std::uint64_t count) {
  while (finished < count) finished += poll();
}

}  // namespace uet::perf
