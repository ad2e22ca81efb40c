/// One thread per process for what drivers take long over: reading a NIC's statistics, and bringing a device back after a reset.
/// Sleeps in between, takes no signals, and is there only while a device is open.
#pragma once

namespace uet::dpdk {

class Caretaker {
 public:
  /// Something that wants to be looked after.
  class Ward {
   public:
    virtual ~Ward() = default;
    /// On the caretaker's thread, once a second and after wake().
    virtual void look_after() = 0;
  };

  static Caretaker& instance();

  void add(Ward& ward);
  /// When it returns look_after() does not run and will not be called again. Not from within look_after().
  void remove(Ward& ward);
  /// Soon, rather than within a second. Neither waits nor allocates.
  void wake();

 private:
  struct State;
  Caretaker();
  static void run(State& state);
  State* state_;  ///< never freed: the thread may be there when the process ends
};

}  // namespace uet::dpdk
