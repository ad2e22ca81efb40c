#include "provider/attributes.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>

#include "provider/address.h"
#include "provider/domain.h"
#include "provider/fabric.h"
#include "provider/hints.h"
#include "provider/shared_context.h"

namespace uet::provider {
namespace {

/// All 64 tag bits, as libfabric writes it; the constant is not in its public headers.
constexpr std::uint64_t kTagFormatGeneric = 0xaaaa'aaaa'aaaa'aaaa;

char* copy_text(const std::string& text) {
  return static_cast<char*>(copy_bytes(text.c_str(), text.size() + 1));
}

std::size_t or_ours(std::size_t asked, std::size_t ours) {
  return asked != 0 ? asked : ours;
}

/// The level of completions that an application which names none is given.
std::uint64_t default_level(const fep::Settings& settings, std::uint64_t op_flags) {
  const bool is_named = (op_flags & kCompletionLevels) != 0;
  return !is_named && settings.completion == fep::CompletionLevel::kInject ? FI_INJECT_COMPLETE : 0;
}

void fill_tx(fi_tx_attr& out, const fi_tx_attr* asked, const fep::Settings& settings,
             bool has_hints, std::uint64_t caps, const Offer& offer) {
  const fi_tx_attr none{};
  const fi_tx_attr& a = asked != nullptr ? *asked : none;
  out.caps = or_ours(tx_caps(a.caps), tx_caps(caps));
  out.op_flags = a.op_flags | default_level(settings, a.op_flags);
  out.msg_order = has_hints ? a.msg_order : offer.msg_orders;
  out.inject_size =
      or_ours(a.inject_size, std::min<std::size_t>(settings.inject_size, offer.max_message));
  out.size = or_ours(a.size, settings.tx_size);
  out.iov_limit = or_ours(a.iov_limit, 16);
  out.rma_iov_limit = 1;
  out.tclass = a.tclass;
}

void fill_rx(fi_rx_attr& out, const fi_rx_attr* asked, const fep::Settings& settings,
             bool has_hints, std::uint64_t caps, const Offer& offer) {
  const fi_rx_attr none{};
  const fi_rx_attr& a = asked != nullptr ? *asked : none;
  out.caps = or_ours(rx_caps(a.caps), rx_caps(caps));
  out.op_flags = a.op_flags;
  out.msg_order = has_hints ? a.msg_order : offer.msg_orders;
  out.size = or_ours(a.size, settings.rx_size);
  out.iov_limit = or_ours(a.iov_limit, 16);
}

std::size_t order_size(std::size_t asked, std::uint64_t orders, std::uint64_t bits) {
  return (orders & bits) == 0 ? 0 : or_ours(asked, kMaxMessage);
}

void fill_ep(fi_ep_attr& out, const fi_ep_attr* asked, std::uint64_t orders, const Offer& offer) {
  const fi_ep_attr none{};
  const fi_ep_attr& a = asked != nullptr ? *asked : none;
  out.type = offer.type;
  out.protocol = kProtocol;
  out.protocol_version = 1;
  out.max_msg_size = offer.max_message;
  out.max_order_raw_size = order_size(a.max_order_raw_size, orders,
                                      FI_ORDER_RAW | FI_ORDER_RMA_RAW | FI_ORDER_ATOMIC_RAW);
  out.max_order_war_size = order_size(a.max_order_war_size, orders,
                                      FI_ORDER_WAR | FI_ORDER_RMA_WAR | FI_ORDER_ATOMIC_WAR);
  out.max_order_waw_size = order_size(a.max_order_waw_size, orders,
                                      FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_WAW);
  out.mem_tag_format = kTagFormatGeneric;
  out.tx_ctx_cnt = or_ours(a.tx_ctx_cnt, 1);
  out.rx_ctx_cnt = or_ours(a.rx_ctx_cnt, 1);
  if (a.auth_key != nullptr && a.auth_key_size != 0) {
    out.auth_key = static_cast<std::uint8_t*>(copy_bytes(a.auth_key, a.auth_key_size));
    out.auth_key_size = a.auth_key_size;
  }
}

void fill_domain(fi_domain_attr& out, const fi_domain_attr* asked, std::uint32_t version,
                 const fep::Settings& settings, const std::string& name, std::uint64_t caps) {
  const fi_domain_attr none{};
  const fi_domain_attr& a = asked != nullptr ? *asked : none;
  out.name = copy_text(name);
  out.threading = a.threading != FI_THREAD_UNSPEC ? a.threading : FI_THREAD_SAFE;
  // Also values that our headers do not know. [FI 2.5.5]
  out.control_progress =
      a.control_progress != FI_PROGRESS_UNSPEC ? a.control_progress : FI_PROGRESS_MANUAL;
  out.data_progress = a.data_progress != FI_PROGRESS_UNSPEC ? a.data_progress : FI_PROGRESS_MANUAL;
  out.resource_mgmt = FI_RM_ENABLED;
  out.av_type = a.av_type != FI_AV_UNSPEC ? a.av_type : FI_AV_TABLE;
  out.mr_mode = answer_mr_mode(asked != nullptr ? std::optional(a.mr_mode) : std::nullopt, version,
                               caps, settings.mr_endpoint);
  out.mr_key_size = mr_key_size(out.mr_mode);
  out.cq_data_size = 8;
  out.cq_cnt = 1024;
  out.ep_cnt = 4094;
  out.tx_ctx_cnt = or_ours(a.tx_ctx_cnt, 1);
  out.rx_ctx_cnt = or_ours(a.rx_ctx_cnt, 1);
  out.max_ep_tx_ctx = 1;
  out.max_ep_rx_ctx = 1;
  out.max_ep_stx_ctx = kSharedContexts;
  out.max_ep_srx_ctx = kSharedContexts;
  out.cntr_cnt = 1024;
  out.mr_iov_limit = kMrIovLimit;
  out.mr_cnt = 65535;
  out.caps = domain_caps();
  out.auth_key_size = sizeof(std::uint32_t);
  if (a.auth_key != nullptr && a.auth_key_size != 0) {
    out.auth_key = static_cast<std::uint8_t*>(copy_bytes(a.auth_key, a.auth_key_size));
  }
  out.tclass = a.tclass;
}

}  // namespace

void* copy_bytes(const void* from, std::size_t n) {
  void* to = std::malloc(n);
  if (to == nullptr) throw std::bad_alloc();
  std::memcpy(to, from, n);
  return to;
}

Info make_info(std::uint32_t version, const fi_info* hints, const fep::Settings& settings,
               const std::string& domain_name, const Offer& offer) {
  Info info(fi_allocinfo(), fi_freeinfo);
  if (info == nullptr) throw std::bad_alloc();
  const bool has_hints = hints != nullptr;
  const fi_info none{};
  const fi_info& h = has_hints ? *hints : none;
  info->caps = answer_caps(h.caps, offer);
  info->addr_format = kAddrFormat;
  fill_tx(*info->tx_attr, h.tx_attr, settings, has_hints, info->caps, offer);
  fill_rx(*info->rx_attr, h.rx_attr, settings, has_hints, info->caps, offer);
  fill_ep(*info->ep_attr, h.ep_attr, info->tx_attr->msg_order | info->rx_attr->msg_order, offer);
  fill_domain(*info->domain_attr, h.domain_attr, version, settings, domain_name, info->caps);
  info->fabric_attr->name = copy_text(kFabricName);
  return info;
}

}  // namespace uet::provider
