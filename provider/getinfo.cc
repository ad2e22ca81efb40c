#include "provider/getinfo.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "provider/address.h"
#include "provider/attributes.h"
#include "provider/domain.h"
#include "provider/hints.h"
#include "provider/nic.h"
#include "provider/provider.h"
#include "provider/resolve.h"

namespace uet::provider {
namespace {

/// The picker of this process. Never destroyed: address locks last until the process ends.
struct SharedPicker {
  std::mutex mutex;
  PortPicker picker;
};
SharedPicker& shared_picker() {
  static auto* instance = new SharedPicker;
  return *instance;
}

// --- Addresses [FI 3.1 step 5]

void set_address(void*& slot, std::size_t& length, const ses::Address& address) {
  const AddressBytes bytes = pack_address(address);
  slot = copy_bytes(bytes.data(), bytes.size());
  length = bytes.size();
}

/// What the caller says about both ends, before it is known which port that means.
struct Ends {
  std::optional<ses::Address> source;
  std::optional<ses::Address> destination;
  bool is_hint = false;  ///< the source comes from the hints
  bool is_own = false;   ///< the source names an endpoint, and whatever port we choose
};

std::optional<ses::Address> from_hint(const void* address, std::size_t length) {
  if (address == nullptr || length < kAddressBytes) return std::nullopt;
  return unpack_address({static_cast<const std::uint8_t*>(address), kAddressBytes});
}

/// An open domain that the answer is to be restricted to.
Domain* hinted_domain(const fi_info* hints) {
  if (hints == nullptr || hints->domain_attr == nullptr || hints->domain_attr->domain == nullptr)
    return nullptr;
  return &Domain::of(hints->domain_attr->domain);
}

/// The hints, without the addresses that node and service take the place of.
fi_info without_replaced(const fi_info& hints, const char* node, const char* service,
                         std::uint64_t flags) {
  fi_info h = hints;
  const bool is_source = (flags & FI_SOURCE) != 0;
  if (is_source && (node != nullptr || service != nullptr)) h.src_addr = nullptr;
  if (!is_source && node != nullptr) h.dest_addr = nullptr;
  return h;
}

/// False when node or service make no sense.
bool find_ends(const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
               const fep::Settings& settings, net::FabricAddress own, Ends& out) {
  if (hints != nullptr) {
    out.source = from_hint(hints->src_addr, hints->src_addrlen);
    out.destination = from_hint(hints->dest_addr, hints->dest_addrlen);
  }
  const bool is_source = (flags & FI_SOURCE) != 0;
  out.is_hint = node == nullptr || !is_source;
  if (node == nullptr && (service == nullptr || !is_source)) return true;
  const std::string own_text = own.host().to_string();
  auto address = resolve(node != nullptr ? node : own_text.c_str(), service,
                         is_source ? End::kSource : End::kDestination, settings, own,
                         (flags & FI_NUMERICHOST) != 0);
  if (!address) return false;
  if (node == nullptr) address->fabric_address = own;
  (is_source ? out.source : out.destination) = address;
  out.is_own = is_source && node == nullptr;
  return true;
}

using Rails = std::vector<PortChoice>;

base::Result<Rails, std::string> find_rails(const fep::Settings& settings) {
  SharedPicker& shared = shared_picker();
  const std::lock_guard guard(shared.mutex);
  return shared.picker.find_rails(settings);
}

bool is_proposal(net::FabricAddress address) {
  SharedPicker& shared = shared_picker();
  const std::lock_guard guard(shared.mutex);
  return shared.picker.proposal(address) != nullptr;
}

/// The ports of the answer. A source address that the application names leaves one; if it comes from its hints and was proposed by us,
/// it may be gone, and what we propose now on its device is as good.
base::Result<Rails, std::string> choose_ports(const fep::Settings& settings, const Ends& ends,
                                              Rails rails) {
  if (!ends.source || ends.is_own) return rails;
  const net::FabricAddress wanted = ends.source->fabric_address;
  const auto at = std::ranges::find(rails, wanted, &PortChoice::address);
  if (at != rails.end()) return Rails{*at};
  SharedPicker& shared = shared_picker();
  const std::lock_guard guard(shared.mutex);
  const PortChoice* proposal = ends.is_hint ? shared.picker.proposal(wanted) : nullptr;
  if (proposal == nullptr) {
    auto found = shared.picker.find(settings, wanted);
    if (!found) return found.error();
    return Rails{std::move(found).value()};
  }
  const auto like = std::ranges::find(rails, proposal->device, &PortChoice::device);
  return Rails{like != rails.end() ? *like : rails.front()};
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
  for (const Offer& any : kOffers) {
    const Offer offer = under(settings, any, hints != nullptr ? hints->caps : 0);
    if (hints != nullptr && unmet_of(*hints, version, settings, name, offer) != nullptr) continue;
    *out = make_info(version, hints, settings, name, offer).release();
    return 0;
  }
  return -FI_ENODATA;
}

/// Of libfabric's core for a provider that stacks its own protocol on datagrams: ours are reliable without.
bool is_layered(std::uint64_t flags) {
  constexpr std::uint64_t kCoreOnly = std::uint64_t{1} << 59;  // not in the public headers
  return (flags & kCoreOnly) != 0;
}

/// What a call asks for, in libfabric's words.
struct Question {
  std::uint32_t version;
  std::uint64_t flags;
  const fi_info* hints;
  const fep::Settings& settings;

  std::uint64_t asked() const { return hints != nullptr ? hints->caps : 0; }
  bool suits(const Offer& offer, const std::string& domain_name) const {
    if (offer.type == FI_EP_DGRAM && is_layered(flags)) return false;
    return hints == nullptr || unmet_of(*hints, version, settings, domain_name, offer) == nullptr;
  }
  /// FI_LOG_LEVEL=info shows why a program is told that there is no data.
  void explain_refusal(const std::string& domain_name) const {
    for (const Offer& any : kOffers) {
      const Offer offer = under(settings, any, asked());
      const char* type = offer.type == FI_EP_RDM ? "FI_EP_RDM" : "FI_EP_DGRAM";
      const Unmet unmet =
          hints != nullptr ? unmet_of(*hints, version, settings, domain_name, offer) : nullptr;
      if (unmet != nullptr)
        log_info(std::string("hints that no endpoint of type ") + type + " meets: " + unmet);
    }
  }
};

Info make_entry(const Question& q, const Offer& offer, const PortChoice& choice, const Ends& ends) {
  Info info = make_info(q.version, q.hints, q.settings, choice.domain_name(), offer);
  ses::Address source = ends.source.value_or(any_endpoint(q.settings, choice.address));
  source.fabric_address = choice.address;
  set_address(info->src_addr, info->src_addrlen, source);
  if (Domain* const domain = hinted_domain(q.hints)) info->domain_attr->domain = domain;
  if (q.hints != nullptr && q.hints->fabric_attr != nullptr)
    info->fabric_attr->fabric = q.hints->fabric_attr->fabric;
  if (ends.destination) set_address(info->dest_addr, info->dest_addrlen, *ends.destination);
  info->nic = make_nic(choice);
  return info;
}

/// One entry for each type of endpoint and port that suits, in the order of kOffers.
fi_info* make_entries(const Question& q, const Rails& rails, const Ends& ends) {
  Info first(nullptr, fi_freeinfo);
  fi_info** end = nullptr;
  for (const Offer& any : kOffers) {
    const Offer offer = under(q.settings, any, q.asked());
    for (const PortChoice& choice : rails) {
      if (!q.suits(offer, choice.domain_name())) continue;
      Info entry = make_entry(q, offer, choice, ends);
      if (end == nullptr)
        first = std::move(entry);
      else
        *end = entry.release();
      end = end == nullptr ? &first->next : &(*end)->next;
    }
  }
  return first.release();
}

/// By its program, or by FI_PROVIDER.
bool is_asked_for_by_name(const fi_info* hints) {
  const std::string_view own = table().name;
  const fi_fabric_attr* const fabric = hints != nullptr ? hints->fabric_attr : nullptr;
  const char* const only = std::getenv("FI_PROVIDER");
  return (fabric != nullptr && fabric->prov_name != nullptr && fabric->prov_name == own) ||
         (only != nullptr && only == own);
}

/// A program that only lists providers is not told about an address that is taken; one that configured this provider, or asks for it by
/// its name, is.
void explain(const std::string& why, const fep::Settings& settings, const fi_info* hints) {
  is_configured(settings) || is_asked_for_by_name(hints) ? tell_user(why) : log_warning(why);
}

}  // namespace

base::Result<PortChoice, std::string> take_port(const fep::Settings& settings,
                                                const fi_info& info) {
  SharedPicker& shared = shared_picker();
  const std::lock_guard guard(shared.mutex);
  if (info.src_addr == nullptr || info.src_addrlen < kAddressBytes) {
    const char* const name = info.domain_attr != nullptr ? info.domain_attr->name : nullptr;
    return name != nullptr ? shared.picker.take_named(settings, name)
                           : shared.picker.take_own(settings);
  }
  const auto source = from_hint(info.src_addr, info.src_addrlen);
  if (!source) return std::string("the source address is not an address of this provider");
  return shared.picker.take(settings, source->fabric_address);
}

void lose_port(net::FabricAddress address) {
  SharedPicker& shared = shared_picker();
  const std::lock_guard guard(shared.mutex);
  shared.picker.lose(address);
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
             const fi_info* given_hints, fi_info** out) {
  if (is_forked_child()) return -FI_ENODATA;
  std::optional<fi_info> own_hints;
  if (given_hints != nullptr) own_hints = without_replaced(*given_hints, node, service, flags);
  const fi_info* const hints = own_hints ? &*own_hints : nullptr;
  const auto settings = load_settings();
  if (!settings) {
    tell_user(settings.error());
    return -FI_ENODATA;
  }
  if ((flags & FI_PROV_ATTR_ONLY) != 0) return attributes_only(version, hints, *settings, out);
  const Question question{version, flags, hints, *settings};
  // Before anything is looked at: what does not depend on the port.
  const bool names_domain =
      hints != nullptr && hints->domain_attr != nullptr && hints->domain_attr->name != nullptr;
  const std::string domain = names_domain ? hints->domain_attr->name : "";
  if (std::ranges::none_of(kOffers, [&](const Offer& offer) {
        return question.suits(under(*settings, offer, question.asked()), domain);
      })) {
    question.explain_refusal(domain);
    return -FI_ENODATA;
  }
  auto rails = find_rails(*settings);
  if (!rails) {
    explain(rails.error(), *settings, hints);
    return -FI_ENODATA;
  }
  Ends ends;
  Domain* const open = hinted_domain(hints);
  const net::FabricAddress own = open != nullptr ? open->fabric_address() : rails->front().address;
  if (!find_ends(node, service, flags, hints, *settings, own, ends)) {
    log_info(std::string("no address of this provider: node ") +
             (node != nullptr ? node : "(none)") + ", service " +
             (service != nullptr ? service : "(none)"));
    return -FI_ENODATA;
  }
  if (open != nullptr) {
    if (!ends.source) ends.source = any_endpoint(*settings, own);
    // A port that we proposed may have been exchanged for this one when the domain was opened.
    if (ends.is_hint && is_proposal(ends.source->fabric_address)) ends.source->fabric_address = own;
    ends.is_own = ends.is_hint = false;
    if (ends.source->fabric_address != own) {
      log_info("hints that name another source address than their domain has");
      return -FI_ENODATA;
    }
  }
  const auto ports = choose_ports(*settings, ends, std::move(rails).value());
  if (!ports) {
    explain(ports.error(), *settings, hints);
    return -FI_ENODATA;
  }
  *out = make_entries(question, *ports, ends);
  return *out != nullptr ? 0 : -FI_ENODATA;
}

}  // namespace uet::provider
