#include "apps/interop/peer/control.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace uet::interop {
namespace {

constexpr std::size_t kLineMax = 4096;

sockaddr_in address_of(const std::string& address, unsigned port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &out.sin_addr) != 1)
    throw std::runtime_error("'" + address + "' is no IPv4 address for the control connection");
  return out;
}

int new_socket() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throw std::runtime_error(std::string("socket: ") + std::strerror(errno));
  return fd;
}

bool is_readable(int fd) {
  pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&waiting, 1, 0) > 0;
}

}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Control::~Control() {
  if (fd_ >= 0) close(fd_);
}

void Control::say(std::string_view line) {
  const std::string text = std::string(line) + "\n";
  if (send(fd_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
    throw ControlLost("the other side hung up");
}

std::string Control::hear() {
  const double end = seconds_now() + patience_s_;
  while (true) {
    if (const std::size_t at = read_.find('\n'); at != std::string::npos) {
      std::string line = read_.substr(0, at);
      read_.erase(0, at + 1);
      return line;
    }
    if (progress_) progress_();
    if (is_readable(fd_)) {
      char part[kLineMax];
      const ssize_t n = recv(fd_, part, sizeof part, 0);
      if (n <= 0 || read_.size() > kLineMax) throw ControlLost("the other side hung up");
      read_.append(part, static_cast<std::size_t>(n));
    } else if (seconds_now() > end) {
      throw std::runtime_error("the other side says nothing");
    }
  }
}

void Control::meet(std::string_view word) {
  say(word);
  if (const std::string theirs = hear(); theirs != word) {
    throw std::runtime_error("out of step: '" + std::string(word) + "' here, '" + theirs +
                             "' at the other side");
  }
}

bool Control::is_lost() const {
  char c = 0;
  return is_readable(fd_) && recv(fd_, &c, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

Listener::Listener(const std::string& address, unsigned port) : fd_(new_socket()) {
  const int one = 1;
  setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  const sockaddr_in where = address_of(address, port);
  constexpr int kBacklog = 512;  // hundreds of clients come at once
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0 ||
      listen(fd_, kBacklog) != 0)
    throw std::runtime_error("cannot listen at " + address + ": " + std::strerror(errno));
}

Listener::~Listener() {
  close(fd_);
}

Control Listener::accept(double patience_s, const Control::Progress& progress) const {
  const double end = seconds_now() + patience_s;
  while (!is_readable(fd_)) {
    if (progress) progress();
    if (seconds_now() > end) throw std::runtime_error("no client came");
  }
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) throw std::runtime_error(std::string("accept: ") + std::strerror(errno));
  return Control(fd, patience_s, progress);
}

Control connect_to(const std::string& address, unsigned port, double patience_s,
                   const Control::Progress& progress) {
  const sockaddr_in where = address_of(address, port);
  for (const double end = seconds_now() + patience_s; seconds_now() < end;) {
    const int fd = new_socket();
    if (connect(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0)
      return Control(fd, patience_s, progress);
    close(fd);
    if (progress) progress();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  throw std::runtime_error("no server listens at " + address);
}

}  // namespace uet::interop
