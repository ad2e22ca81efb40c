/// The library as a program outside of the tree would use it: two endpoints on loopback addresses.

#include "uet/endpoint.h"

#include <gtest/gtest.h>

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <thread>
#include <unordered_set>

#include "lib/ports/live_socket.h"
#include "tests/uet/endpoint_fixture.h"

namespace uet {
namespace {

using namespace std::chrono_literals;

using test::EndpointTest;

TEST(Endpoint, open__says_what_is_wrong) {
  std::string error;
  EXPECT_EQ(Endpoint::open({{"colour", "red"}}, error), nullptr);
  EXPECT_NE(error.find("colour"), std::string::npos);
  EXPECT_EQ(Endpoint::open({{"paths", "3"}}, error), nullptr);
  EXPECT_NE(error.find("PATHS"), std::string::npos);
}

TEST(Endpoint, open__names_misspelt_variables_once) {
  setenv("FI_UET_ADR", "127.0.77.8", 1);
  testing::internal::CaptureStderr();
  std::string error;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Endpoint::open({{"paths", "3"}}, error), nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "uet: FI_UET_ADR is no setting and is ignored; did you mean FI_UET_ADDR?\n");
  unsetenv("FI_UET_ADR");
}

TEST_F(EndpointTest, add_peer__refuses_the_other_ip_family) {
  std::string error;
  const auto v6 = Endpoint::open({{"port", "udp"}, {"addr", "::1"}}, error);
  if (v6 == nullptr) GTEST_SKIP() << error;
  EXPECT_EQ(a_->add_peer(v6->address()), std::nullopt);
  EXPECT_EQ(v6->add_peer(a_->address()), std::nullopt);
}

TEST(Endpoint, open__takes_keys_in_lower_case_alone) {
  std::string error;
  EXPECT_EQ(Endpoint::open({{"ADDR", "127.0.77.9"}}, error), nullptr);
  EXPECT_NE(error.find("lower case"), std::string::npos);
}

TEST(Endpoint, open__refuses_keys_that_only_libfabric_programs_have) {
  std::string error;
  for (const char* key : {"progress", "completion", "mr_endpoint", "allow_all_mr", "jobs"}) {
    EXPECT_EQ(Endpoint::open({{"addr", "127.0.77.9"}, {key, ""}}, error), nullptr) << key;
    EXPECT_NE(error.find("libfabric programs only"), std::string::npos) << error;
  }
  // What others of the same environment or file need is no mistake of this program.
  setenv("FI_UET_PROGRESS", "thread", 1);
  EXPECT_NE(Endpoint::open({{"addr", "127.0.77.9"}}, error), nullptr) << error;
  unsetenv("FI_UET_PROGRESS");
}

TEST(Endpoint, open__refuses_an_address_of_another_interface) {
  std::string error;
  setenv("FI_UET_IFNAME", "lo", 1);
  EXPECT_NE(Endpoint::open({{"addr", "127.0.77.9"}}, error), nullptr) << error;
  setenv("FI_UET_IFNAME", "nonexistent9", 1);
  EXPECT_EQ(Endpoint::open({{"addr", "127.0.77.9"}}, error), nullptr);
  unsetenv("FI_UET_IFNAME");
  EXPECT_NE(error.find("nonexistent9"), std::string::npos) << error;
}

TEST(Endpoint, open__ifname_says_where_a_udp_port_is) {
  std::string error;
  EXPECT_EQ(Endpoint::open({{"port", "udp"}, {"ifname", "nonexistent9"}}, error), nullptr);
  EXPECT_NE(error.find("nonexistent9"), std::string::npos) << error;
}

TEST(Endpoint, open__says_nothing_where_the_port_finds_its_address) {
  testing::internal::CaptureStderr();
  std::string error;
  const auto own = Endpoint::open({{"port", "udp:lo"}, {"udp_port", "47931"}}, error);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_NE(own, nullptr) << error;
  EXPECT_EQ(error, "");
}

TEST(Endpoint, open__takes_the_first_of_a_list_that_is_free) {
  const std::map<std::string, std::string> settings = {
      {"port", "udp"}, {"addr", "127.0.77.%r|127.0.77.5|127.0.77.6"}};
  std::string error;
  std::vector<std::unique_ptr<Endpoint>> all;
  for (const char* address : {"127.0.77.5", "127.0.77.6"}) {
    all.push_back(Endpoint::open(settings, error));
    ASSERT_NE(all.back(), nullptr) << error;
    EXPECT_NE(all.back()->address_text().find(std::string("//") + address + "/"), std::string::npos)
        << all.back()->address_text();
  }
  EXPECT_EQ(Endpoint::open(settings, error), nullptr);
  for (const char* part :
       {"127.0.77.%r", "UDP port 4793 of 127.0.77.5", "UDP port 4793 of 127.0.77.6"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
}

// [decision 168]
TEST(Endpoint, address__is_that_of_before_where_its_process_opens_it_again) {
  const std::map<std::string, std::string> one_of_a_list = {{"port", "udp"},
                                                            {"addr", "127.0.77.10|127.0.77.11"}};
  std::string error;
  auto endpoint = Endpoint::open(one_of_a_list, error);
  ASSERT_NE(endpoint, nullptr) << error;
  const Address before = endpoint->address();
  endpoint.reset();
  endpoint = Endpoint::open(one_of_a_list, error);
  ASSERT_NE(endpoint, nullptr) << error;
  EXPECT_EQ(endpoint->address(), before);
}

TEST_F(EndpointTest, messages__arrive_with_their_tag) {
  const std::string text = "hello, fabric";
  char buffer[64] = {};
  int context = 0;
  ASSERT_EQ(b_->receive(0x40, 0x0f, buffer, sizeof buffer, &context), Post::kAccepted);
  ASSERT_EQ(a_->send(b_at_a_, 0x45, text.data(), text.size(), nullptr), Post::kAccepted);
  const Completion received = finish(*b_);
  EXPECT_TRUE(received.ok) << received.reason;
  EXPECT_EQ(received.operation, Operation::kReceive);
  EXPECT_EQ(received.tag, 0x45u);
  EXPECT_EQ(received.context, &context);
  EXPECT_EQ(std::string(buffer, received.length), text);
  EXPECT_TRUE(finish(*a_).ok);
}

// What can never be accepted says so: a program that tries again would do so for ever.
TEST_F(EndpointTest, send__to_an_unknown_peer_is_refused_with_a_reason) {
  EXPECT_EQ(a_->send(Peer(), 1, "x", 1, nullptr), Post::kRefused);
  EXPECT_NE(std::string(a_->why_not()), "");
  EXPECT_EQ(a_->send(b_at_a_, 1, "x", 1, nullptr), Post::kAccepted);
  EXPECT_EQ(std::string(a_->why_not()), "");
}

TEST_F(EndpointTest, send__says_that_a_peer_takes_one_packet_in_order) {
  Address ai = b_->address();
  ai[2] = 0;
  ai[3] = 1;  // the AI Base profile, and nothing else of this implementation
  const auto peer = a_->add_peer(ai);
  ASSERT_TRUE(peer) << a_->why_not();
  const std::vector<char> large(100'000);
  EXPECT_EQ(a_->send(*peer, 1, large.data(), large.size(), nullptr), Post::kRefused);
  EXPECT_NE(std::string(a_->why_not()).find("one packet"), std::string::npos) << a_->why_not();
  EXPECT_EQ(a_->send(*peer, 1, large.data(), 500, nullptr), Post::kAccepted);
}

// The first peer of each endpoint has the same number in it.
TEST_F(EndpointTest, send__refuses_the_peer_of_another_endpoint) {
  const auto a_at_b = b_->add_peer(a_->address());
  ASSERT_TRUE(a_at_b);
  EXPECT_NE(*a_at_b, b_at_a_);
  EXPECT_EQ(a_->send(*a_at_b, 1, "x", 1, nullptr), Post::kRefused);
  EXPECT_NE(std::string(a_->why_not()), "");
  EXPECT_FALSE(a_->remove_peer(*a_at_b));
  EXPECT_EQ((std::unordered_set<Peer>{*a_at_b, b_at_a_, b_at_a_}.size()), 2u);
}

TEST_F(EndpointTest, calls__refuse_null_with_a_size) {
  char byte = 0;
  const auto window = b_->open_window(&byte, 1);
  ASSERT_TRUE(window);
  EXPECT_EQ(a_->send(b_at_a_, 1, nullptr, 1, nullptr), Post::kRefused);
  EXPECT_NE(std::string(a_->why_not()).find("null"), std::string::npos);
  EXPECT_EQ(a_->receive(1, 0, nullptr, 1, nullptr), Post::kRefused);
  EXPECT_EQ(a_->write(b_at_a_, *window, 0, nullptr, 1, nullptr), Post::kRefused);
  EXPECT_EQ(a_->read(b_at_a_, *window, 0, nullptr, 1, nullptr), Post::kRefused);
  EXPECT_FALSE(a_->open_window(nullptr, 1));
  EXPECT_NE(std::string(a_->why_not()).find("null"), std::string::npos);
  EXPECT_EQ(a_->send(b_at_a_, 1, nullptr, 0, nullptr), Post::kAccepted);
}

// Long and short messages in turns: without an order the short ones overtake.
TEST_F(EndpointTest, sends__meet_receives_in_their_order) {
  constexpr std::size_t kCount = 40, kLong = 200'000;
  std::vector<std::vector<char>> in(kCount, std::vector<char>(kLong)), out(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    out[i].assign(i % 2 == 0 ? kLong : 8, static_cast<char>(i));
    ASSERT_EQ(b_->receive(7, 0, in[i].data(), kLong, nullptr), Post::kAccepted);
  }
  for (const auto& message : out)
    ASSERT_EQ(a_->send(b_at_a_, 7, message.data(), message.size(), nullptr), Post::kAccepted);
  for (std::size_t i = 0; i < kCount; ++i) EXPECT_TRUE(finish(*b_).ok);
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(in[i].front(), static_cast<char>(i));
    EXPECT_EQ(in[i][out[i].size() - 1], static_cast<char>(i));
  }
}

TEST_F(EndpointTest, receive__names_a_sender_that_was_added) {
  const auto a_at_b = b_->add_peer(a_->address());
  ASSERT_TRUE(a_at_b);
  char buffer[8];
  ASSERT_EQ(b_->receive(1, 0, buffer, sizeof buffer, nullptr), Post::kAccepted);
  ASSERT_EQ(a_->send(b_at_a_, 1, "x", 1, nullptr), Post::kAccepted);
  const Completion received = finish(*b_);
  EXPECT_EQ(received.from, a_at_b);
  EXPECT_EQ(received.sender, a_->address());
  EXPECT_EQ(b_->add_peer(received.sender), a_at_b);
  const Completion sent = finish(*a_);
  EXPECT_EQ(sent.from, std::nullopt);
}

TEST_F(EndpointTest, receive__tells_the_address_of_a_stranger_that_can_be_answered) {
  char request[8], answer[8] = "";
  ASSERT_EQ(a_->receive(2, 0, answer, sizeof answer, nullptr), Post::kAccepted);
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(b_->receive(1, 0, request, sizeof request, nullptr), Post::kAccepted);
    ASSERT_EQ(a_->send(b_at_a_, 1, "x", 1, nullptr), Post::kAccepted);
    const Completion received = finish(*b_);
    ASSERT_TRUE(received.ok);
    EXPECT_EQ(received.from, std::nullopt) << "of a peer that was removed";
    EXPECT_TRUE(finish(*a_).ok);
    const auto peer = b_->add_peer(received.sender);
    ASSERT_TRUE(peer) << b_->why_not();
    ASSERT_EQ(b_->send(*peer, 2, "answer", 7, nullptr), Post::kAccepted);
    EXPECT_TRUE(b_->remove_peer(*peer));
    EXPECT_FALSE(b_->remove_peer(*peer));
    EXPECT_EQ(b_->send(*peer, 2, "answer", 7, nullptr), Post::kRefused);
    const Completion answered = finish(*a_);
    EXPECT_EQ(answered.from, b_at_a_);
    EXPECT_EQ(std::string(answer), "answer");
    EXPECT_TRUE(finish(*b_).ok);
    ASSERT_EQ(a_->receive(2, 0, answer, sizeof answer, nullptr), Post::kAccepted);
  }
}

TEST_F(EndpointTest, receive__tells_no_address_where_the_sender_has_an_id_of_its_own) {
  std::string error;
  a_ = Endpoint::open({{"addr", "127.0.77.3"}, {"initiator_id", "4294967295"}}, error);
  ASSERT_NE(a_, nullptr) << error;
  b_at_a_ = *a_->add_peer(b_->address());
  char buffer[8];
  for (int is_known = 0; is_known < 2; ++is_known) {
    ASSERT_EQ(b_->receive(1, 0, buffer, sizeof buffer, nullptr), Post::kAccepted);
    ASSERT_EQ(a_->send(b_at_a_, 1, "x", 1, nullptr), Post::kAccepted);
    const Completion received = finish(*b_);
    EXPECT_EQ(received.sender, is_known != 0 ? a_->address() : Address{});
    EXPECT_EQ(b_->add_peer(received.sender).has_value(), is_known != 0);
    ASSERT_TRUE(b_->add_peer(a_->address()));
  }
}

TEST_F(EndpointTest, remove_peer__takes_back_one_add_peer) {
  EXPECT_EQ(a_->add_peer(b_->address()), b_at_a_);
  EXPECT_TRUE(a_->remove_peer(b_at_a_));
  EXPECT_EQ(a_->send(b_at_a_, 1, "x", 1, nullptr), Post::kAccepted);
  EXPECT_TRUE(a_->remove_peer(b_at_a_));
  EXPECT_EQ(a_->send(b_at_a_, 1, "x", 1, nullptr), Post::kRefused);
  EXPECT_NE(std::string(a_->why_not()), "");
}

/// Places of peers are used again, 4,096 times each until their numbers come round.
TEST_F(EndpointTest, remove_peer__leaves_the_peer_refused_for_good) {
  const auto first = b_->add_peer(a_->address());
  ASSERT_TRUE(first);
  ASSERT_TRUE(b_->remove_peer(*first));
  for (int i = 0; i < 300'000; ++i) {
    const auto next = b_->add_peer(a_->address());
    ASSERT_TRUE(next);
    ASSERT_NE(next, first) << i;
    ASSERT_EQ(b_->send(*first, 1, "x", 1, nullptr), Post::kRefused) << i;
    ASSERT_FALSE(b_->remove_peer(*first)) << i;
    ASSERT_TRUE(b_->remove_peer(*next));
  }
}

TEST_F(EndpointTest, add_peer__has_room_again_for_what_was_removed) {
  Address other = b_->address();
  std::optional<Peer> last;
  auto add_next = [&, n = std::uint32_t{0}]() mutable {
    std::memcpy(other.data() + 12, &++n, sizeof n);  // of the initiator
    last = a_->add_peer(other);
    return last.has_value();
  };
  int added = 1;
  for (std::optional<Peer> before; add_next(); before = last) {
    ASSERT_NE(before, last);
    ++added;
  }
  EXPECT_EQ(added, 131'072);
  EXPECT_NE(std::string(a_->why_not()).find("131072 peers"), std::string::npos) << a_->why_not();
  EXPECT_TRUE(a_->remove_peer(b_at_a_));
  EXPECT_TRUE(add_next());
}

TEST_F(EndpointTest, receive__beyond_the_limit_is_refused) {
  char buffer[8];
  for (int i = 0; i < 65'536; ++i)
    ASSERT_EQ(a_->receive(1, 0, buffer, sizeof buffer, nullptr), Post::kAccepted) << i;
  EXPECT_EQ(a_->receive(1, 0, buffer, sizeof buffer, nullptr), Post::kRefused);
  EXPECT_NE(std::string(a_->why_not()).find("65536 receives"), std::string::npos);
  EXPECT_TRUE(a_->cancel(nullptr));
  EXPECT_EQ(a_->receive(1, 0, buffer, sizeof buffer, nullptr), Post::kAccepted);
}

TEST_F(EndpointTest, send__beyond_the_limit_may_be_tried_again) {
  Post post;
  while ((post = a_->send(b_at_a_, 1, "x", 1, nullptr)) == Post::kAccepted) {
  }
  EXPECT_EQ(post, Post::kTryAgain);
  EXPECT_TRUE(finish(*a_).ok);
  EXPECT_EQ(a_->send(b_at_a_, 1, "x", 1, nullptr), Post::kAccepted);
}

TEST_F(EndpointTest, cancel__takes_back_a_receive) {
  char taken[8], left[8];
  ASSERT_EQ(b_->receive(1, 0, taken, sizeof taken, taken), Post::kAccepted);
  ASSERT_EQ(b_->receive(1, 0, left, sizeof left, left), Post::kAccepted);
  EXPECT_FALSE(b_->cancel(this));
  EXPECT_NE(std::string(b_->why_not()), "");
  EXPECT_TRUE(b_->cancel(taken));
  const auto cancelled = b_->poll();
  ASSERT_TRUE(cancelled);
  EXPECT_FALSE(cancelled->ok);
  EXPECT_EQ(cancelled->context, taken);
  EXPECT_NE(std::string(cancelled->reason).find("cancel()"), std::string::npos);
  EXPECT_FALSE(b_->cancel(taken));
  ASSERT_EQ(a_->send(b_at_a_, 1, "x", 1, nullptr), Post::kAccepted);
  EXPECT_EQ(finish(*b_).context, left);
}

TEST_F(EndpointTest, write__into_a_window_that_closes_meanwhile_says_so) {
  std::vector<char> memory(8'000'000);
  const auto window = b_->open_window(memory.data(), memory.size());
  ASSERT_TRUE(window);
  ASSERT_EQ(a_->write(b_at_a_, *window, 0, memory.data(), memory.size(), nullptr), Post::kAccepted);
  while (memory.data()[0] == 0 && !a_->poll()) {
    a_->turn();
    b_->turn();
    memory.data()[0] = 1;
  }
  for (int i = 0; i < 4; ++i) {
    a_->turn();
    b_->turn();
  }
  b_->close_window(*window);
  const Completion ended = finish(*a_);
  EXPECT_FALSE(ended.ok);
  EXPECT_NE(std::string(ended.reason).find("window"), std::string::npos) << ended.reason;
}

/// A program of one thread that sleeps until one of its endpoints has something.
TEST_F(EndpointTest, wakeup_fd__one_thread_sleeps_on_two_endpoints) {
  constexpr int kRounds = 50;
  char request[8], answer[8];
  int rounds = 0, sleeps = 0;
  const auto ask = [&] {
    EXPECT_EQ(a_->receive(2, 0, answer, sizeof answer, nullptr), Post::kAccepted);
    EXPECT_EQ(b_->receive(1, 0, request, sizeof request, nullptr), Post::kAccepted);
    EXPECT_EQ(a_->send(b_at_a_, 1, "x", 1, nullptr), Post::kAccepted);
  };
  const auto react = [&](const Endpoint& at, const Completion& c) {
    EXPECT_TRUE(c.ok) << c.reason;
    if (c.operation != Operation::kReceive) return;
    if (&at == a_.get()) {
      if (++rounds < kRounds) ask();
      return;
    }
    const auto peer = b_->add_peer(c.sender);
    ASSERT_TRUE(peer);
    EXPECT_EQ(b_->send(*peer, 2, "y", 1, nullptr), Post::kAccepted);
    b_->remove_peer(*peer);
  };
  EXPECT_EQ(a_->may_sleep_for(), 0ns) << "before its first turn";
  ask();
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (rounds < kRounds && std::chrono::steady_clock::now() < end) {
    std::chrono::nanoseconds limit = 10s;
    for (auto* side : {&a_, &b_}) {
      while ((*side)->turn()) {
      }
      while (const auto completion = (*side)->poll()) react(**side, *completion);
    }
    pollfd fds[] = {{.fd = a_->wakeup_fd(), .events = POLLIN, .revents = 0},
                    {.fd = b_->wakeup_fd(), .events = POLLIN, .revents = 0}};
    for (auto* side : {&a_, &b_}) limit = std::min(limit, (*side)->may_sleep_for());
    if (limit == 0ns) continue;
    const timespec time{limit / 1s, (limit % 1s).count()};
    ppoll(fds, 2, &time, nullptr);
    ++sleeps;
  }
  EXPECT_EQ(rounds, kRounds);
  EXPECT_GT(sleeps, 0);
  EXPECT_LT(sleeps, 100 * kRounds) << "it does not sleep";
}

TEST_F(EndpointTest, may_sleep_for__is_0_while_a_completion_waits) {
  while (a_->turn()) {
  }
  EXPECT_GT(a_->may_sleep_for(), 0ns);
  char buffer[8];
  ASSERT_EQ(a_->receive(1, 0, buffer, sizeof buffer, buffer), Post::kAccepted);
  while (a_->turn()) {
  }
  EXPECT_GT(a_->may_sleep_for(), 0ns);
  ASSERT_TRUE(a_->cancel(buffer));
  while (a_->turn()) {
  }
  EXPECT_EQ(a_->may_sleep_for(), 0ns);
  EXPECT_TRUE(a_->poll());
  EXPECT_GT(a_->may_sleep_for(), 0ns);
}

TEST_F(EndpointTest, wait__takes_any_limit) {
  for (const auto limit : {std::chrono::milliseconds::min(), -9'300'000'000'000ms, -1ms, 0ms})
    EXPECT_FALSE(a_->wait(limit));
}

TEST_F(EndpointTest, wake__ends_one_wait_of_another_thread) {
  std::thread other([&] {
    std::this_thread::sleep_for(50ms);
    a_->wake();
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(a_->wait(std::chrono::milliseconds::max()));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 40ms);
  other.join();
  a_->wake();
  EXPECT_FALSE(a_->wait(1h)) << "the next one";
  EXPECT_FALSE(a_->wait(1ms));
}

TEST_F(EndpointTest, wake__makes_wakeup_fd_readable_until_the_next_turn) {
  const auto is_readable = [&] {
    pollfd fd{.fd = a_->wakeup_fd(), .events = POLLIN, .revents = 0};
    return poll(&fd, 1, 0) == 1;
  };
  EXPECT_FALSE(is_readable());
  a_->wake();
  EXPECT_TRUE(is_readable());
  a_->turn();
  EXPECT_FALSE(is_readable());
}

/// Calls meet those that turn() takes at the moment.
TEST_F(EndpointTest, wake__of_two_threads_at_once_loses_no_call) {
  constexpr int kCalls = 1'000;
  std::atomic<int> told[2] = {0, 0}, seen[2] = {0, 0};
  std::atomic<bool> is_over = false;
  const auto tell = [&](int self) {
    for (int i = 1; i <= kCalls && !is_over; ++i) {
      told[self].store(i, std::memory_order_relaxed);
      a_->wake();
      while (seen[self] < i && !is_over) std::this_thread::yield();
    }
  };
  std::thread one(tell, 0), two(tell, 1);
  const auto end = std::chrono::steady_clock::now() + 30s;
  while ((seen[0] < kCalls || seen[1] < kCalls) && std::chrono::steady_clock::now() < end) {
    a_->turn();
    for (int i = 0; i < 2; ++i) seen[i] = told[i].load(std::memory_order_relaxed);
    pollfd fd{.fd = a_->wakeup_fd(), .events = POLLIN, .revents = 0};
    const std::chrono::nanoseconds limit = a_->may_sleep_for();
    const timespec time{limit / 1s, (limit % 1s).count()};
    ppoll(&fd, 1, &time, nullptr);
  }
  is_over = true;
  one.join();
  two.join();
  EXPECT_EQ(seen[0] + seen[1], 2 * kCalls);
}

TEST_F(EndpointTest, open__says_that_this_process_may_have_the_port) {
  std::string error;
  EXPECT_EQ(Endpoint::open({{"port", "udp"}, {"addr", "127.0.77.1"}}, error), nullptr);
  EXPECT_NE(error.find("this process"), std::string::npos) << error;
}

TEST_F(EndpointTest, windows__are_written_and_read) {
  std::vector<char> memory(100'000), out(100'000, 'x'), in(100'000);
  const auto window = b_->open_window(memory.data(), memory.size());
  ASSERT_TRUE(window.has_value());
  ASSERT_EQ(a_->write(b_at_a_, *window, 0, out.data(), out.size(), nullptr), Post::kAccepted);
  EXPECT_TRUE(finish(*a_).ok);
  ASSERT_EQ(a_->read(b_at_a_, *window, 0, in.data(), in.size(), nullptr), Post::kAccepted);
  EXPECT_TRUE(finish(*a_).ok);
  EXPECT_EQ(memory, out);
  EXPECT_EQ(in, out);
  b_->close_window(*window);
  ASSERT_EQ(a_->write(b_at_a_, *window, 0, out.data(), 8, nullptr), Post::kAccepted);
  EXPECT_FALSE(finish(*a_).ok);
}

TEST_F(EndpointTest, path_log__tells_the_paths_of_a_peer) {
  const std::string path = testing::TempDir() + "endpoint_path_log";
  std::string error;
  a_ = Endpoint::open({{"port", "udp"}, {"addr", "127.0.77.3"}, {"path_log", path}}, error);
  ASSERT_NE(a_, nullptr) << error;
  b_at_a_ = *a_->add_peer(b_->address());
  std::vector<char> memory(100'000);
  const auto window = b_->open_window(memory.data(), memory.size());
  ASSERT_TRUE(window.has_value());
  ASSERT_EQ(a_->write(b_at_a_, *window, 0, memory.data(), memory.size(), nullptr), Post::kAccepted);
  EXPECT_TRUE(finish(*a_).ok);
  a_.reset();  // writes the last state
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(text.find("\"peer\":\"127.0.77.2\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"state\":\"good\""), std::string::npos) << text;
}

/// What uet-stat hears while `endpoint` does `loop` until then.
template <typename Loop>
std::string seen_from_outside(Loop loop) {
  std::atomic<bool> is_over = false;
  std::string text;
  std::thread outside([&] {
    for (const ports::LiveAnswer& answer : ports::ask_live_processes("stat", 10'000))
      text += answer.text + answer.error;
    is_over = true;
  });
  while (!is_over) loop();
  outside.join();
  return text;
}

TEST(Endpoint, is_seen_by_uet_stat_while_it_turns_and_while_it_waits) {
  const std::filesystem::path folder = testing::TempDir() + "uet_stat_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
  std::string error;
  auto endpoint = Endpoint::open({{"port", "udp"}, {"addr", "127.0.77.4"}}, error);
  ASSERT_NE(endpoint, nullptr) << error;
  for (const std::string& text :
       {seen_from_outside([&] { endpoint->turn(); }),
        seen_from_outside([&] { endpoint->wait(50ms); }), seen_from_outside([&] {
          while (endpoint->turn()) {
          }
          pollfd fd{.fd = endpoint->wakeup_fd(), .events = POLLIN};
          poll(&fd, 1, static_cast<int>(endpoint->may_sleep_for() / 1ms));
        })}) {
    EXPECT_NE(text.find(R"("address":"127.0.77.4")"), std::string::npos) << text;
    EXPECT_NE(text.find(R"("program":"uet_test")"), std::string::npos) << text;
  }
  endpoint.reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder / "uet"));
  unsetenv("XDG_RUNTIME_DIR");
  std::filesystem::remove_all(folder);
}

TEST_F(EndpointTest, add_peer__refuses_other_bytes) {
  EXPECT_FALSE(a_->add_peer({}));
  EXPECT_NE(std::string(a_->why_not()), "");
  EXPECT_FALSE(a_->add_peer(std::vector<std::uint8_t>(7)).has_value());
  EXPECT_FALSE(a_->add_peer(std::vector<std::uint8_t>(32, 0xff)).has_value());
}

}  // namespace
}  // namespace uet
