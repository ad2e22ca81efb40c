#include "lib/udp/passing_addresses.h"

#include <linux/if_addr.h>

#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

namespace uet::udp {

namespace {

template <typename Number>
bool parse_hex(std::string_view text, Number& number) {
  const char* const last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, number, 16);
  return code == std::errc() && end == last;
}

/// 32 digits without colons.
std::optional<net::FabricAddress> parse_bare_address(std::string_view text) {
  std::array<std::uint8_t, 16> bytes;
  if (text.size() != 2 * bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (!parse_hex(text.substr(2 * i, 2), bytes[i])) return std::nullopt;
  return net::FabricAddress::from_v6(bytes);
}

}  // namespace

PassingAddresses PassingAddresses::read() {
  std::ifstream file("/proc/net/if_inet6");
  std::ostringstream text;
  text << file.rdbuf();
  return parse(text.str());
}

PassingAddresses PassingAddresses::parse(std::string_view text) {
  constexpr unsigned kPassing = IFA_F_TEMPORARY | IFA_F_DEPRECATED | IFA_F_TENTATIVE;
  PassingAddresses out;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string digits, index, prefix, scope, flag_digits, interface;
    unsigned flags = 0;
    if (!(fields >> digits >> index >> prefix >> scope >> flag_digits >> interface) ||
        !parse_hex(flag_digits, flags) || (flags & kPassing) == 0)
      continue;
    if (const auto address = parse_bare_address(digits)) out.all_.emplace(interface, *address);
  }
  return out;
}

AddressRank PassingAddresses::rank_of(const std::string& interface,
                                      const net::FabricAddress& address) const {
  if (address.is_v4()) return AddressRank::kV4;
  if (address.is_link_local()) return AddressRank::kLinkLocal;
  return all_.contains({interface, address}) ? AddressRank::kPassingV6 : AddressRank::kV6;
}

}  // namespace uet::udp
