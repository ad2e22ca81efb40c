#include "provider/resolve.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "provider/host_names.h"
#include "provider/port_candidates.h"
#include "provider/provider.h"

namespace uet::provider {
namespace {

/// The first of the family of `own`, or of the other one where it has none.
std::optional<net::FabricAddress> address_of_name(const char* name, net::FabricAddress own) {
  std::vector<net::FabricAddress> all = look_up(name);
  if (all.empty()) return std::nullopt;
  std::erase_if(all, [](const auto& address) { return address.is_link_local(); });
  if (all.empty()) {
    tell_user(std::string(name) +
              " is a link-local address, and the address of an endpoint does not say on which link "
              "it is; name another address of the host");
    return std::nullopt;
  }
  const auto at =
      std::ranges::find_if(all, [&](const auto& a) { return a.is_v4() == own.is_v4(); });
  return at != all.end() ? *at : all.front();
}

bool is_this_host(net::FabricAddress address) {
  static const auto kHost4 = net::FabricAddress::from_v4(0x7f00'0001);
  static const auto kHost6 = *net::FabricAddress::parse("::1");
  return address == kHost4 || address == kHost6;
}

}  // namespace

std::optional<ses::Address> resolve(const char* node, const char* service, End end,
                                    const fep::Settings& settings, net::FabricAddress own,
                                    bool numeric_only) {
  auto address = net::FabricAddress::parse(node);
  const bool is_name = !address;
  if (is_name && !numeric_only) address = address_of_name(node, own);
  if (!address) return std::nullopt;
  // Systems give their own name a loopback address of their choice: 127.0.1.1, 127.0.0.2.
  if (is_this_host(*address) || (is_name && address->is_loopback()))
    address = end == End::kSource ? own : first_on_host(settings, own);
  ses::Address out;
  out.fabric_address = *address;
  out.pid_on_fep = static_cast<std::uint16_t>(settings.pid_on_fep);
  out.relative = settings.mode == fep::AddressMode::kRelative;
  out.has_initiator_id = false;
  if (service == nullptr) return out;
  const auto parsed = parse_service(service, out.pid_on_fep);
  if (!parsed) return std::nullopt;
  out.pid_on_fep = parsed->pid_on_fep;
  out.resource_index = parsed->resource_index;
  out.initiator_id =
      parsed->initiator_id.value_or(default_initiator_id(out.pid_on_fep, out.resource_index));
  out.has_initiator_id = true;
  return out;
}

namespace {

net::FabricAddress counted_up(const net::FabricAddress& address, std::size_t n) {
  auto bytes = address.bytes();
  const std::size_t first = address.is_v4() ? 12 : 0;
  std::uint64_t carry = n;
  for (std::size_t i = bytes.size(); i-- > first && carry != 0; carry >>= 8) {
    carry += bytes[i];
    bytes[i] = static_cast<std::uint8_t>(carry);
  }
  return net::FabricAddress::from_v6(bytes);
}

}  // namespace

/// An address by its value, any other text by the number at its end.
std::string counted_up(const std::string& text, std::size_t n) {
  if (const auto address = net::FabricAddress::parse(text))
    return counted_up(*address, n).to_string();
  const auto last_other = text.find_last_not_of("0123456789");
  const std::size_t begin = last_other == std::string::npos ? 0 : last_other + 1;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return n == 0 ? text : text + std::to_string(n);
  }
  std::string digits = std::to_string(number + n);
  const std::size_t width = text.size() - begin;
  if (digits.size() < width) digits.insert(0, width - digits.size(), '0');
  return text.substr(0, begin) + digits;
}

}  // namespace uet::provider
