/// What calls do while another thread has the loop: that thread is caught in the middle of a call that copies from a page
/// which may not be read.
#include <sys/mman.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>

#include "provider/post_queue.h"
#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

constexpr std::size_t kPage = 4096;

/// Memory that holds up the first thread which reads or writes it, until it is opened.
class Trap {
 public:
  Trap()
      : page_(static_cast<std::uint8_t*>(
            mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    std::memset(page_, 'A', kPage);
    mprotect(page_, kPage, PROT_NONE);
    current = this;
    struct sigaction action {};
    action.sa_handler = [](int) { current->hold(); };
    sigaction(SIGSEGV, &action, &before_);
  }
  ~Trap() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(page_, kPage);
  }
  Trap(const Trap&) = delete;
  Trap& operator=(const Trap&) = delete;

  std::uint8_t* memory() const { return page_; }
  void wait_until_caught() const {
    while (!caught_) std::this_thread::yield();
  }
  void open() { opened_ = true; }

 private:
  void hold() {
    caught_ = true;
    while (!opened_) sched_yield();
    mprotect(page_, kPage, PROT_READ | PROT_WRITE);
  }
  static inline Trap* current = nullptr;
  std::uint8_t* const page_;
  struct sigaction before_ {};
  std::atomic<bool> caught_{false}, opened_{false};
};

/// Two endpoints; while `during` runs another thread of side a has the loop.
class LoopTakenTest : public PairTest {
 protected:
  /// Too many for a message that is left: its thread waits for the loop, which the watchdog may have just then.
  static constexpr std::size_t kTrapBytes = PostQueue::kMostInjected + 1;

  template <typename During>
  void while_taken(During&& during) {
    Trap trap;
    while_caught_in(
        trap, [&] { EXPECT_EQ(fi_tinject(a.ep, trap.memory(), kTrapBytes, to_b, kTrapTag), 0); },
        during);
  }
  /// `during` runs while another thread is caught in `call`, which runs into the trap.
  template <typename Call, typename During>
  void while_caught_in(Trap& trap, Call&& call, During&& during) {
    std::thread holder(call);
    trap.wait_until_caught();
    during();
    trap.open();
    holder.join();
  }
  void expect_message(std::uint64_t tag, char byte) {
    std::array<char, kTrapBytes> in{};
    ASSERT_EQ(fi_trecv(b.ep, in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, tag, 0, nullptr), 0);
    const Got got = wait_for(b);
    ASSERT_FALSE(got.failed);
    EXPECT_EQ(got.entry.tag, tag);
    EXPECT_EQ(in[0], byte);
  }
  static constexpr std::uint64_t kTrapTag = 1;
};

TEST_F(LoopTakenTest, sends_are_accepted_and_leave_in_order) {
  open();
  const std::array<char, 8> whole{'B', 'B', 'B', 'B', 'B', 'B', 'B', 'B'};
  int context = 0;
  while_taken([&] {
    ASSERT_EQ(fi_tsend(a.ep, whole.data(), whole.size(), nullptr, to_b, 2, &context), 0);
    std::array<char, 8> injected{'C'};
    ASSERT_EQ(fi_tinject(a.ep, injected.data(), injected.size(), to_b, 3), 0);
    injected[0] = 'X';  // its memory is the application's again
    const std::array<iovec, 2> pieces{
        {{const_cast<char*>(whole.data()), 3}, {const_cast<char*>(whole.data()) + 3, 5}}};
    ASSERT_EQ(fi_tsendv(a.ep, pieces.data(), nullptr, 2, to_b, 4, nullptr), 0);
  });
  // Any tag: they come in the order of the calls.
  std::array<char, kTrapBytes> in{};
  for (const auto& [tag, byte] : {std::pair{1, 'A'}, {2, 'B'}, {3, 'C'}, {4, 'B'}}) {
    ASSERT_EQ(fi_trecv(b.ep, in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, 0, ~0ull, nullptr), 0);
    const Got got = wait_for(b);
    EXPECT_EQ(got.entry.tag, static_cast<std::uint64_t>(tag));
    EXPECT_EQ(in[0], byte);
  }
  EXPECT_EQ(wait_for(a).entry.op_context, &context);
  EXPECT_EQ(wait_for(a).entry.op_context, nullptr);
}

TEST_F(LoopTakenTest, receives_are_accepted) {
  open();
  std::array<char, 8> in{};
  int context = 0;
  while_taken([&] {
    ASSERT_EQ(fi_trecv(a.ep, in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, 5, 0, &context), 0);
  });
  ASSERT_EQ(fi_tinject(b.ep, "DDDDDDD", 8, to_a, 5), 0);
  EXPECT_EQ(wait_for(a).entry.op_context, &context);
  EXPECT_EQ(in[0], 'D');
}

TEST_F(LoopTakenTest, more_receives_than_can_be_left_wait_and_are_not_refused) {
  open();
  constexpr std::size_t kLeft = PostQueue::kPlaces, kMore = 16;
  std::array<std::array<char, 8>, kLeft + kMore> in{};
  const auto post = [&](std::size_t i) {
    return fi_trecv(a.ep, in[i].data(), in[i].size(), nullptr, FI_ADDR_UNSPEC, i, 0, &in[i]);
  };
  std::atomic<bool> asks{false}, has_answer{false};
  std::thread poster;
  while_taken([&] {
    for (std::size_t i = 0; i < kLeft; ++i) ASSERT_EQ(post(i), 0);
    poster = std::thread([&] {
      asks = true;
      for (std::size_t i = kLeft; i < in.size(); ++i) EXPECT_EQ(post(i), 0);
      has_answer = true;
    });
    while (!asks) std::this_thread::yield();
    for (int i = 0; i < 1000 && !has_answer; ++i) std::this_thread::yield();
    EXPECT_FALSE(has_answer);
  });
  poster.join();
  for (std::size_t i = 0; i < in.size(); ++i) {
    ASSERT_EQ(fi_tinject(b.ep, "IIIIIII", 8, to_a, i), 0);
    EXPECT_EQ(wait_for(a).entry.op_context, &in[i]);
  }
}

TEST_F(LoopTakenTest, a_finished_operation_is_read_from_the_queue) {
  open();
  int context = 0;
  std::array<char, 8> in{};
  ASSERT_EQ(fi_trecv(b.ep, in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, 6, 0, nullptr), 0);
  ASSERT_EQ(fi_tsend(a.ep, "EEEEEEE", 8, nullptr, to_b, 6, &context), 0);
  wait_for(b);
  // Of all calls only fi_poll says that there is a completion, and leaves it where it is.
  fid_poll* set = nullptr;
  fi_poll_attr attr{};
  ASSERT_EQ(fi_poll_open(a.domain, &attr, &set), 0);
  ASSERT_EQ(fi_poll_add(set, &a.cq->fid, 0), 0);
  void* ready = nullptr;
  ASSERT_TRUE(turn_until([&] { return fi_poll(set, &ready, 1) == 1; }));
  ASSERT_EQ(fi_close(&set->fid), 0);
  fi_cq_tagged_entry entry{};
  while_taken([&] {
    ASSERT_EQ(fi_cq_read(a.cq, &entry, 1), 1);
    EXPECT_EQ(fi_cq_read(a.cq, &entry, 1), -FI_EAGAIN);
  });
  EXPECT_EQ(entry.op_context, &context);
  expect_message(kTrapTag, 'A');
}

TEST_F(LoopTakenTest, more_than_the_endpoint_may_have_is_refused_and_the_rest_complete) {
  const Info hints = make_hints();
  hints->tx_attr->size = 8;
  open(hints.get());
  constexpr int kRoom = 7;  // one is what the trap holds up
  while_taken([&] {
    for (int i = 0; i < kRoom; ++i)
      ASSERT_EQ(fi_tsend(a.ep, "FFFFFFF", 8, nullptr, to_b, 7, nullptr), 0);
    EXPECT_EQ(fi_tsend(a.ep, "FFFFFFF", 8, nullptr, to_b, 7, nullptr), -FI_EAGAIN);
  });
  for (int i = 0; i < kRoom; ++i) {
    expect_message(7, 'F');
    EXPECT_FALSE(wait_for(a).failed);
  }
}

TEST_F(LoopTakenTest, receives_that_were_left_take_no_room_of_transmits) {
  const Info hints = make_hints();
  hints->tx_attr->size = 8;
  open(hints.get());
  std::array<std::array<char, 8>, 16> in{};
  while_taken([&] {
    for (auto& buffer : in)
      ASSERT_EQ(fi_trecv(a.ep, buffer.data(), 8, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
    EXPECT_EQ(fi_tsend(a.ep, "JJJJJJJ", 8, nullptr, to_b, 10, nullptr), 0);
  });
  expect_message(10, 'J');
  EXPECT_FALSE(wait_for(a).failed);
}

/// No thread of the provider turns a loop.
class ManualLoopTakenTest : public LoopTakenTest {
 protected:
  ssize_t send(fid_ep* ep, std::uint64_t tag) {
    return fi_tsend(ep, "KKKKKKK", 8, nullptr, to_b, tag, nullptr);
  }
  ssize_t receive(Side& side, void* buffer, std::uint64_t tag) {
    return fi_trecv(side.ep, buffer, 8, nullptr, FI_ADDR_UNSPEC, tag, 0, nullptr);
  }

 private:
  const Variable progress_{"FI_UET_PROGRESS", "manual"};
};

TEST_F(ManualLoopTakenTest, a_send_that_lost_the_last_place_to_another_goes_out_all_the_same) {
  const Info hints = make_hints();
  hints->tx_attr->size = 1;
  open(hints.get());
  std::array<char, 8> in{};
  ASSERT_EQ(receive(b, in.data(), 11), 0);
  ASSERT_EQ(send(a.ep, 11), 0);
  Trap trap;
  ASSERT_EQ(receive(a, trap.memory(), 12), 0);
  while (!poll(b)) {  // and a is not turned
  }
  ASSERT_EQ(fi_tinject(b.ep, "LLLLLLL", 8, to_a, 12), 0);
  // The caller turns the loop for room. Its turn ends the first send, and is caught in the message that comes next.
  while_caught_in(
      trap, [&] { EXPECT_EQ(send(a.ep, 13), 0); }, [&] { ASSERT_EQ(send(a.ep, 14), 0); });
  EXPECT_EQ(receive(a, in.data(), 15), 0);
  for (const std::uint64_t tag : {13, 14}) {
    ASSERT_EQ(receive(b, in.data(), tag), 0);
    EXPECT_EQ(wait_for(b).entry.tag, tag);
  }
}

TEST_F(ManualLoopTakenTest, receives_do_not_wait_for_sends_without_a_descriptor) {
  open();
  constexpr std::size_t kDescriptors = 4096;  // SesConfig::max_sends
  fid_ep* const first = a.ep;
  std::vector<fid_ep*> others;
  for (std::size_t left = kDescriptors - 1; left > 0;) {  // the trap has one
    a.open_endpoint();
    others.push_back(a.ep);
    while (left > 0 && send(a.ep, 16) == 0) --left;
  }
  a.ep = first;
  while_taken([&] { ASSERT_EQ(send(a.ep, 17), 0); });
  std::array<char, 8> in{};
  EXPECT_EQ(send(a.ep, 18), -FI_EAGAIN);  // in the order of the calls
  EXPECT_EQ(receive(a, in.data(), 19), 0);
  for (fid_ep* other : others) ASSERT_EQ(fi_close(&other->fid), 0);
  ASSERT_EQ(receive(b, in.data(), 17), 0);
  EXPECT_EQ(wait_for(b).entry.tag, 17u);
}

TEST_F(LoopTakenTest, what_turns_out_wrong_is_a_completion_with_an_error) {
  open();
  int context = 0;
  while_taken([&] { ASSERT_EQ(fi_tsend(a.ep, "GGGGGGG", 8, nullptr, 99, 8, &context), 0); });
  const Got got = wait_for(a);
  ASSERT_TRUE(got.failed);
  EXPECT_EQ(got.error.op_context, &context);
  EXPECT_EQ(got.error.err, FI_EINVAL);
  EXPECT_EQ(got.error.flags, FI_SEND | FI_TAGGED);
}

TEST_F(LoopTakenTest, the_endpoint_is_closed_with_what_was_left) {
  open();
  while_taken([&] { ASSERT_EQ(fi_tinject(a.ep, "HHHHHHH", 8, to_b, 9), 0); });
  ASSERT_EQ(fi_close(&std::exchange(a.ep, nullptr)->fid), 0);
  expect_message(9, 'H');
}

}  // namespace
}  // namespace uet::provider::testing
