/// A TCP connection beside the measured fabric: two benchmark processes agree on what is measured, exchange addresses and
/// keep in step over it.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "apps/perf/patience.h"

namespace uet::perf {

/// Of the messages on the connection; both sides must have the same.
inline constexpr int kControlVersion = 2;

class Socket;

/// Where peers are waited for; throws ControlLost, which says what to do, where that cannot be.
Socket listen_for_control(const std::string& host, std::uint16_t port);

/// The other side says that it failed, and why.
struct PeerFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// The connection itself is gone or carries something else: nothing more can be agreed upon.
struct ControlLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// JSON objects, each behind its length. Nothing blocks for longer than the patience. What arrives is not trusted: lengths
/// are bounded and what is no JSON object ends the connection. Throws sentences that say what to do.
class ControlChannel {
 public:
  /// Waits for one peer on `host`:`port` (an empty host is every local address), and greets it. `mode` is the command of
  /// uet-perf; both sides must have the same.
  static ControlChannel listen(const std::string& host, std::uint16_t port, const std::string& mode,
                               Patience& patience);
  /// The same on a socket that listens already; it may serve several peers. A connection that brings no fitting greeting
  /// within `greeting` is passed over, with a line on stderr.
  static ControlChannel accept(const Socket& listener, const std::string& mode, Patience& patience,
                               std::chrono::milliseconds greeting = std::chrono::seconds(2));
  /// Connects to `host`:`port`, and greets; tries again while patience lasts, because the server may still be starting.
  static ControlChannel connect(const std::string& host, std::uint16_t port,
                                const std::string& mode, Patience& patience);
  /// Over a connected stream socket, which it owns from now on.
  ControlChannel(int fd, Patience& patience);

  ControlChannel(ControlChannel&& other) noexcept;
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;
  ~ControlChannel();

  void send(const nlohmann::json& message);
  /// Takes in what has arrived without waiting. Throws PeerFailed as soon as that is known, and ControlLost.
  void look();
  /// The next message. Calls `meanwhile` while there is none, so that a provider can make progress.
  template <typename Meanwhile>
  nlohmann::json await(const std::string& what, Meanwhile&& meanwhile) {
    patience_->progressed();
    for (;;) {
      if (auto message = take()) return std::move(*message);
      meanwhile();
      patience_->check(what);
    }
  }
  nlohmann::json await(const std::string& what) {
    return await(what, [this] { wait_briefly(); });
  }
  /// One message each way.
  nlohmann::json exchange(const nlohmann::json& mine, const std::string& what) {
    send(mine);
    return await(what);
  }
  /// After a failure on either side: both say so once and forget what was still under way. Returns what the peer said.
  std::string settle(const std::string& why);
  void greet(const std::string& mode = {});
  /// Sleeps until something arrives, a second at most.
  void wait_briefly();
  /// The peer's address, for messages.
  std::string peer_name() const;

 private:
  std::optional<nlohmann::json> take();
  void read_available();
  void cut_messages();

  int fd_;
  Patience* patience_;
  std::vector<char> input_;
  std::deque<nlohmann::json> messages_;
  std::optional<std::string> peer_failure_;  ///< said and not yet settled
};

}  // namespace uet::perf
