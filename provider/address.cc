#include "provider/address.h"

#include <charconv>

namespace uet::provider {
namespace {

std::optional<std::uint64_t> parse_decimal(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<ServiceAddress> parse_service(std::string_view service, std::uint16_t default_pid) {
  const auto colon = service.find(':');
  if (colon == std::string_view::npos) {
    const auto n = parse_decimal(service);
    if (!n) return std::nullopt;
    return ServiceAddress{.pid_on_fep = default_pid,
                          .resource_index = static_cast<std::uint16_t>(1 + *n % 4094),
                          .initiator_id = std::nullopt};
  }
  std::string_view rest = service.substr(colon + 1);
  const auto second = rest.find(':');
  const auto pid = parse_decimal(service.substr(0, colon));
  const auto ri = parse_decimal(rest.substr(0, second));
  if (!pid || !ri || *pid > 0xfff || *ri == 0 || *ri > 0xfff) return std::nullopt;
  ServiceAddress out{.pid_on_fep = static_cast<std::uint16_t>(*pid),
                     .resource_index = static_cast<std::uint16_t>(*ri),
                     .initiator_id = std::nullopt};
  if (second != std::string_view::npos) {
    const auto initiator = parse_decimal(rest.substr(second + 1));
    if (!initiator || *initiator > 0xffff'ffff) return std::nullopt;
    out.initiator_id = static_cast<std::uint32_t>(*initiator);
  }
  return out;
}

}  // namespace uet::provider
