/// How the two sides of a control connection find each other.

#include <fmt/core.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include "apps/perf/control_channel.h"
#include "apps/perf/tcp_connect.h"

namespace uet::perf {

std::string ControlChannel::peer_name() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  char host[NI_MAXHOST] = "";
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      getnameinfo(name, length, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0)
    return "the other side";
  return host;
}

Socket listen_for_control(const std::string& host, std::uint16_t port) {
  Socket listener = listen_tcp(host, port);
  if (listener.is_open()) return listener;
  if (errno == EADDRNOTAVAIL)
    throw ControlLost(fmt::format(
        "--listen {}: no interface of this host has this address; `ip addr` lists them", host));
  throw ControlLost(
      fmt::format("cannot listen on control port {}: {}; choose another one with --control-port "
                  "on both sides",
                  port, std::strerror(errno)));
}

ControlChannel ControlChannel::listen(const std::string& host, std::uint16_t port,
                                      const std::string& mode, Patience& patience) {
  return accept(listen_for_control(host, port), mode, patience);
}

ControlChannel ControlChannel::accept(const Socket& listener, const std::string& mode,
                                      Patience& patience, std::chrono::milliseconds greeting) {
  patience.progressed();
  while (patience.left().count() > 0) {
    Socket s = accept_tcp(listener, std::min(patience.left() + std::chrono::milliseconds(1),
                                             std::chrono::milliseconds(1000)));
    if (!s.is_open()) continue;
    // Of its own: strangers do not prolong the wait for a peer.
    Patience with_stranger(std::min(greeting, patience.limit()));
    ControlChannel control(s.release(), with_stranger);
    const std::string name = control.peer_name();
    try {
      control.greet(mode);
      control.patience_ = &patience;
      patience.progressed();
      return control;
    } catch (const std::runtime_error& error) {
      const bool was_silent = with_stranger.left().count() == 0;
      fmt::print(stderr, "uet-perf: passed over a connection from {}: {}\n", name,
                 was_silent ? "it sent no greeting" : error.what());
    }
  }
  throw ControlLost(fmt::format(
      "no client connected within {:g} s (--timeout); start it with --peer and an address of "
      "this host",
      static_cast<double>(patience.limit().count()) / 1000));
}

ControlChannel ControlChannel::connect(const std::string& host, std::uint16_t port,
                                       const std::string& mode, Patience& patience) {
  constexpr std::chrono::milliseconds kUntold = std::chrono::seconds(2);
  patience.progressed();
  for (bool is_told = false;;) {
    const auto most = is_told ? patience.left() : std::min(patience.left(), kUntold);
    if (Socket s = connect_tcp(host, port, most); s.is_open()) {
      ControlChannel control(s.release(), patience);
      control.greet(mode);
      return control;
    }
    if (patience.left().count() == 0)
      throw ControlLost(
          fmt::format("no server at {} control port {}; start uet-perf without --peer there first",
                      host, port));
    if (!is_told && patience.silence() >= kUntold) {
      fmt::print(
          stderr,
          "uet-perf: waiting for a server at {} control port {}, {:g} s at most (--timeout)\n",
          host, port, static_cast<double>(patience.limit().count()) / 1000);
      is_told = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the server may still be starting
  }
}

}  // namespace uet::perf
