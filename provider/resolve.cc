#include "provider/resolve.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <cstring>
#include <memory>

#include "provider/port_candidates.h"

namespace uet::provider {
namespace {

std::optional<net::FabricAddress> look_up(const char* name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name, nullptr, &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::optional<net::FabricAddress> v6_answer;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    if (a->ai_family == AF_INET) {
      sockaddr_in v4;
      std::memcpy(&v4, a->ai_addr, sizeof v4);
      return net::FabricAddress::from_v4(ntohl(v4.sin_addr.s_addr));
    }
    if (a->ai_family == AF_INET6 && !v6_answer) {
      sockaddr_in6 v6;
      std::memcpy(&v6, a->ai_addr, sizeof v6);
      std::array<std::uint8_t, 16> bytes;
      std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
      v6_answer = net::FabricAddress::from_v6(bytes);
    }
  }
  return v6_answer;
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
  if (!address && !numeric_only) address = look_up(node);
  if (!address) return std::nullopt;
  if (is_this_host(*address)) address = end == End::kSource ? own : first_on_host(settings, own);
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
