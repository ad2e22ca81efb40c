#include "provider/left_work.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "provider/lock.h"

namespace uet::provider {
namespace {

struct Work final : LeftWork {
  bool carry_out() override {
    ++times;
    return is_over;
  }
  int times = 0;
  bool is_over = true;
};

std::vector<LeftWork*> take_all(LeftWorkList& list) {
  std::vector<LeftWork*> out;
  list.take([&](LeftWork& work) {
    out.push_back(&work);
    return work.carry_out();
  });
  return out;
}

TEST(LeftWorkList, is_taken_once_in_the_order_of_the_pushes) {
  LeftWorkList list;
  std::array<Work, 3> works;
  for (Work& work : works) list.push(work);
  list.push(works[0]);
  EXPECT_EQ(take_all(list), (std::vector<LeftWork*>{&works[0], &works[1], &works[2]}));
  EXPECT_TRUE(list.empty());
  EXPECT_TRUE(take_all(list).empty());
}

TEST(LeftWorkList, what_is_not_over_is_asked_again) {
  LeftWorkList list;
  Work waits, ends;
  waits.is_over = false;
  list.push(waits);
  list.push(ends);
  take_all(list);
  EXPECT_FALSE(list.empty());
  waits.is_over = true;
  EXPECT_EQ(take_all(list), (std::vector<LeftWork*>{&waits}));
  EXPECT_EQ(ends.times, 1);
}

TEST(LeftWorkList, forgets_one_and_keeps_the_others) {
  LeftWorkList list;
  Work gone, stays;
  list.push(gone);
  list.push(stays);
  list.forget(gone);
  EXPECT_EQ(take_all(list), (std::vector<LeftWork*>{&stays}));
  EXPECT_EQ(gone.times, 0);
}

TEST(Lock, who_tells_the_holder_need_not_wait_for_it) {
  Lock lock;
  lock.lock();
  EXPECT_FALSE(lock.tell_or_lock());
  EXPECT_FALSE(lock.unlock_unless_told());
  lock.hear();
  EXPECT_TRUE(lock.unlock_unless_told());
  EXPECT_TRUE(lock.tell_or_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.hear();
  EXPECT_TRUE(lock.unlock_unless_told());
  EXPECT_TRUE(lock.try_lock());
}

// Without hear() and unlock_unless_told() some of what was pushed just before the lock came free would stay.
TEST(Lock, nothing_that_was_left_stays_behind) {
  constexpr int kRounds = 20'000;
  Lock lock;
  LeftWorkList list;
  int carried_out = 0;  // with the lock held
  struct Counted final : LeftWork {
    bool carry_out() override {
      carried_out += pushed.exchange(0);
      return true;
    }
    explicit Counted(int& all) : carried_out(all) {}
    int& carried_out;
    std::atomic<int> pushed{0};
  };
  const auto give_back = [&] {
    while (true) {
      list.take([](LeftWork& work) { return work.carry_out(); });
      if (lock.unlock_unless_told()) return;
      lock.hear();
    }
  };
  const auto leave = [&] {
    Counted own(carried_out);
    for (int i = 0; i < kRounds; ++i) {
      own.pushed.fetch_add(1);
      list.push(own);
      if (lock.tell_or_lock()) give_back();
    }
    while (own.pushed != 0) std::this_thread::yield();
    lock.lock();
    list.forget(own);
    give_back();
  };
  std::thread first(leave), second(leave);
  first.join();
  second.join();
  EXPECT_EQ(carried_out, 2 * kRounds);
  EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace uet::provider
