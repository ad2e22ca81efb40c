#include "lib/ports/live_desk.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace uet::ports {
namespace {

constexpr base::Duration kLookInterval = base::Duration::from_ms(50);
constexpr base::Duration kKeepInterval = base::Duration::from_seconds(1);
constexpr base::Duration kPatience = base::Duration::from_seconds(2);

}  // namespace

pollfd LiveDesk::wakeup() const {
  if (client_fd_ < 0) return {.fd = is_short_ ? -1 : socket_.fd(), .events = POLLIN, .revents = 0};
  const short events = unsent_.empty() ? POLLIN : POLLOUT;
  return {.fd = client_fd_, .events = events, .revents = 0};
}

void LiveDesk::look(base::Instant now,
                    const std::function<std::string(const std::string&)>& answer) {
  next_look_ = now + kLookInterval;
  if (now >= keep_at_) {
    socket_.keep();
    keep_at_ = now + kKeepInterval;
  }
  if (!is_open()) return;
  if (client_fd_ < 0) greet(now);
  if (client_fd_ < 0) return;
  if (unsent_.empty()) {
    pollfd wait{.fd = client_fd_, .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, 0) == 1) {
      const std::string request = read_live_request(client_fd_, 0);
      if (request.empty()) return hang_up();
      unsent_ = answer(request);
    }
  }
  if (!unsent_.empty()) write_some();
  if (client_fd_ >= 0 && now >= patience_end_) hang_up();
}

void LiveDesk::greet(base::Instant now) {
  client_fd_ = accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  is_short_ = client_fd_ < 0 && errno != EAGAIN;
  if (client_fd_ >= 0) note_only_parents(client_fd_);
  patience_end_ = now + kPatience;
}

void LiveDesk::write_some() {
  const ssize_t n = send(client_fd_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n > 0) unsent_.erase(0, static_cast<std::size_t>(n));
  const bool is_gone = n < 0 && errno != EAGAIN && errno != EINTR;
  if (is_gone || unsent_.empty()) hang_up();
}

void LiveDesk::hang_up() {
  if (client_fd_ >= 0) {
    forget_only_parents(client_fd_);
    close(client_fd_);
  }
  client_fd_ = -1;
  unsent_.clear();
}

}  // namespace uet::ports
