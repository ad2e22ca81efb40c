/// Keeps DPDK's interrupt thread and the data path of memif devices apart. The memif driver unmaps the rings of a peer that
/// left on the interrupt thread, without asking whether the data path is copying from them. So that thread stands at a gate
/// and gets through it only while every such device is outside of its bursts.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace uet::dpdk {

/// One per process. It stands only while there are members, and only where EAL is ours: an application that runs EAL
/// itself may need its interrupt thread at any time.
class InterruptGate {
 public:
  /// A device whose bursts must not meet the interrupt thread.
  class Member {
   public:
    Member() = default;
    ~Member() { leave(); }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    void join();
    void leave();
    /// False: the interrupt thread is at work, come back later. True: until end() it is not. One thread at a time.
    bool begin();
    void end() { is_busy_.store(false, std::memory_order_release); }

   private:
    friend class InterruptGate;
    std::atomic<bool> is_busy_{false};
    bool has_joined_ = false;
  };

  static InterruptGate& instance();

  /// Lets the thread through once for whatever waits there, unless a member is in a burst or it is through already.
  /// Returns at once; must not be called inside a burst of the caller.
  void let_through();

  /// Has `work` done on the thread each time that it comes back to the gate, before any burst can begin.
  void set_on_return(bool (*work)()) { on_return_.store(work); }

 private:
  enum class State : int { kNoGate, kShut, kPassing };

  static void stand(void* gate);
  bool rearm();

  std::atomic<State> state_{State::kNoGate};
  std::atomic<bool (*)()> on_return_{nullptr};
  std::mutex mutex_;  ///< of all below
  std::condition_variable opened_;
  std::vector<Member*> members_;
  bool is_open_ = false;
  bool is_standing_ =
      false;  ///< the thread is at the gate and was not let through, or has not noticed
  bool is_armed_ = false;  ///< the thread stands at the gate, or will come to it
};

}  // namespace uet::dpdk
