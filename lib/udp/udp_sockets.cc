#include "lib/udp/udp_sockets.h"

#include <linux/sockios.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace uet::udp {

namespace {

bool set_option(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

/// With the privilege for it, the system-wide limit does not count.
void set_buffer(int fd, int forced_name, int name, int bytes) {
  if (!set_option(fd, SOL_SOCKET, forced_name, bytes)) set_option(fd, SOL_SOCKET, name, bytes);
}

/// UET sends no UDP checksum and accepts any; IPv6 sockets refuse a zero one unless told. The kernel merges only packets
/// with a checksum, which network cards compute. [WIRE 2.4, decision 126]
void choose_checksum(int fd, bool is_v4, bool has_checksum) {
  if (!is_v4) set_option(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
  if (has_checksum) return;
  if (is_v4)
    set_option(fd, SOL_SOCKET, SO_NO_CHECK, 1);
  else
    set_option(fd, IPPROTO_UDP, UDP_NO_CHECK6_TX, 1);
}

bool can_merge(int fd) {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  return getsockopt(fd, SOL_UDP, UDP_SEGMENT, &bytes, &length) == 0 &&
         set_option(fd, SOL_UDP, UDP_GRO, 1);
}

/// With DF routers tell when a packet is too large for what lies behind them, and the kernel remembers.
void discover_path_mtu(int fd, bool is_v4, bool may_fragment) {
  if (is_v4)
    set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, may_fragment ? IP_PMTUDISC_WANT : IP_PMTUDISC_DO);
  else
    set_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
               may_fragment ? IPV6_PMTUDISC_WANT : IPV6_PMTUDISC_DO);
}

bool tie(int fd, const std::string& device) {
  return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device.data(),
                    static_cast<socklen_t>(device.size())) == 0;
}

/// `shares_port`: with a socket that has SO_REUSEPORT, too.
Descriptor open_bound(const UdpSocketsConfig& config, std::uint16_t port,
                      bool shares_port = false) {
  const bool is_v4 = config.address.is_v4();
  auto d = Descriptor::open([is_v4] {
    return socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  });
  if (!d) return d;
  if (shares_port) set_option(d.fd(), SOL_SOCKET, SO_REUSEPORT, 1);
  const SocketAddress local(config.address, port, config.scope);
  const bool is_tied = config.device.empty() || tie(d.fd(), config.device);
  if (!is_tied || bind(d.fd(), &local.any, local.length) != 0) {
    const int why = errno;
    d = Descriptor();
    errno = why;
    return Descriptor();
  }
  return d;
}

/// The socket that receives. Sleeps while a child of this process may have the one before it.
Descriptor open_receiver(const UdpSocketsConfig& config) {
  constexpr std::chrono::milliseconds kInterval{1};
  for (;;) {
    Descriptor d = open_bound(config, config.port);
    if (d) d.note_port(config.address.host(), config.port);
    if (d || errno != EADDRINUSE) return d;
    const auto closed = closed_for(config.address.host(), config.port);
    if (!closed || *closed >= kChildPatience) {
      errno = EADDRINUSE;
      return d;
    }
    std::this_thread::sleep_for(kInterval);
  }
}

std::uint16_t bound_port(int fd) {
  SocketAddress local;
  socklen_t length = sizeof local.v6;
  return getsockname(fd, &local.any, &length) == 0 ? local.port() : 0;
}

void prepare_sender(int fd, const UdpSockets& sockets) {
  const bool is_v4 = sockets.config.address.is_v4();
  choose_checksum(fd, is_v4, sockets.can_merge);
  discover_path_mtu(fd, is_v4, sockets.may_fragment);
  set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, sockets.config.send_buffer_bytes);
  // No peer should send here; what comes anyway must not pile up.
  set_option(fd, SOL_SOCKET, SO_RCVBUF, 0);
}

}  // namespace

bool open_sockets(const UdpSocketsConfig& config, UdpSockets& sockets, const char*& step) {
  const bool is_v4 = config.address.is_v4();
  sockets.config = config;
  step = "bind";
  sockets.receiver = open_receiver(config);
  if (!sockets.receiver) return false;
  const int fd = sockets.receiver.fd();
  set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, config.receive_buffer_bytes);
  int given = 0;
  socklen_t length = sizeof given;
  if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &given, &length) == 0 && given > 0)
    sockets.receive_bytes = static_cast<std::size_t>(given);
  set_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
  sockets.can_merge = config.merge && can_merge(fd);
  choose_checksum(fd, is_v4, true);  // sends nothing
  step = "ask for the TOS byte of received packets";
  if (!(is_v4 ? set_option(fd, IPPROTO_IP, IP_RECVTOS, 1)
              : set_option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1)))
    return false;
  step = "open a sending socket";
  const std::vector<std::uint16_t> wanted = std::exchange(sockets.sender_ports, {});
  for (std::size_t i = 0; i < config.senders; ++i) {
    Descriptor d = open_bound(config, i < wanted.size() ? wanted[i] : std::uint16_t{0});
    if (!d) return false;
    prepare_sender(d.fd(), sockets);
    sockets.sender_ports.push_back(bound_port(d.fd()));
    sockets.senders.push_back(std::move(d));
  }
  step = "open a socket that asks for routes";
  sockets.prober = open_bound(config, 0);
  if (!sockets.prober) return false;
  set_option(sockets.prober.fd(), SOL_SOCKET, SO_RCVBUF, 0);
  return true;
}

bool tie_again(UdpSockets& sockets, const std::string& device, unsigned index) {
  if (!sockets.config.device.empty()) sockets.config.device = device;
  sockets.config.scope = index;
  if (tie(sockets.receiver.fd(), device)) {
    bool are_tied = tie(sockets.prober.fd(), device);
    for (const Descriptor& d : sockets.senders) are_tied = tie(d.fd(), device) && are_tied;
    return are_tied;
  }
  if (errno != EPERM) return false;
  UdpSockets fresh;
  fresh.sender_ports = sockets.sender_ports;
  fresh.may_fragment = sockets.may_fragment;
  const char* step = "";
  if (!open_sockets(sockets.config, fresh, step)) return false;
  sockets = std::move(fresh);
  return true;
}

void let_fragment(UdpSockets& sockets) {
  sockets.may_fragment = true;
  for (const Descriptor& d : sockets.senders)
    discover_path_mtu(d.fd(), sockets.config.address.is_v4(), true);
}

bool renew_sender(UdpSockets& sockets, std::size_t sender) {
  Descriptor& old = sockets.senders[sender];
  // Both have the port for a moment, so that it is never free for another program.
  if (!set_option(old.fd(), SOL_SOCKET, SO_REUSEPORT, 1)) return false;
  Descriptor fresh = open_bound(sockets.config, sockets.sender_ports[sender], true);
  if (fresh) {
    prepare_sender(fresh.fd(), sockets);
    std::swap(old, fresh);
  }
  set_option(old.fd(), SOL_SOCKET, SO_REUSEPORT, 0);
  return static_cast<bool>(fresh);
}

std::size_t unsent_bytes(int fd) {
  int bytes = 0;
  return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

std::size_t send_buffer_bytes(int fd) {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  return getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &length) == 0 && bytes > 0
             ? static_cast<std::size_t>(bytes)
             : 0;
}

bool is_port_taken(const net::FabricAddress& address, std::uint16_t port) {
  errno = 0;
  return !open_bound(UdpSocketsConfig{.address = address}, port) && errno == EADDRINUSE;
}

std::size_t route_mtu(int prober, const SocketAddress& to) {
  if (connect(prober, &to.any, to.length) != 0) return 0;
  const bool is_v4 = to.any.sa_family == AF_INET;
  int mtu = 0;
  socklen_t length = sizeof mtu;
  const int status = is_v4 ? getsockopt(prober, IPPROTO_IP, IP_MTU, &mtu, &length)
                           : getsockopt(prober, IPPROTO_IPV6, IPV6_MTU, &mtu, &length);
  return status == 0 && mtu > 0 ? static_cast<std::size_t>(mtu) : 0;
}

}  // namespace uet::udp
