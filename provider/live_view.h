/// Lets people look at the endpoints of this process while they run (uet-stat): a thread that sleeps on a Unix socket and takes
/// a worker's lock only when it is asked, and for a moment once a second to look for peers that do not fit.
#pragma once

#include <memory>

namespace uet::provider {

class Worker;

class LiveView {
 public:
  /// While it lives the worker can be looked at.
  class Entry {
   public:
    explicit Entry(Worker& worker) : worker_(worker) {}
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    Worker& worker_;
  };

  /// Called once the worker can turn. Logs what it was opened with. Failing to make the socket is no failure of the worker,
  /// and ends no look for peers that do not fit.
  static std::unique_ptr<Entry> show(Worker& worker);
  /// At process exit: ends the thread and takes the socket away.
  static void stop();
};

}  // namespace uet::provider
