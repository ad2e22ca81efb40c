#include "lib/ports/live_desk.h"

#include <sys/socket.h>

#include <cerrno>

namespace uet::ports {
namespace {

constexpr base::Duration kLookInterval = base::Duration::from_ms(50);
constexpr base::Duration kKeepInterval = base::Duration::from_seconds(1);
constexpr base::Duration kPatience = base::Duration::from_seconds(2);

}  // namespace

pollfd LiveDesk::wakeup() const {
  if (!client_) return {.fd = is_short_ ? -1 : socket_.fd(), .events = POLLIN, .revents = 0};
  const short events = unsent_.empty() ? POLLIN : POLLOUT;
  return {.fd = client_.fd(), .events = events, .revents = 0};
}

void LiveDesk::look(base::Instant now,
                    const std::function<std::string(const std::string&)>& answer) {
  next_look_ = now + kLookInterval;
  if (now >= keep_at_) {
    socket_.keep();
    keep_at_ = now + kKeepInterval;
  }
  if (!is_open()) return;
  if (!client_) greet(now);
  if (!client_) return;
  if (unsent_.empty()) {
    pollfd wait{.fd = client_.fd(), .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, 0) == 1) {
      const std::string request = read_live_request(client_.fd(), 0);
      if (request.empty()) return hang_up();
      unsent_ = answer(request);
    }
  }
  if (!unsent_.empty()) write_some();
  if (client_ && now >= patience_end_) hang_up();
}

void LiveDesk::greet(base::Instant now) {
  client_ = udp::Descriptor::open(
      [this] { return accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
  is_short_ = !client_ && errno != EAGAIN;
  patience_end_ = now + kPatience;
}

void LiveDesk::write_some() {
  const ssize_t n = send(client_.fd(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n > 0) unsent_.erase(0, static_cast<std::size_t>(n));
  const bool is_gone = n < 0 && errno != EAGAIN && errno != EINTR;
  if (is_gone || unsent_.empty()) hang_up();
}

void LiveDesk::hang_up() {
  client_ = udp::Descriptor();
  unsent_.clear();
}

}  // namespace uet::ports
