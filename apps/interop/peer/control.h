/// The TCP connections beside the fabric, by which the two sides agree on who is where and what is next: lines of text.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace uet::interop {

/// The other side went away, or was not there in time.
class ControlLost : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One connection. Waiting calls `progress` all the time: a provider may turn its loop only within calls.
class Control {
 public:
  using Progress = std::function<void()>;

  Control(int fd, double patience_s, Progress progress)
      : fd_(fd), patience_s_(patience_s), progress_(std::move(progress)) {}
  Control(Control&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        patience_s_(other.patience_s_),
        progress_(std::move(other.progress_)),
        read_(std::move(other.read_)) {}
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;
  ~Control();

  void say(std::string_view line);
  /// The next line; ControlLost after the patience.
  std::string hear();
  /// Both sides are here. They say the same word, or are out of step.
  void meet(std::string_view word);
  /// Whether the other side has hung up.
  bool is_lost() const;

 private:
  int fd_;
  double patience_s_;
  Progress progress_;
  std::string read_;
};

/// Where the server waits for its clients.
class Listener {
 public:
  Listener(const std::string& address, unsigned port);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  Control accept(double patience_s, const Control::Progress& progress) const;

 private:
  int fd_;
};

/// Tries until the server listens.
Control connect_to(const std::string& address, unsigned port, double patience_s,
                   const Control::Progress& progress);

double seconds_now();

}  // namespace uet::interop
