#include "lib/dpdk/kernel_neighbors.h"

#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "lib/base/cancellation.h"

namespace uet::dpdk {

namespace {

using net::FabricAddress;
using net::MacAddress;

constexpr std::uint16_t kDiscardPort = 9;
constexpr int kSure = NUD_REACHABLE | NUD_PERMANENT | NUD_NOARP;
constexpr int kUsable =
    NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP;

struct Question {
  nlmsghdr header;
  ndmsg neighbor;
  rtattr attribute;
  std::uint8_t address[16];
};

int open_netlink(unsigned groups) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  if (fd < 0) return -1;
  sockaddr_nl local{};
  local.nl_family = AF_NETLINK;
  local.nl_groups = groups;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&local), sizeof local) == 0) return fd;
  close(fd);
  return -1;
}

/// The neighbor that a message tells of, when it is on this interface and the kernel knows its MAC.
bool read_neighbor(const std::uint8_t* body, std::size_t bytes, int index, FabricAddress& address,
                   MacAddress& mac, int& state) {
  if (bytes < NLMSG_LENGTH(sizeof(ndmsg))) return false;
  nlmsghdr header;
  std::memcpy(&header, body, sizeof header);
  if (header.nlmsg_type != RTM_NEWNEIGH) return false;
  ndmsg neighbor;
  std::memcpy(&neighbor, body + NLMSG_HDRLEN, sizeof neighbor);
  if (neighbor.ndm_ifindex != index || (neighbor.ndm_state & kUsable) == 0) return false;
  state = neighbor.ndm_state;
  bool has_address = false;
  bool has_mac = false;
  for (std::size_t at = NLMSG_SPACE(sizeof neighbor); at + sizeof(rtattr) <= bytes;) {
    rtattr attribute;
    std::memcpy(&attribute, body + at, sizeof attribute);
    const std::size_t size = attribute.rta_len;
    if (size < sizeof attribute || at + size > bytes) break;
    const std::uint8_t* const value = body + at + RTA_LENGTH(0);
    const std::size_t length = size - RTA_LENGTH(0);
    if (attribute.rta_type == NDA_LLADDR && length == mac.size()) {
      std::copy_n(value, length, mac.begin());
      has_mac = true;
    } else if (attribute.rta_type == NDA_DST && length == 4) {
      std::uint32_t v4;
      std::memcpy(&v4, value, 4);
      address = FabricAddress::from_v4(ntohl(v4));
      has_address = true;
    } else if (attribute.rta_type == NDA_DST && length == 16) {
      std::array<std::uint8_t, 16> v6;
      std::copy_n(value, 16, v6.begin());
      address = FabricAddress::from_v6(v6);
      has_address = true;
    }
    at += RTA_ALIGN(size);
  }
  return has_address && has_mac;
}

}  // namespace

std::unique_ptr<KernelNeighbors> KernelNeighbors::open(const std::string& interface,
                                                       std::string& error) {
  std::unique_ptr<KernelNeighbors> made(new KernelNeighbors);
  made->index_ = static_cast<int>(if_nametoindex(interface.c_str()));
  made->questions_ = open_netlink(0);
  made->notifications_ = open_netlink(RTMGRP_NEIGH);
  made->datagrams_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  made->datagrams_v6_ = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made->index_ != 0 && made->questions_ >= 0 && made->notifications_ >= 0) return made;
  error =
      "cannot ask the kernel for the neighbors behind " + interface + ": " + std::strerror(errno);
  return nullptr;
}

KernelNeighbors::~KernelNeighbors() {
  for (const int fd : {questions_, notifications_, datagrams_, datagrams_v6_})
    if (fd >= 0) close(fd);
}

bool KernelNeighbors::ask(const FabricAddress& address, MacAddress& mac) {
  const base::WithoutCancellation without_cancellation;
  int state = 0;
  const bool is_known = look_up(address, mac, state);
  // Our packets do not pass the kernel: it would believe for ever what it last heard.
  if (!is_known || (state & kSure) == 0) make_it_look(address);
  return is_known;
}

/// The kernel answers a question for one neighbor before send() returns.
bool KernelNeighbors::look_up(const FabricAddress& address, MacAddress& mac, int& state) const {
  const std::size_t bytes = address.is_v4() ? 4 : 16;
  Question question{};
  question.header.nlmsg_len = static_cast<std::uint32_t>(offsetof(Question, address) + bytes);
  question.header.nlmsg_type = RTM_GETNEIGH;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.neighbor.ndm_family = address.is_v4() ? AF_INET : AF_INET6;
  question.neighbor.ndm_ifindex = index_;
  question.attribute.rta_type = NDA_DST;
  question.attribute.rta_len = static_cast<std::uint16_t>(RTA_LENGTH(bytes));
  // IPv4 addresses are the last four bytes.
  std::memcpy(question.address, address.bytes().data() + 16 - bytes, bytes);
  if (send(questions_, &question, question.header.nlmsg_len, 0) < 0) return false;
  std::uint8_t reply[1024];
  const ssize_t got = recv(questions_, reply, sizeof reply, 0);
  FabricAddress who;
  return got > 0 && read_neighbor(reply, static_cast<std::size_t>(got), index_, who, mac, state) &&
         who == address;
}

/// By sending it an empty datagram, which any process may.
void KernelNeighbors::make_it_look(const FabricAddress& address) const {
  if (address.is_v4()) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(kDiscardPort);
    to.sin_addr.s_addr = htonl(address.v4());
    (void)sendto(datagrams_, "", 0, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    return;
  }
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(kDiscardPort);
  to.sin6_scope_id = static_cast<std::uint32_t>(index_);
  std::memcpy(&to.sin6_addr, address.bytes().data(), 16);
  (void)sendto(datagrams_v6_, "", 0, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

KernelNeighbors::News KernelNeighbors::poll(FabricAddress& address, MacAddress& mac) {
  const base::WithoutCancellation without_cancellation;
  std::uint8_t buffer[4096];
  int state = 0;
  for (;;) {
    const ssize_t got = recv(notifications_, buffer, sizeof buffer, 0);
    if (got < 0 && errno == ENOBUFS) {
      pass_over_news();
      return News::kLost;
    }
    if (got <= 0) return News::kNone;
    if (read_neighbor(buffer, static_cast<std::size_t>(got), index_, address, mac, state))
      return News::kFound;
  }
}

/// Of those that did not fit the socket the newest are lost; the ones in it are the oldest.
void KernelNeighbors::pass_over_news() const {
  constexpr int kMost = 4096;  // more than fit
  std::uint8_t buffer[1];
  for (int i = 0; i < kMost; ++i)
    if (recv(notifications_, buffer, sizeof buffer, 0) < 0 && errno != ENOBUFS) return;
}

}  // namespace uet::dpdk
