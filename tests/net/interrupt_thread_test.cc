/// EAL's interrupt thread: what is posted to it, and what it hears of connections.

#include <rte_interrupts.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <utility>

#include "lib/dpdk/closing_numbers.h"
#include "lib/dpdk/guest_thread.h"
#include "lib/dpdk/interrupt_gate.h"
#include "lib/dpdk/interrupt_thread.h"
#include "tests/net/dpdk_guest.h"

namespace uet::dpdk {
namespace {

// The last member that leaves opens the gate; one that joins before the thread has noticed must not find it shut for ever.
TEST_F(DpdkGuestTest, interrupt_thread__gets_through_however_members_come_and_go) {
  for (int i = 0; i < 300; ++i) {
    InterruptGate::Member member;
    member.join();
    InterruptGate::instance().let_through();
    member.leave();
    member.join();
    bool has_run = false;
    run_on_interrupt_thread([&] { has_run = true; });
    ASSERT_TRUE(has_run);
  }
}

TEST_F(DpdkGuestTest, work_for_other_threads__that_finds_no_memory_throws_in_its_caller) {
  const auto fails = [] { throw std::bad_alloc(); };
  EXPECT_THROW(run_on_guest_thread(fails), std::bad_alloc);
  EXPECT_THROW(run_on_interrupt_thread(fails), std::bad_alloc);
  bool has_run = false;
  run_on_interrupt_thread([&] { has_run = true; });
  EXPECT_TRUE(has_run);
}

/// A connection of which EAL's interrupt thread hears. It counts what it hears, and does what it was told to do then.
class HeardConnection {
 public:
  HeardConnection() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends_), 0);
    handle_ = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
    rte_intr_fd_set(handle_, ends_[0]);
    rte_intr_type_set(handle_, RTE_INTR_HANDLE_EXT);
    EXPECT_EQ(rte_intr_callback_register(handle_, on_event, this), 0);
  }
  ~HeardConnection() {
    forget();
    rte_intr_instance_free(handle_);
    for (const int fd : ends_)
      if (fd >= 0) close(fd);
  }
  void speak() { EXPECT_EQ(send(ends_[1], "!", 1, 0), 1); }
  /// As the memif driver ends a connection.
  void end() {
    forget();
    close(std::exchange(ends_[0], -1));
  }
  std::atomic<int> heard{0};
  std::function<void()> then;

 private:
  void forget() {
    if (ends_[0] >= 0) rte_intr_callback_unregister(handle_, on_event, this);
  }
  static void on_event(void* self) {
    auto* const connection = static_cast<HeardConnection*>(self);
    char byte = 0;
    if (recv(connection->ends_[0], &byte, 1, MSG_DONTWAIT) < 0) byte = 0;
    ++connection->heard;
    if (connection->then) connection->then();
  }

  int ends_[2] = {-1, -1};
  rte_intr_handle* handle_ = nullptr;
};

// Both have something to say when the thread asks, so whichever comes first ends the other, whose event is still to come.
TEST_F(DpdkGuestTest, connection_that_is_ended__leaves_its_event_to_no_other) {
  HeardConnection first, second;
  std::unique_ptr<HeardConnection> next;
  const auto end_the_other = [&](HeardConnection& other) {
    if (next != nullptr) return;
    close_connections([&] { other.end(); });
    next = std::make_unique<HeardConnection>();
  };
  first.then = [&] { end_the_other(second); };
  second.then = [&] { end_the_other(first); };
  run_on_interrupt_thread([&] {
    first.speak();
    second.speak();
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (first.heard + second.heard == 0 && std::chrono::steady_clock::now() < deadline)
    run_on_interrupt_thread([] {});
  for (int i = 0; i < 10; ++i) run_on_interrupt_thread([] {});
  ASSERT_TRUE(next);
  EXPECT_EQ(first.heard + second.heard, 1);
  EXPECT_EQ(next->heard, 0);
}

}  // namespace
}  // namespace uet::dpdk
