#include "apps/perf/control_channel.h"
#include "lib/base/version.h"

#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace uet::perf {
namespace {

constexpr std::size_t kMessageMax = 1 << 20;
constexpr const char* kStranger =
    "the control connection carries something that is not this uet-perf; use the same version on "
    "both sides";

std::uint32_t length_at(const std::vector<char>& input) {
  std::uint32_t length = 0;
  std::memcpy(&length, input.data(), sizeof length);
  return ntohl(length);
}

}  // namespace

ControlChannel::ControlChannel(int fd, Patience& patience) : fd_(fd), patience_(&patience) {
  const int one = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

ControlChannel::ControlChannel(ControlChannel&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      patience_(other.patience_),
      input_(std::move(other.input_)),
      messages_(std::move(other.messages_)),
      peer_failure_(std::move(other.peer_failure_)) {}

ControlChannel::~ControlChannel() {
  if (fd_ >= 0) close(fd_);
}

void ControlChannel::greet(const std::string& mode) {
  send({{"uet-perf", kControlVersion}, {"version", base::kVersion}, {"mode", mode}});
  const nlohmann::json theirs = await("the greeting of the other side");
  const auto version = theirs.find("uet-perf");
  if (version == theirs.end() || !version->is_number_integer()) throw ControlLost(kStranger);
  if (*version != kControlVersion)
    throw ControlLost(
        fmt::format("the other side speaks version {} of the control protocol, this uet-perf "
                    "version {}; install the same "
                    "version on both sides",
                    version->dump(), kControlVersion));
  const auto other = theirs.find("mode");
  if (other != theirs.end() && *other != mode)
    throw ControlLost(fmt::format(
        "the other side runs uet-perf {}, this one uet-perf {}: give both the same command",
        other->is_string() ? other->get<std::string>() : other->dump(), mode));
}

void ControlChannel::send(const nlohmann::json& message) {
  const std::string text = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::uint32_t length = htonl(static_cast<std::uint32_t>(text.size()));
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += text;
  patience_->progressed();
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t put =
        ::send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put > 0) {
      at += static_cast<std::size_t>(put);
    } else if (errno == EAGAIN) {
      pollfd wait{fd_, POLLOUT, 0};
      poll(&wait, 1, 100);
      patience_->check("the other side to take a control message");
    } else if (errno != EINTR) {
      throw ControlLost(
          fmt::format("the other side is gone (control connection: {})", std::strerror(errno)));
    }
  }
}

void ControlChannel::read_available() {
  std::array<char, 4096> chunk;
  for (;;) {
    const ssize_t got = recv(fd_, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got > 0) {
      input_.insert(input_.end(), chunk.begin(), chunk.begin() + got);
      cut_messages();
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (!messages_.empty() || peer_failure_) return;  // its last words first
    throw ControlLost(
        got == 0
            ? "the other side closed the control connection; its own message says why"
            : fmt::format("the other side is gone (control connection: {})", std::strerror(errno)));
  }
}

void ControlChannel::cut_messages() {
  while (input_.size() >= sizeof(std::uint32_t)) {
    const std::uint32_t length = length_at(input_);
    if (length > kMessageMax) throw ControlLost(kStranger);
    const std::size_t end = sizeof length + length;
    if (input_.size() < end) return;
    auto message =
        nlohmann::json::parse(input_.begin() + sizeof length,
                              input_.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (!message.is_object()) throw ControlLost(kStranger);
    input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(end));
    if (message.contains("alive")) {
      patience_->progressed();
      continue;
    }
    const auto failed = message.find("failed");
    if (failed == message.end()) {
      messages_.push_back(std::move(message));
      continue;
    }
    messages_.clear();  // about what has failed
    peer_failure_ = failed->is_string() ? failed->get<std::string>() : "unknown reason";
  }
}

void ControlChannel::look() {
  read_available();
  if (peer_failure_) throw PeerFailed(*peer_failure_);
}

std::optional<nlohmann::json> ControlChannel::take() {
  if (messages_.empty()) look();
  if (messages_.empty()) return std::nullopt;
  nlohmann::json first = std::move(messages_.front());
  messages_.pop_front();
  return first;
}

void ControlChannel::wait_briefly() {
  pollfd wait{fd_, POLLIN, 0};
  poll(&wait, 1, static_cast<int>(std::min<std::int64_t>(patience_->left().count() + 1, 1000)));
}

std::string ControlChannel::settle(const std::string& why) {
  send({{"failed", why}});
  patience_->progressed();
  while (!peer_failure_) {
    messages_.clear();
    wait_briefly();
    read_available();
    patience_->check("the other side to learn of this failure: " + why);
  }
  return *std::exchange(peer_failure_, std::nullopt);
}

}  // namespace uet::perf
