#include "provider/hints.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <strings.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>

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

/// Of the other half: programs put the capabilities of the endpoint into both, and libfabric leaves out what one does not have.
constexpr std::uint64_t kOnlyTxCaps = kTxCaps & ~kRxCaps;
constexpr std::uint64_t kOnlyRxCaps = kRxCaps & ~kTxCaps;

bool is_subset(std::uint64_t asked, std::uint64_t of) {
  return (asked & ~of) == 0;
}

/// A name that is given must be ours.
bool names(const char* asked, const char* ours) {
  return asked == nullptr || std::strcmp(asked, ours) == 0;
}

/// What an application asks for, and the field of its hints that says so.
struct Demand {
  bool is_met;
  const char* field;
};

Unmet first_unmet(std::initializer_list<Demand> demands) {
  const auto at = std::ranges::find(demands, false, &Demand::is_met);
  return at != demands.end() ? at->field : nullptr;
}

Unmet unmet_of_fabric(const fi_fabric_attr* f) {
  if (f == nullptr) return nullptr;
  const bool names_us = f->prov_name == nullptr || strcasecmp(f->prov_name, "uet") == 0;
  return first_unmet(
      {{names(f->name, kFabricName), "fabric_attr->name"},
       {names_us, "fabric_attr->prov_name"},
       {f->fabric == nullptr || Fabric::is_ours(*f->fabric), "fabric_attr->fabric"}});
}

/// What is returned is never smaller than what was asked for.
std::size_t largest_key_size(const fi_domain_attr& d, std::uint32_t version, std::uint64_t caps,
                             const fep::Settings& settings) {
  if ((caps & (FI_RMA | FI_ATOMIC)) == 0) return 8;  // keys name nothing
  return mr_key_size(answer_mr_mode(d.mr_mode, version, caps, settings.mr_endpoint));
}

bool suits_auth_key(const std::uint8_t* key, std::size_t size) {
  return (size == 0 || size == sizeof(std::uint32_t)) && (key == nullptr || job_of(key, size));
}

/// In the open domain that the hints have.
bool registers_as(const fi_domain_attr& d, std::uint32_t version, std::uint64_t caps,
                  const fep::Settings& settings) {
  return Domain::is_ours(*d.domain) &&
         Domain::of(d.domain).registers_as(
             caps, answer_mr_mode(d.mr_mode, version, caps, settings.mr_endpoint));
}

Unmet unmet_of_domain(const fi_domain_attr* d, const fep::Settings& settings,
                      const std::string& domain_name, std::uint32_t version, std::uint64_t caps) {
  if (d == nullptr) return nullptr;
  const bool is_manual = settings.progress == fep::Progress::kManual;
  const auto suits = [&](fi_progress asked) { return !is_manual || asked != FI_PROGRESS_AUTO; };
  // Device memory is known by its registration, which programs promise that register what is a device's, or all that is local.
  const bool suits_device = (caps & FI_HMEM) == 0 || (d->mr_mode & (FI_MR_HMEM | FI_MR_LOCAL)) != 0;
  return first_unmet({
      {d->domain == nullptr || Domain::is_ours(*d->domain), "domain_attr->domain"},
      {d->domain == nullptr || registers_as(*d, version, caps, settings),
       "domain_attr->mr_mode (that of domain_attr->domain is another)"},
      {suits_device, "domain_attr->mr_mode (without FI_MR_HMEM or FI_MR_LOCAL)"},
      {suits(d->data_progress), "domain_attr->data_progress (FI_UET_PROGRESS is manual)"},
      {suits(d->control_progress), "domain_attr->control_progress (FI_UET_PROGRESS is manual)"},
      {suits_auth_key(d->auth_key, d->auth_key_size), "domain_attr->auth_key"},
      {d->domain != nullptr || names(d->name, domain_name.c_str()), "domain_attr->name"},
      {is_subset(d->caps, domain_caps()), "domain_attr->caps"},
      {d->av_type <= FI_AV_TABLE, "domain_attr->av_type"},
      {d->mr_key_size <= largest_key_size(*d, version, caps, settings), "domain_attr->mr_key_size"},
      {d->cq_data_size <= 8, "domain_attr->cq_data_size"},
      {d->cq_cnt <= 1024, "domain_attr->cq_cnt"},
      {d->ep_cnt <= 4094, "domain_attr->ep_cnt"},
      {d->cntr_cnt <= 1024, "domain_attr->cntr_cnt"},
      {d->tx_ctx_cnt <= 4094, "domain_attr->tx_ctx_cnt"},
      {d->rx_ctx_cnt <= 4094, "domain_attr->rx_ctx_cnt"},
      {d->max_ep_tx_ctx <= 1, "domain_attr->max_ep_tx_ctx"},
      {d->max_ep_rx_ctx <= 1, "domain_attr->max_ep_rx_ctx"},
      {d->max_ep_stx_ctx <= kSharedContexts, "domain_attr->max_ep_stx_ctx"},
      {d->max_ep_srx_ctx <= kSharedContexts, "domain_attr->max_ep_srx_ctx"},
      {d->mr_iov_limit <= kMrIovLimit, "domain_attr->mr_iov_limit"},
      {d->mr_cnt <= 65535, "domain_attr->mr_cnt"},
      {d->max_err_data == 0, "domain_attr->max_err_data"},
  });
}

/// An endpoint has one context of each kind, its own or a shared one.
bool suits_contexts(std::size_t count) {
  return count <= 1 || count == FI_SHARED_CONTEXT;
}

Unmet unmet_of_ep(const fi_ep_attr* e, const Offer& offer) {
  if (e == nullptr) return nullptr;
  return first_unmet({
      {suits_auth_key(e->auth_key, e->auth_key_size), "ep_attr->auth_key"},
      {e->type == FI_EP_UNSPEC || e->type == offer.type, "ep_attr->type"},
      {e->protocol == FI_PROTO_UNSPEC || e->protocol == kProtocol, "ep_attr->protocol"},
      {e->protocol_version <= 1, "ep_attr->protocol_version"},
      {e->max_msg_size <= offer.max_message, "ep_attr->max_msg_size"},
      {e->msg_prefix_size == 0, "ep_attr->msg_prefix_size"},
      {e->max_order_raw_size <= kMaxMessage, "ep_attr->max_order_raw_size"},
      {e->max_order_war_size <= kMaxMessage, "ep_attr->max_order_war_size"},
      {e->max_order_waw_size <= kMaxMessage, "ep_attr->max_order_waw_size"},
      {suits_contexts(e->tx_ctx_cnt), "ep_attr->tx_ctx_cnt"},
      {suits_contexts(e->rx_ctx_cnt), "ep_attr->rx_ctx_cnt"},
  });
}

Unmet unmet_of_tx(const fi_tx_attr* t, const fep::Settings& settings, std::uint64_t caps,
                  const Offer& offer) {
  if (t == nullptr) return nullptr;
  const std::size_t injected = std::min<std::size_t>(settings.inject_size, offer.max_message);
  return first_unmet({
      {is_subset(t->caps & ~kOnlyRxCaps, tx_caps(caps)), "tx_attr->caps"},
      {is_subset(t->op_flags, offer.tx_op_flags), "tx_attr->op_flags"},
      {is_subset(t->msg_order, offer.msg_orders), "tx_attr->msg_order"},
      {t->comp_order == 0, "tx_attr->comp_order"},
      {t->inject_size <= injected, "tx_attr->inject_size (FI_UET_INJECT_SIZE)"},
      {t->size <= settings.tx_size, "tx_attr->size (FI_UET_TX_SIZE)"},
      {t->iov_limit <= 16, "tx_attr->iov_limit"},
      {t->rma_iov_limit <= 1, "tx_attr->rma_iov_limit"},
  });
}

Unmet unmet_of_rx(const fi_rx_attr* r, const fep::Settings& settings, std::uint64_t caps,
                  const Offer& offer) {
  if (r == nullptr) return nullptr;
  return first_unmet({
      {is_subset(r->caps & ~kOnlyTxCaps, rx_caps(caps)), "rx_attr->caps"},
      {is_subset(r->op_flags, kRxOpFlags), "rx_attr->op_flags"},
      {is_subset(r->msg_order, offer.msg_orders), "rx_attr->msg_order"},
      {r->comp_order == 0, "rx_attr->comp_order"},
      {r->size <= settings.rx_size, "rx_attr->size (FI_UET_RX_SIZE)"},
      {r->iov_limit <= 16, "rx_attr->iov_limit"},
  });
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
  const int of_devices = !asked || (*asked & FI_MR_HMEM) != 0 ? FI_MR_HMEM : FI_MR_LOCAL;
  const int reported =
      (is_target ? kOfTargets | endpoint : 0) | ((caps & FI_HMEM) != 0 ? of_devices : 0);
  const bool is_old = FI_VERSION_LT(version, FI_VERSION(1, 5));
  if (!asked) return is_old && reported != 0 ? FI_MR_BASIC : reported;
  if ((*asked & FI_MR_BASIC) != 0) return FI_MR_BASIC;
  if ((*asked & FI_MR_SCALABLE) != 0) return FI_MR_SCALABLE;
  if (*asked == FI_MR_UNSPEC && is_old) return FI_MR_BASIC;
  return *asked & reported;
}

std::size_t mr_key_size(int mr_mode) {
  return (mr_mode & (FI_MR_PROV_KEY | FI_MR_BASIC)) != 0 ? 8 : 6;
}

Unmet unmet_of(const fi_info& hints, std::uint32_t version, const fep::Settings& settings,
               const std::string& domain_name, const Offer& offer) {
  if (!is_subset(hints.caps, offer.caps)) return "caps";
  const std::uint64_t caps = answer_caps(hints.caps, offer);
  const bool suits_format =
      hints.addr_format == FI_FORMAT_UNSPEC || hints.addr_format == kAddrFormat;
  const Unmet unmet = first_unmet({
      {suits_format, "addr_format"},
      {suits_address(hints.src_addr, hints.src_addrlen), "src_addr"},
      {suits_address(hints.dest_addr, hints.dest_addrlen), "dest_addr"},
  });
  if (unmet != nullptr) return unmet;
  if (const Unmet u = unmet_of_fabric(hints.fabric_attr)) return u;
  if (const Unmet u = unmet_of_domain(hints.domain_attr, settings, domain_name, version, caps))
    return u;
  if (const Unmet u = unmet_of_ep(hints.ep_attr, offer)) return u;
  if (const Unmet u = unmet_of_tx(hints.tx_attr, settings, caps, offer)) return u;
  return unmet_of_rx(hints.rx_attr, settings, caps, offer);
}

}  // namespace uet::provider
