#include "lib/udp/unresolved_neighbors.h"

#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "lib/udp/udp_sockets.h"

namespace uet::udp {

using net::FabricAddress;

namespace {

constexpr unsigned kUsable =
    NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;
constexpr std::size_t kReadBytes = 32 * 1024;
/// The kernel's table has 1024 entries unless its administrator wants more: 8 MiB are some 80 thousand.
constexpr int kMostReads = 256;

template <typename T>
T load(const std::uint8_t* at) {
  T out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

/// What the attributes behind an ndmsg say is the neighbor's address; unspecified: nothing.
FabricAddress address_in(std::span<const std::uint8_t> attributes) {
  while (attributes.size() >= sizeof(rtattr)) {
    const auto attribute = load<rtattr>(attributes.data());
    const std::size_t size = attribute.rta_len;
    if (size < sizeof attribute || size > attributes.size()) break;
    const std::uint8_t* const value = attributes.data() + RTA_LENGTH(0);
    const std::size_t length = size - RTA_LENGTH(0);
    if (attribute.rta_type == NDA_DST && length == 4)
      return FabricAddress::from_v4(ntohl(load<std::uint32_t>(value)));
    if (attribute.rta_type == NDA_DST && length == 16)
      return FabricAddress::from_v6(load<std::array<std::uint8_t, 16>>(value));
    attributes = attributes.subspan(std::min<std::size_t>(RTA_ALIGN(size), attributes.size()));
  }
  return {};
}

}  // namespace

/// What one look finds.
struct UnresolvedNeighbors::Table {
  std::vector<Host> unresolved;
  std::vector<FabricAddress> usable;
  bool is_whole = false;
};

bool UnresolvedNeighbors::look() {
  Table table;
  const auto netlink =
      Descriptor::open([] { return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE); });
  struct {
    nlmsghdr header;
    ndmsg neighbor;
  } question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = RTM_GETNEIGH;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  question.neighbor.ndm_family = is_v4_ ? AF_INET : AF_INET6;
  if (netlink && send(netlink.fd(), &question, sizeof question, 0) == sizeof question) {
    std::array<std::uint8_t, kReadBytes> buffer;
    for (int reads = 0; reads < kMostReads && !table.is_whole; ++reads) {
      const ssize_t got = recv(netlink.fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got <= 0) break;
      read({buffer.data(), static_cast<std::size_t>(got)}, table);
    }
  }
  return take(table);
}

bool UnresolvedNeighbors::look_at(std::span<const std::uint8_t> messages) {
  Table table;
  read(messages, table);
  return take(table);
}

void UnresolvedNeighbors::read(std::span<const std::uint8_t> messages, Table& table) const {
  while (messages.size() >= sizeof(nlmsghdr)) {
    const auto header = load<nlmsghdr>(messages.data());
    const std::size_t size = header.nlmsg_len;
    if (size < sizeof header || size > messages.size()) return;
    if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR) {
      table.is_whole = true;
      return;
    }
    const auto message = messages.first(size);
    messages = messages.subspan(std::min<std::size_t>(NLMSG_ALIGN(size), messages.size()));
    if (header.nlmsg_type != RTM_NEWNEIGH || size < NLMSG_SPACE(sizeof(ndmsg))) continue;
    const auto neighbor = load<ndmsg>(message.data() + NLMSG_HDRLEN);
    const auto index = static_cast<unsigned>(neighbor.ndm_ifindex);
    const FabricAddress address = address_in(message.subspan(NLMSG_SPACE(sizeof neighbor)));
    if (address.is_unspecified() || address.is_v4() != is_v4_) continue;
    if (interface_index_ != 0 && index != interface_index_) continue;
    if (address.is_link_local() && index != scope_) continue;
    if ((neighbor.ndm_state & kUsable) != 0) table.usable.push_back(address);
    const bool is_asked = (neighbor.ndm_state & NUD_INCOMPLETE) != 0;
    if (!is_asked && (neighbor.ndm_state & NUD_FAILED) == 0) continue;
    table.unresolved.push_back({.address = address, .is_given_up = !is_asked});
  }
}

/// True when the kernel holds packets.
bool UnresolvedNeighbors::take(Table& table) {
  const auto before = [](const Host& a, const Host& b) { return a.address < b.address; };
  std::sort(table.usable.begin(), table.usable.end());
  std::erase_if(table.unresolved, [&](const Host& host) {
    return std::binary_search(table.usable.begin(), table.usable.end(), host.address);
  });
  std::sort(table.unresolved.begin(), table.unresolved.end(), before);
  for (Host& host : table.unresolved) {
    const Host* const known = find(host.address);
    host.is_unused = host.is_given_up && known != nullptr && (known->was_asked || known->is_unused);
  }
  hosts_ = std::move(table.unresolved);
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [](const Host& host) { return !host.is_given_up; });
}

UnresolvedNeighbors::Host* UnresolvedNeighbors::find(const FabricAddress& address) {
  const auto at = std::lower_bound(
      hosts_.begin(), hosts_.end(), address,
      [](const Host& a, const FabricAddress& wanted) { return a.address < wanted; });
  return at != hosts_.end() && at->address == address ? &*at : nullptr;
}

bool UnresolvedNeighbors::keeps(const FabricAddress& host) {
  Host* const known = find(host);
  if (known == nullptr || known->is_unused) return false;
  return !known->is_given_up || std::exchange(known->was_asked, true);
}

}  // namespace uet::udp
