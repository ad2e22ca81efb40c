#include "tests/hostile/enemy_socket.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "lib/base/byte_cursor.h"
#include "lib/wire/uet_crc.h"

namespace uet::hostile {

namespace {

constexpr std::size_t kCrcBytes = 4, kUdpHeader = 8, kIpHeader = 20, kLargest = 16 * 1024;

sockaddr_in place(net::FabricAddress address, std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(address.v4());
  return at;
}

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

}  // namespace

EnemySocket::EnemySocket(net::FabricAddress own, std::uint16_t port)
    : own_(own), fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in at = place(own, port);
  if (fd_ < 0 || ::bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) fail("bind");
  socklen_t length = sizeof at;
  if (::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &length) != 0) fail("getsockname");
  port_ = ntohs(at.sin_port);
  const int room = 4 << 20;
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
}

EnemySocket::EnemySocket(EnemySocket&& other) noexcept
    : own_(other.own_), fd_(std::exchange(other.fd_, -1)), port_(other.port_) {}

EnemySocket::~EnemySocket() {
  if (fd_ >= 0) ::close(fd_);
}

void EnemySocket::send(net::FabricAddress to, std::span<const std::uint8_t> uet) {
  Packet out(uet.begin(), uet.end());
  out.resize(uet.size() + kCrcBytes);
  const std::uint32_t crc =
      wire::uet_crc({.source = own_.bytes(),
                     .destination = to.bytes(),
                     .is_v4 = true,
                     .is_udp = true,
                     .entropy = port_,
                     .udp_destination_port = kUetPort,
                     .udp_length = static_cast<std::uint16_t>(kUdpHeader + out.size())},
                    uet);
  base::store_be(out.data() + uet.size(), crc);
  const sockaddr_in at = place(to, kUetPort);
  // Refused: the port of the victim was closed, or the kernel lost the packet.
  if (::sendto(fd_, out.data(), out.size(), 0, reinterpret_cast<const sockaddr*>(&at), sizeof at) >=
      0)
    bytes_out_ += kIpHeader + kUdpHeader + out.size();
}

std::optional<Packet> EnemySocket::receive(int timeout_ms) {
  pollfd p{.fd = fd_, .events = POLLIN, .revents = 0};
  if (::poll(&p, 1, timeout_ms) <= 0) return std::nullopt;
  Packet in(kLargest);
  const ssize_t n = ::recv(fd_, in.data(), in.size(), MSG_DONTWAIT);
  if (n < static_cast<ssize_t>(kCrcBytes)) return std::nullopt;
  ++packets_in_;
  bytes_in_ += kIpHeader + kUdpHeader + static_cast<std::size_t>(n);
  in.resize(static_cast<std::size_t>(n) - kCrcBytes);
  return in;
}

}  // namespace uet::hostile
