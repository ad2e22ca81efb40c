/// Answers people who look at a running process (uet-stat) from a loop that must not wait: for owners without a thread to spare.
#pragma once

#include <poll.h>

#include <algorithm>
#include <functional>
#include <string>

#include "lib/base/units.h"
#include "lib/ports/live_socket.h"

namespace uet::ports {

/// One client at a time, in steps that never block: accept, read one request, write the answer, hang up. A client that sends
/// nothing or takes nothing is left after two seconds; one that comes while the process has no descriptor to spare waits. Without a socket (no folder of this user for it) it
/// tries for one once a second, and does nothing else. The client is a Descriptor: a child made by
/// fork() would keep the connection open when the parent closes it, for the client and for an epoll of the parent.
class LiveDesk {
 public:
  LiveDesk() = default;
  LiveDesk(const LiveDesk&) = delete;
  LiveDesk& operator=(const LiveDesk&) = delete;

  bool is_open() const { return socket_.fd() >= 0; }
  /// Every 50 ms: the owner's loop asks often, and look() costs system calls.
  bool is_due(base::Instant now) const { return now >= next_look_; }
  /// One step. `answer` is asked with a whole request line.
  void look(base::Instant now, const std::function<std::string(const std::string&)>& answer);
  /// What to sleep on beside the port; a descriptor of -1 where there is nothing. When it woke the sleeper, look_soon() makes the next step due.
  pollfd wakeup() const;
  /// When the owner looks even where nothing wakes it: within some second of the look before.
  base::Instant deadline() const { return std::max(keep_at_, next_look_); }
  void look_soon() { next_look_ = base::Instant(); }

 private:
  void greet(base::Instant now);
  void write_some();
  void hang_up();

  LiveSocket socket_;
  udp::Descriptor client_;
  std::string unsent_;
  base::Instant next_look_, keep_at_, patience_end_;
  /// The latest client could not be accepted: its connection keeps the listener readable, and would wake the owner all the time.
  bool is_short_ = false;
};

}  // namespace uet::ports
