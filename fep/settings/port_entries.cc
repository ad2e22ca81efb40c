#include "fep/settings/port_entries.h"

#include <algorithm>

namespace uet::fep {

std::vector<PortEntry> port_entries(const Settings& settings) {
  const auto& ports = settings.ports;
  const auto& addresses = settings.addresses;
  const std::size_t count = ports.size() <= 1       ? std::max<std::size_t>(addresses.size(), 1)
                            : addresses.size() <= 1 ? ports.size()
                                                    : std::min(ports.size(), addresses.size());
  const auto entry = [](const std::vector<std::string>& list, std::size_t i) {
    return list.empty() ? std::string() : list.size() == 1 ? list[0] : list[i];
  };
  std::vector<PortEntry> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back({.spec = entry(ports, i), .address = entry(addresses, i)});
    if (out.back().spec.empty()) out.back().spec = "udp";
  }
  return out;
}

}  // namespace uet::fep
