#include "provider/hints.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <strings.h>

#include <algorithm>
#include <cstring>

#include "provider/address.h"
#include "provider/domain.h"
#include "provider/fabric.h"
#include "provider/shared_context.h"

namespace uet::provider {
namespace {

constexpr std::uint64_t kTxCaps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ |
                                  FI_WRITE | FI_FENCE | FI_TRIGGER | FI_HMEM;
constexpr std::uint64_t kRxCaps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV |
                                  FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV |
                                  FI_DIRECTED_RECV | FI_SOURCE | FI_RMA_EVENT | FI_TRIGGER |
                                  kTaggedMultiRecv | FI_HMEM;
constexpr std::uint64_t kDomainCaps = FI_LOCAL_COMM | FI_REMOTE_COMM;

bool is_subset(std::uint64_t asked, std::uint64_t of) {
  return (asked & ~of) == 0;
}

/// A name that is given must be ours.
bool names(const char* asked, const char* ours) {
  return asked == nullptr || std::strcmp(asked, ours) == 0;
}

bool suits_fabric(const fi_fabric_attr* f) {
  if (f == nullptr) return true;
  return names(f->name, kFabricName) &&
         (f->prov_name == nullptr || strcasecmp(f->prov_name, "uet") == 0);
}

/// What is returned is never smaller than what was asked for.
std::size_t largest_key_size(const fi_domain_attr& d, std::uint32_t version, std::uint64_t caps,
                             const fep::Settings& settings) {
  if ((caps & (FI_RMA | FI_ATOMIC)) == 0) return 8;  // keys name nothing
  return mr_key_size(answer_mr_mode(d.mr_mode, version, caps, settings.mr_endpoint));
}

bool suits_domain(const fi_domain_attr* d, const fep::Settings& settings,
                  const std::string& domain_name, std::uint32_t version, std::uint64_t caps) {
  if (d == nullptr) return true;
  // Device memory is known by its registration.
  if ((caps & FI_HMEM) != 0 && (d->mr_mode & FI_MR_HMEM) == 0) return false;
  const bool wants_auto =
      d->data_progress == FI_PROGRESS_AUTO || d->control_progress == FI_PROGRESS_AUTO;
  if (wants_auto && settings.progress == fep::Progress::kManual) return false;
  if (d->auth_key_size != 0 && d->auth_key_size != sizeof(std::uint32_t)) return false;
  if (d->auth_key != nullptr && !job_of(d->auth_key, d->auth_key_size)) return false;
  return names(d->name, domain_name.c_str()) && is_subset(d->caps, domain_caps()) &&
         d->av_type <= FI_AV_TABLE &&
         d->mr_key_size <= largest_key_size(*d, version, caps, settings) && d->cq_data_size <= 8 &&
         d->cq_cnt <= 1024 && d->ep_cnt <= 4094 && d->cntr_cnt <= 1024 && d->tx_ctx_cnt <= 4094 &&
         d->rx_ctx_cnt <= 4094 && d->max_ep_tx_ctx <= 1 && d->max_ep_rx_ctx <= 1 &&
         d->max_ep_stx_ctx <= kSharedContexts && d->max_ep_srx_ctx <= kSharedContexts &&
         d->mr_iov_limit <= kMrIovLimit && d->mr_cnt <= 65535 && d->max_err_data == 0;
}

/// An endpoint has one context of each kind, its own or a shared one.
bool suits_contexts(std::size_t count) {
  return count <= 1 || count == FI_SHARED_CONTEXT;
}

bool suits_ep(const fi_ep_attr* e, const Offer& offer) {
  if (e == nullptr) return true;
  if (e->auth_key != nullptr && !job_of(e->auth_key, e->auth_key_size)) return false;
  if (e->auth_key_size != 0 && e->auth_key_size != sizeof(std::uint32_t)) return false;
  return (e->type == FI_EP_UNSPEC || e->type == offer.type) &&
         (e->protocol == FI_PROTO_UNSPEC || e->protocol == kProtocol) && e->protocol_version <= 1 &&
         e->max_msg_size <= offer.max_message && e->msg_prefix_size == 0 &&
         e->max_order_raw_size <= kMaxMessage && e->max_order_war_size <= kMaxMessage &&
         e->max_order_waw_size <= kMaxMessage && suits_contexts(e->tx_ctx_cnt) &&
         suits_contexts(e->rx_ctx_cnt);
}

bool suits_tx(const fi_tx_attr* t, const fep::Settings& settings, std::uint64_t caps,
              const Offer& offer) {
  if (t == nullptr) return true;
  return is_subset(t->caps, tx_caps(caps)) && is_subset(t->op_flags, offer.tx_op_flags) &&
         is_subset(t->msg_order, offer.msg_orders) && t->comp_order == 0 &&
         t->inject_size <= std::min<std::size_t>(settings.inject_size, offer.max_message) &&
         t->size <= settings.tx_size && t->iov_limit <= 16 && t->rma_iov_limit <= 1;
}

bool suits_rx(const fi_rx_attr* r, const fep::Settings& settings, std::uint64_t caps,
              const Offer& offer) {
  if (r == nullptr) return true;
  return is_subset(r->caps, rx_caps(caps)) && is_subset(r->op_flags, kRxOpFlags) &&
         is_subset(r->msg_order, offer.msg_orders) && r->comp_order == 0 &&
         r->total_buffered_recv == 0 && r->size <= settings.rx_size && r->iov_limit <= 16;
}

/// An address that is given must be one of ours, whole.
bool suits_address(const void* address, std::size_t length) {
  if (address == nullptr) return true;
  return length >= kAddressBytes &&
         unpack_address({static_cast<const std::uint8_t*>(address), kAddressBytes}).has_value();
}

}  // namespace

std::uint64_t tx_caps(std::uint64_t caps) {
  return caps & kTxCaps;
}

std::uint64_t rx_caps(std::uint64_t caps) {
  return caps & kRxCaps;
}

std::uint64_t answer_caps(std::uint64_t asked, const Offer& offer) {
  if (asked == 0) return offer.caps & ~kOnlyOnRequest;
  constexpr std::uint64_t kMessage = FI_SEND | FI_RECV;
  constexpr std::uint64_t kMemory = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  std::uint64_t caps = asked | kDomainCaps;
  if ((asked & (FI_MSG | FI_TAGGED)) != 0 && (asked & kMessage) == 0) caps |= kMessage;
  if ((asked & (FI_RMA | FI_ATOMIC)) != 0 && (asked & kMemory) == 0) caps |= kMemory;
  return caps;
}

int answer_mr_mode(std::optional<int> asked, std::uint32_t version, std::uint64_t caps,
                   bool report_endpoint) {
  constexpr int kOfTargets = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  const int endpoint = report_endpoint ? FI_MR_ENDPOINT : 0;
  const bool is_target = (caps & (FI_RMA | FI_ATOMIC)) != 0;
  const int reported =
      (is_target ? kOfTargets | endpoint : 0) | ((caps & FI_HMEM) != 0 ? FI_MR_HMEM : 0);
  if (!asked) return reported;
  if ((*asked & FI_MR_BASIC) != 0) return FI_MR_BASIC;
  if ((*asked & FI_MR_SCALABLE) != 0) return FI_MR_SCALABLE;
  if (*asked == FI_MR_UNSPEC && FI_VERSION_LT(version, FI_VERSION(1, 5))) return FI_MR_BASIC;
  return *asked & reported;
}

std::size_t mr_key_size(int mr_mode) {
  return (mr_mode & (FI_MR_PROV_KEY | FI_MR_BASIC)) != 0 ? 8 : 6;
}

bool can_satisfy(const fi_info& hints, std::uint32_t version, const fep::Settings& settings,
                 const std::string& domain_name, const Offer& offer) {
  if (!is_subset(hints.caps, offer.caps)) return false;
  const std::uint64_t caps = answer_caps(hints.caps, offer);
  return (hints.addr_format == FI_FORMAT_UNSPEC || hints.addr_format == kAddrFormat) &&
         suits_address(hints.src_addr, hints.src_addrlen) &&
         suits_address(hints.dest_addr, hints.dest_addrlen) && suits_fabric(hints.fabric_attr) &&
         suits_domain(hints.domain_attr, settings, domain_name, version, caps) &&
         suits_ep(hints.ep_attr, offer) && suits_tx(hints.tx_attr, settings, caps, offer) &&
         suits_rx(hints.rx_attr, settings, caps, offer);
}

}  // namespace uet::provider
