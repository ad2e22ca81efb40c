#include "provider/getinfo.h"

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "provider/address.h"
#include "provider/fabric.h"
#include "provider/hints.h"
#include "provider/nic.h"
#include "provider/provider.h"
#include "provider/resolve.h"

namespace uet::provider {
namespace {

/// All 64 tag bits, as libfabric writes it; the constant is not in its public headers.
constexpr std::uint64_t kTagFormatGeneric = 0xaaaa'aaaa'aaaa'aaaa;

using Info = std::unique_ptr<fi_info, void (*)(fi_info*)>;

/// The picker of this process. Never destroyed: address locks last until the process ends.
struct SharedPicker {
  std::mutex mutex;
  PortPicker picker;
};
SharedPicker& shared_picker() {
  static auto* instance = new SharedPicker;
  return *instance;
}

/// libfabric frees everything with free().
void* copy_bytes(const void* from, std::size_t n) {
  void* to = std::malloc(n);
  if (to == nullptr) throw std::bad_alloc();
  std::memcpy(to, from, n);
  return to;
}
char* copy_text(const std::string& text) {
  return static_cast<char*>(copy_bytes(text.c_str(), text.size() + 1));
}

std::size_t or_ours(std::size_t asked, std::size_t ours) {
  return asked != 0 ? asked : ours;
}

// --- Attributes [libfabric 3.2]; hints were checked before, so a value that is given can be
// returned ------

void fill_tx(fi_tx_attr& out, const fi_tx_attr* asked, const fep::Settings& settings,
             bool has_hints, std::uint64_t caps) {
  const fi_tx_attr none{};
  const fi_tx_attr& a = asked != nullptr ? *asked : none;
  out.caps = a.caps != 0 ? a.caps : tx_caps(caps);
  out.op_flags = a.op_flags;
  out.msg_order = has_hints ? a.msg_order : kMsgOrders;
  out.inject_size = or_ours(a.inject_size, settings.inject_size);
  out.size = or_ours(a.size, settings.tx_size);
  out.iov_limit = or_ours(a.iov_limit, 16);
  out.rma_iov_limit = 1;
  out.tclass = a.tclass;
}

void fill_rx(fi_rx_attr& out, const fi_rx_attr* asked, const fep::Settings& settings,
             bool has_hints, std::uint64_t caps) {
  const fi_rx_attr none{};
  const fi_rx_attr& a = asked != nullptr ? *asked : none;
  out.caps = a.caps != 0 ? a.caps : rx_caps(caps);
  out.op_flags = a.op_flags;
  out.msg_order = has_hints ? a.msg_order : kMsgOrders;
  out.size = or_ours(a.size, settings.rx_size);
  out.iov_limit = or_ours(a.iov_limit, 16);
}

std::size_t order_size(std::size_t asked, std::uint64_t orders, std::uint64_t bits) {
  return (orders & bits) == 0 ? 0 : or_ours(asked, kMaxMessage);
}

void fill_ep(fi_ep_attr& out, const fi_ep_attr* asked, std::uint64_t orders) {
  const fi_ep_attr none{};
  const fi_ep_attr& a = asked != nullptr ? *asked : none;
  out.type = FI_EP_RDM;
  out.protocol = kProtocol;
  out.protocol_version = 1;
  out.max_msg_size = kMaxMessage;
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
  // Also values that our headers do not know. [libfabric 2.5-5]
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
  out.cntr_cnt = 1024;
  out.mr_iov_limit = kMrIovLimit;
  out.mr_cnt = 65535;
  out.caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
  out.auth_key_size = sizeof(std::uint32_t);
  if (a.auth_key != nullptr && a.auth_key_size != 0) {
    out.auth_key = static_cast<std::uint8_t*>(copy_bytes(a.auth_key, a.auth_key_size));
  }
  out.tclass = a.tclass;
}

Info make_info(std::uint32_t version, const fi_info* hints, const fep::Settings& settings,
               const std::string& domain_name) {
  Info info(fi_allocinfo(), fi_freeinfo);
  if (info == nullptr) throw std::bad_alloc();
  const bool has_hints = hints != nullptr;
  const fi_info none{};
  const fi_info& h = has_hints ? *hints : none;
  info->caps = answer_caps(h.caps);
  info->addr_format = kAddrFormat;
  fill_tx(*info->tx_attr, h.tx_attr, settings, has_hints, info->caps);
  fill_rx(*info->rx_attr, h.rx_attr, settings, has_hints, info->caps);
  fill_ep(*info->ep_attr, h.ep_attr, info->tx_attr->msg_order | info->rx_attr->msg_order);
  fill_domain(*info->domain_attr, h.domain_attr, version, settings, domain_name, info->caps);
  info->fabric_attr->name = copy_text(kFabricName);
  return info;
}

// --- Addresses [libfabric 3.1 step 5]

void set_address(void*& slot, std::size_t& length, const ses::Address& address) {
  const AddressBytes bytes = pack_address(address);
  slot = copy_bytes(bytes.data(), bytes.size());
  length = bytes.size();
}

/// What the caller says about both ends, before it is known which port that means.
struct Ends {
  std::optional<ses::Address> source;
  std::optional<ses::Address> destination;
};

std::optional<ses::Address> from_hint(const void* address, std::size_t length) {
  if (address == nullptr || length < kAddressBytes) return std::nullopt;
  return unpack_address({static_cast<const std::uint8_t*>(address), kAddressBytes});
}

/// False when node or service make no sense.
bool find_ends(const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
               const fep::Settings& settings, net::FabricAddress own, Ends& out) {
  if (hints != nullptr) {
    out.source = from_hint(hints->src_addr, hints->src_addrlen);
    out.destination = from_hint(hints->dest_addr, hints->dest_addrlen);
  }
  const bool is_source = (flags & FI_SOURCE) != 0;
  if (node == nullptr && (service == nullptr || !is_source)) return true;
  const std::string own_text = own.to_string();
  const auto address = resolve(node != nullptr ? node : own_text.c_str(), service, settings, own,
                               (flags & FI_NUMERICHOST) != 0);
  if (!address) return false;
  (is_source ? out.source : out.destination) = address;
  return true;
}

base::Result<PortChoice, std::string> find_own_port(const fep::Settings& settings) {
  SharedPicker& shared = shared_picker();
  const std::lock_guard guard(shared.mutex);
  return shared.picker.find_own(settings);
}

/// `is_hint`: the source address comes from the hints. One that we proposed ourselves is then as good
/// as none, because what we propose now may be another.
base::Result<PortChoice, std::string> find_port(const fep::Settings& settings, const Ends& ends,
                                                bool is_hint, const PortChoice& own) {
  if (!ends.source || ends.source->fabric_address == own.address) return own;
  SharedPicker& shared = shared_picker();
  const std::lock_guard guard(shared.mutex);
  const net::FabricAddress wanted = ends.source->fabric_address;
  if (is_hint && shared.picker.was_proposed(wanted)) return own;
  return shared.picker.find(settings, wanted);
}

/// An address of `at` that leaves the resource index open.
ses::Address any_endpoint(const fep::Settings& settings, net::FabricAddress at) {
  ses::Address a;
  a.fabric_address = at;
  a.pid_on_fep = static_cast<std::uint16_t>(settings.pid_on_fep);
  a.relative = settings.mode == fep::AddressMode::kRelative;
  a.has_initiator_id = false;
  return a;
}

/// Attributes without addresses: nothing is taken, nothing looked at.
int attributes_only(std::uint32_t version, const fi_info* hints, const fep::Settings& settings,
                    fi_info** out) {
  const std::string name =
      hints != nullptr && hints->domain_attr != nullptr && hints->domain_attr->name != nullptr
          ? hints->domain_attr->name
          : "uet";
  if (!name.starts_with("uet")) return -FI_ENODATA;
  if (hints != nullptr && !can_satisfy(*hints, version, settings, name)) return -FI_ENODATA;
  *out = make_info(version, hints, settings, name).release();
  return 0;
}

/// A program that only lists providers is not told about an address that is taken; one that configured
/// this provider is.
void explain(const std::string& why, const fep::Settings& settings) {
  is_configured(settings) ? tell_user(why) : log_warning(why);
}

}  // namespace

base::Result<PortChoice, std::string> take_port(const fep::Settings& settings,
                                                const fi_info& info) {
  SharedPicker& shared = shared_picker();
  const std::lock_guard guard(shared.mutex);
  if (info.src_addr == nullptr || info.src_addrlen < kAddressBytes) {
    return shared.picker.take_own(settings);
  }
  const auto source = from_hint(info.src_addr, info.src_addrlen);
  if (!source) return std::string("the source address is not an address of this provider");
  return shared.picker.take(settings, source->fabric_address);
}

void lock_ports() {
  shared_picker().mutex.lock();
}

void unlock_ports() {
  shared_picker().mutex.unlock();
}

void abandon_ports_in_child() {
  shared_picker().picker.abandon_in_child();
}

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** out) {
  if (is_forked_child()) return -FI_ENODATA;
  const auto settings = load_settings();
  if (!settings) {
    tell_user(settings.error());
    return -FI_ENODATA;
  }
  if ((flags & FI_PROV_ATTR_ONLY) != 0) return attributes_only(version, hints, *settings, out);
  // Before an address is taken: whatever does not depend on it.
  const bool names_domain =
      hints != nullptr && hints->domain_attr != nullptr && hints->domain_attr->name != nullptr;
  if (hints != nullptr &&
      !can_satisfy(*hints, version, *settings, names_domain ? hints->domain_attr->name : "")) {
    return -FI_ENODATA;
  }
  const auto own = find_own_port(*settings);
  if (!own) {
    explain(own.error(), *settings);
    return -FI_ENODATA;
  }
  Ends ends;
  if (!find_ends(node, service, flags, hints, *settings, own->address, ends)) return -FI_ENODATA;
  const auto choice = find_port(*settings, ends, node == nullptr, *own);
  if (!choice) {
    explain(choice.error(), *settings);
    return -FI_ENODATA;
  }
  if (names_domain && choice->domain_name() != hints->domain_attr->name) return -FI_ENODATA;

  Info info = make_info(version, hints, *settings, choice->domain_name());
  ses::Address source = ends.source.value_or(any_endpoint(*settings, choice->address));
  source.fabric_address = choice->address;
  set_address(info->src_addr, info->src_addrlen, source);
  if (ends.destination) set_address(info->dest_addr, info->dest_addrlen, *ends.destination);
  info->nic = make_nic(*choice);
  *out = info.release();
  return 0;
}

}  // namespace uet::provider
