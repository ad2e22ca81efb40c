#include "provider/port_candidates.h"

#include <algorithm>
#include <cstdlib>

#include "fep/settings/port_entries.h"
#include "lib/net/port_name.h"
#include "lib/net/shared_ports.h"
#include "lib/udp/local_addresses.h"
#include "provider/provider.h"

namespace uet::provider {
namespace {

/// `text` with every %r replaced by the rank of this process on its host.
std::string with_local_rank(std::string text) {
  static constexpr const char* kNames[] = {
      "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK",
      "PALS_LOCAL_RANKID",          "PMI_LOCAL_RANK",  "SLURM_LOCALID",
      "FLUX_TASK_LOCAL_ID",         "LOCAL_RANK"};
  if (text.find("%r") == std::string::npos) return text;
  std::string rank;
  for (const char* name : kNames) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
      rank = value;
      break;
    }
  }
  if (rank.empty()) {
    log_warning("no launcher says the local rank of this process: %r in \"" + text + "\" is 0");
    rank = "0";
  }
  for (std::size_t at = 0; (at = text.find("%r", at)) != std::string::npos; at += rank.size()) {
    text.replace(at, 2, rank);
  }
  return text;
}

/// All planes of an entry are of one kind.
bool is_udp(const std::string& spec) {
  return net::is_udp_port(net::planes_of(spec).front());
}

/// "udp:eth0,sockets=4" -> "eth0"; empty when the spec names no place. Of several planes the first.
std::string udp_place(const std::string& spec) {
  const std::string first = net::planes_of(spec).front();
  if (!first.starts_with("udp:")) return "";
  return first.substr(4, first.find(',') - 4);
}

/// "dpdk:net_memif0,role=server" -> "net_memif0"; of several planes the first.
std::string dpdk_device(const std::string& spec) {
  const std::string first = net::planes_of(spec).front();
  const auto begin = first.find(':') + 1;
  return first.substr(begin, first.find(',', begin) - begin);
}

const Interface* first_up(const std::vector<Interface>& all) {
  const auto at = std::ranges::find_if(
      all, [](const Interface& i) { return i.is_up && !i.is_loopback && i.primary(); });
  return at == all.end() ? nullptr : &*at;
}

const Interface* by_name(const std::vector<Interface>& all, const std::string& name) {
  const auto at = std::ranges::find(all, name, &Interface::name);
  return at == all.end() ? nullptr : &*at;
}

PortChoice udp_choice(const Interface& interface, net::FabricAddress address, std::string spec) {
  return PortChoice{
      .spec = std::move(spec), .address = address, .device = interface.name, .facts = interface};
}

/// Lets `choice` tell what all its planes have together. Nothing, or what is wrong with one of them.
std::string add_planes(const std::vector<Interface>& interfaces, PortChoice& choice) {
  const auto planes = net::planes_of(choice.spec);
  if (planes.size() == 1) return {};
  Interface& sum = choice.facts;
  for (std::size_t i = 0; i < planes.size(); ++i) {
    const std::string name = udp_place(planes[i]);
    const Interface* plane = by_name(interfaces, name);
    if (plane == nullptr) return "FI_UET_PORT: there is no network interface " + name;
    if (i == 0) {
      sum = *plane;
      choice.device = name;
      continue;
    }
    sum.mtu = std::min(sum.mtu, plane->mtu);
    sum.is_up = sum.is_up || plane->is_up;
    const bool is_known = sum.bits_per_second != 0 && plane->bits_per_second != 0;
    sum.bits_per_second = is_known ? sum.bits_per_second + plane->bits_per_second : 0;
  }
  return {};
}

PortChoice dpdk_choice(std::string spec, net::FabricAddress address) {
  PortChoice out{.spec = spec, .address = address, .device = dpdk_device(spec), .facts = {}};
  out.facts.name = out.device;
  out.facts.is_up = true;
  out.facts.driver = "dpdk";
  out.facts.pci = parse_pci_address(out.device);
  return out;
}

base::Result<PortChoice, std::string> with_planes(const std::vector<Interface>& interfaces,
                                                  PortChoice choice) {
  std::string wrong = add_planes(interfaces, choice);
  if (!wrong.empty()) return wrong;
  return choice;
}

/// The interface that has `address`, `name` where several do. Null: none has.
const Interface* holder_of(const std::vector<Interface>& all, net::FabricAddress address,
                           const std::string& name) {
  const Interface* named = by_name(all, name);
  const bool has_it =
      named != nullptr && std::ranges::find(named->addresses, address) != named->addresses.end();
  return has_it ? named : find_interface(all, address);
}

/// Address of a udp entry: FI_UET_ADDR, what stands behind "udp:", FI_UET_IFNAME, or the first
/// interface that is up.
base::Result<PortChoice, std::string> resolve_udp(const fep::Settings& settings,
                                                  const std::vector<Interface>& interfaces,
                                                  const std::string& spec,
                                                  const std::string& address_text) {
  const std::string place = udp_place(spec);
  const bool names_address = net::FabricAddress::parse(place).has_value();
  const std::string& wanted = !address_text.empty() ? address_text : place;
  const std::string& name = names_address || place.empty() ? settings.ifname : place;
  const std::string variable = name == place ? "FI_UET_PORT" : "FI_UET_IFNAME";
  if (const auto address = net::FabricAddress::parse(wanted)) {
    const Interface* i = holder_of(interfaces, *address, name);
    // A port has the MTU and the name of the interface at its address. Planes share one address.
    const bool is_one = net::planes_of(spec).size() == 1;
    if (i != nullptr && is_one && !name.empty() && i->name != name)
      return variable + ": " + wanted + " is an address of the interface " + i->name +
             ", and not of " + name + "; leave one out";
    if (i != nullptr) return with_planes(interfaces, udp_choice(*i, *address, spec));
    if (address->is_link_local())
      return wanted +
             " is a link-local address, which does not say on which link a peer is; take another "
             "of the interface";
    return "no interface of this host has the address " + wanted +
           "; add it (ip addr add ...) or change " +
           (address_text.empty() ? "FI_UET_PORT" : "FI_UET_ADDR");
  }
  if (!address_text.empty()) return "FI_UET_ADDR: \"" + wanted + "\" is not an address";
  const Interface* i = name.empty() ? first_up(interfaces) : by_name(interfaces, name);
  if (i == nullptr) {
    return name.empty() ? std::string("no network interface is up")
                        : variable + ": there is no network interface " + name;
  }
  if (!i->primary()) return variable + ": the interface " + i->name + " has no IP address";
  return with_planes(interfaces, udp_choice(*i, *i->primary(), spec));
}

/// Or errno.
using Listed = base::Result<std::vector<Interface>, int>;

base::Result<PortChoice, std::string> resolve(const fep::Settings& settings,
                                              const Listed& interfaces, const std::string& spec,
                                              const std::string& address) {
  if (is_udp(spec) && !interfaces) return udp::why_not_listed(interfaces.error());
  if (is_udp(spec)) return resolve_udp(settings, *interfaces, spec, address);
  const auto parsed = net::FabricAddress::parse(address);
  if (!parsed) {
    return address.empty() ? "the port " + spec + " needs an address: set FI_UET_ADDR"
                           : "FI_UET_ADDR: \"" + address + "\" is not an address";
  }
  return dpdk_choice(spec, *parsed);
}

/// The addresses in `out` once more, for each process behind the first, which has the port of UET. Not where the user gives each process
/// an address, and not for secured endpoints: these are told apart by their IPv4 address. [decision 168]
void add_shared(const fep::Settings& settings, std::vector<PortChoice>& out) {
  if (!settings.keys.empty() || !settings.addresses.empty()) return;
  const std::vector<PortChoice> first = out;
  for (std::uint16_t i = 0; i < net::kSharedPorts; ++i)
    for (const PortChoice& choice : first) {
      const bool is_shareable =
          choice.is_one_udp_port() && choice.address.is_v4() && !choice.address.is_loopback();
      if (!is_shareable) continue;
      out.push_back(choice);
      out.back().address = choice.address.with_udp_port(net::kFirstSharedPort + i);
    }
}

/// Entries that cannot be used are left out; `why` collects the reasons.
std::vector<PortChoice> configured(const fep::Settings& settings, const Listed& interfaces,
                                   std::string& why) {
  std::vector<PortChoice> out;
  for (const fep::PortEntry& entry : fep::port_entries(settings)) {
    auto choice =
        resolve(settings, interfaces, with_local_rank(entry.spec), with_local_rank(entry.address));
    if (choice) {
      out.push_back(std::move(choice).value());
      continue;
    }
    const std::string wrong = settings.with_origins(choice.error());
    if (why.find(wrong) == std::string::npos) why += (why.empty() ? "" : "; ") + wrong;
  }
  add_shared(settings, out);
  return out;
}

/// Where nothing is configured: the first interface that is up, then loopback addresses.
std::vector<PortChoice> unconfigured(const fep::Settings& settings,
                                     const std::vector<Interface>& interfaces) {
  std::vector<PortChoice> out;
  const std::string& spec = settings.ports[0];
  const Interface* primary = first_up(interfaces);
  if (primary != nullptr) out.push_back(udp_choice(*primary, *primary->primary(), spec));
  add_shared(settings, out);
  const auto lo = std::ranges::find_if(interfaces, &Interface::is_loopback);
  if (lo == interfaces.end() || !lo->is_up) return out;
  for (std::uint32_t last = 2; last < 255; ++last) {
    const auto address = net::FabricAddress::from_v4(0x7f00'0000 + last);
    out.push_back(udp_choice(*lo, address, spec));
  }
  return out;
}

}  // namespace

bool PortChoice::is_one_udp_port() const {
  return is_udp(spec) && net::planes_of(spec).size() == 1;
}

bool is_configured(const fep::Settings& settings) {
  const bool plain_udp = settings.ports.size() == 1 && is_udp(settings.ports[0]) &&
                         udp_place(settings.ports[0]).empty();
  return !plain_udp || !settings.addresses.empty() || !settings.ifname.empty();
}

Candidates own_ports(const fep::Settings& settings) {
  Candidates out;
  const auto interfaces = list_interfaces();
  if (is_configured(settings)) {
    out.ports = configured(settings, interfaces, out.why_none);
  } else if (!interfaces) {
    out.why_none = udp::why_not_listed(interfaces.error());
  } else {
    out.ports = unconfigured(settings, *interfaces);
    if (out.ports.empty())
      out.why_none = "no network interface is up, not even lo: ip link set lo up";
  }
  return out;
}

Candidates ports_at(const fep::Settings& settings, net::FabricAddress address) {
  const Listed interfaces = list_interfaces();
  Candidates out;
  std::string ignored;
  if (is_configured(settings)) out.ports = configured(settings, interfaces, ignored);
  std::erase_if(out.ports, [&](const PortChoice& c) { return c.address.host() != address.host(); });
  std::stable_partition(out.ports.begin(), out.ports.end(),
                        [&](const PortChoice& c) { return c.address == address; });
  const bool udp_only = std::ranges::all_of(settings.ports, is_udp);
  const bool may_be_ours =
      address.udp_port() == 0 || (net::is_shared_port(address.udp_port()) && settings.keys.empty());
  if (!out.ports.empty()) return out;
  if (!interfaces) {
    out.why_none = udp::why_not_listed(interfaces.error());
    return out;
  }
  if (const Interface* i = find_interface(*interfaces, address);
      udp_only && may_be_ours && i != nullptr) {
    out.ports.push_back(udp_choice(*i, address, "udp"));
    add_shared(settings, out.ports);
  }
  if (out.ports.empty()) out.why_none = address.to_string() + " is no address of this host";
  return out;
}

net::FabricAddress first_on_host(const fep::Settings& settings, net::FabricAddress own) {
  const Candidates all = own_ports(settings);
  const auto at = std::ranges::find_if(
      all.ports, [&](const PortChoice& c) { return c.address.is_v4() == own.is_v4(); });
  return at == all.ports.end() ? own : at->address;
}

void Candidates::prefer(const PortChoice& choice) {
  std::ranges::stable_sort(ports, {}, [&](const PortChoice& c) {
    return c.address == choice.address ? 0 : c.device == choice.device ? 1 : 2;
  });
}

}  // namespace uet::provider
