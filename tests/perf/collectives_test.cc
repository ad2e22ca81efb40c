#include "apps/perf/collectives.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

namespace uet::perf {
namespace {

/// Messages between threads. What is sent is copied at once, so that a receive may come later.
class Mailbox {
 public:
  using Key = std::tuple<unsigned, unsigned, std::uint64_t>;  ///< from, to, tag

  void put(const Key& key, const std::uint8_t* from, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(messages_.emplace(key, std::vector<std::uint8_t>(from, from + bytes)).second)
        << "a tag was used twice";
    changed_.notify_all();
  }
  std::vector<std::uint8_t> take(const Key& key) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return messages_.contains(key); });
    return std::move(messages_.extract(key).mapped());
  }
  bool is_empty() const { return messages_.empty(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, std::vector<std::uint8_t>> messages_;
};

class ThreadGroup final : public Group {
 public:
  ThreadGroup(Mailbox& mailbox, unsigned rank, unsigned size)
      : mailbox_(mailbox), rank_(rank), size_(size) {}
  unsigned rank() const override { return rank_; }
  unsigned size() const override { return size_; }
  Ticket send(unsigned to, std::uint64_t tag, const std::uint8_t* from,
              std::size_t bytes) override {
    mailbox_.put({rank_, to, tag}, from, bytes);
    waiting_.push_back({});
    return waiting_.size() - 1;
  }
  Ticket receive(unsigned from, std::uint64_t tag, std::uint8_t* to, std::size_t bytes) override {
    waiting_.push_back({{from, rank_, tag}, to, bytes});
    return waiting_.size() - 1;
  }
  void wait(Ticket ticket) override {
    Waiting& w = waiting_.at(ticket);
    if (w.to == nullptr) return;
    const auto message = mailbox_.take(w.key);
    ASSERT_EQ(message.size(), w.bytes);
    std::memcpy(std::exchange(w.to, nullptr), message.data(), w.bytes);
  }

 private:
  struct Waiting {
    Mailbox::Key key;
    std::uint8_t* to = nullptr;
    std::size_t bytes = 0;
  };
  Mailbox& mailbox_;
  unsigned rank_, size_;
  std::vector<Waiting> waiting_;
};

/// Wrong elements over all members after two runs in a row.
std::size_t wrong_elements(const CollectiveShape& shape) {
  Mailbox mailbox;
  std::vector<std::size_t> wrong(shape.members, 0);
  std::vector<std::thread> members;
  for (unsigned rank = 0; rank < shape.members; ++rank)
    members.emplace_back([&, rank] {
      ThreadGroup group(mailbox, rank, shape.members);
      const std::size_t width = shape.elements.bytes();
      std::vector<std::uint8_t> in(shape.count_in() * width), out(shape.count_out() * width, 0xee);
      std::vector<std::uint8_t> scratch(shape.scratch_bytes());
      for (std::uint64_t number = 0; number < 4; number += 2) {
        const auto seed = static_cast<unsigned>(number);
        for (std::size_t i = 0; i < shape.count_in(); ++i)
          shape.elements.store(&in[i * width], shape.given(rank, i, seed));
        run_barrier(group, number, scratch.data());
        run_collective(shape, group, number + 1, in.data(), out.data(), scratch.data());
        for (std::size_t i = 0; i < shape.count_out(); ++i)
          wrong[rank] += shape.elements.load(&out[i * width]) != shape.expected(rank, i, seed);
      }
    });
  for (std::thread& member : members) member.join();
  EXPECT_TRUE(mailbox.is_empty());
  std::size_t sum = 0;
  for (const std::size_t w : wrong) sum += w;
  return sum;
}

Elements elements(std::string_view type, std::string_view reduction) {
  return *Elements::of(type, reduction);
}

TEST(PerfCollectivesTest, every_operation_gives_every_member_its_result) {
  for (const std::string_view name : kCollectives)
    for (const unsigned members : {1u, 2u, 3u, 4u, 7u})
      for (const std::size_t part : {std::size_t{1}, std::size_t{5}})
        EXPECT_EQ(
            wrong_elements({std::string(name), elements("float", "sum"), part * members, members}),
            0u)
            << name << " of " << members << ", " << part << " elements a part";
}

TEST(PerfCollectivesTest, trees_hand_on_many_pieces) {
  for (const char* name : {"all-reduce-tree", "broadcast"})
    EXPECT_EQ(wrong_elements({name, elements("int32", "sum"), 5 * 200'001, 5}), 0u) << name;
}

TEST(PerfCollectivesTest, types_and_reductions) {
  for (const std::string_view type : kElementTypes)
    for (const std::string_view reduction : kReductions)
      for (const char* name : {"all-reduce-ring", "all-reduce-tree", "reduce-scatter"})
        EXPECT_EQ(wrong_elements({name, elements(type, reduction), 21, 3}), 0u)
            << name << type << reduction;
  EXPECT_FALSE(Elements::of("half", "sum"));
  EXPECT_FALSE(Elements::of("float", "xor"));
}

TEST(PerfCollectivesTest, expected__says_what_each_member_holds) {
  const CollectiveShape sum{"all-reduce-ring", elements("float", "sum"), 4, 2};
  EXPECT_EQ(sum.expected(1, 3, 5), sum.given(0, 3, 5) + sum.given(1, 3, 5));
  const CollectiveShape gather{"all-gather", elements("float", "sum"), 4, 2};
  EXPECT_EQ(gather.expected(0, 3, 5), gather.given(1, 1, 5));
  const CollectiveShape exchange{"all-to-all", elements("float", "sum"), 4, 2};
  EXPECT_EQ(exchange.expected(1, 0, 5), exchange.given(0, 2, 5));
}

TEST(PerfCollectivesTest, bus_factor__is_the_share_that_each_link_carries) {
  const auto factor = [](const char* name) {
    return CollectiveShape{name, elements("float", "sum"), 4, 4}.bus_factor();
  };
  EXPECT_EQ(factor("all-reduce-ring"), 1.5);
  EXPECT_EQ(factor("all-reduce-tree"), 1.5);
  EXPECT_EQ(factor("reduce-scatter"), 0.75);
  EXPECT_EQ(factor("broadcast"), 1);
}

TEST(PerfCollectivesTest, run_numbers__begin_anew_below_their_bounds) {
  RunNumbers numbers;
  const auto first = numbers.next(3);
  EXPECT_EQ(numbers.next(3).number, first.number + 4) << "the barrier has one, each call its own";
  RunNumbers::Run run;
  for (unsigned n = 2; n < RunNumbers::kSeeds; ++n) run = numbers.next(1);
  EXPECT_EQ(run.seed, RunNumbers::kSeeds - 1);
  EXPECT_EQ(numbers.next(1).seed, first.seed);
  constexpr std::uint64_t kMany = 1'000'000'000;
  for (int n = 0; n < 100; ++n) {
    run = numbers.next(kMany);
    EXPECT_LT(run.number + kMany, RunNumbers::kNumbers);
    EXPECT_GT(run.number, 0u);
  }
}

}  // namespace
}  // namespace uet::perf
