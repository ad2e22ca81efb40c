#include "apps/perf/control_channel.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <thread>

#include "apps/perf/tcp_connect.h"

namespace uet::perf {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

void say(int fd, const std::string& text) {
  const std::uint32_t length = htonl(static_cast<std::uint32_t>(text.size()));
  ASSERT_EQ(write(fd, &length, sizeof length), static_cast<ssize_t>(sizeof length));
  ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

/// A channel, and the bare socket at its other end.
struct Ends {
  explicit Ends(milliseconds patience = std::chrono::seconds(20)) : patience_(patience) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    peer_ = fds[1];
    channel_.emplace(fds[0], patience_);
  }
  ~Ends() { hang_up(); }
  void hang_up() {
    if (peer_ >= 0) close(peer_);
    peer_ = -1;
  }
  void peer_says(const std::string& text) { say(peer_, text); }
  void peer_says(const json& message) { peer_says(message.dump()); }
  /// What `step` throws.
  template <typename Error>
  std::string refusal(const std::function<void()>& step) {
    try {
      step();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  }

  Patience patience_;
  int peer_ = -1;
  std::optional<ControlChannel> channel_;
};

class ControlChannelTest : public testing::Test, public Ends {};

constexpr milliseconds kShort{50};

/// Of a peer that says too little.
class ImpatientChannelTest : public testing::Test, public Ends {
 protected:
  ImpatientChannelTest() : Ends(kShort) {}
};

TEST_F(ControlChannelTest, messages_arrive_in_order_whole) {
  peer_says(json{{"a", 1}});
  peer_says(json{{"b", 2}});
  EXPECT_EQ(channel_->await("a"), json({{"a", 1}}));
  EXPECT_EQ(channel_->await("b"), json({{"b", 2}}));
}

TEST_F(ImpatientChannelTest, await__silence_ends_with_what_was_waited_for) {
  EXPECT_NE(refusal<std::runtime_error>([&] {
              channel_->await("a word");
            }).find("while waiting for a word"),
            std::string::npos);
}

TEST_F(ControlChannelTest, await__a_provider_makes_progress_meanwhile) {
  int turns = 0;
  channel_->await("a word", [&] {
    if (++turns == 3) peer_says(json::object());
  });
  EXPECT_EQ(turns, 3);
}

/// Where this thread stood still for longer than its patience after the word before the last, that says nothing: then once more.
TEST(AliveTest, a_peer_that_is_alive_is_waited_for) {
  for (bool stood_still = true; stood_still;) {
    Ends ends(kShort);
    int turns = 0;
    auto latest = Patience::Clock::now(), before = latest;
    const std::string said = ends.refusal<std::runtime_error>([&] {
      ends.channel_->await("a word", [&] {
        std::this_thread::sleep_for(milliseconds(20));
        before = std::exchange(latest, Patience::Clock::now());
        if (++turns == 10) return ends.peer_says(json{{"word", 1}});
        ends.peer_says(json{{"alive", true}});
      });
    });
    stood_still = said != "nothing" && Patience::Clock::now() - before > kShort;
    EXPECT_TRUE(stood_still || said == "nothing") << said;
  }
}

TEST_F(ControlChannelTest, greet__names_another_version_of_the_protocol) {
  peer_says(json{{"uet-perf", kControlVersion + 1}});
  const std::string text = refusal<ControlLost>([&] { channel_->greet(); });
  EXPECT_NE(text.find("version " + std::to_string(kControlVersion + 1)), std::string::npos) << text;
  EXPECT_NE(text.find("version " + std::to_string(kControlVersion)), std::string::npos) << text;
}

TEST_F(ControlChannelTest, greet__names_another_command) {
  peer_says(json{{"uet-perf", kControlVersion}, {"mode", "tcp"}});
  const std::string text = refusal<ControlLost>([&] { channel_->greet("fabric"); });
  EXPECT_NE(text.find("runs uet-perf tcp, this one uet-perf fabric"), std::string::npos) << text;
}

TEST(ControlAcceptTest, strangers_are_passed_over_and_do_not_prolong_the_wait) {
  const Socket listener = listen_tcp("127.0.0.1", 0);
  const std::uint16_t port = port_of_listener(listener);
  const auto stranger = [port] { return connect_tcp("127.0.0.1", port, milliseconds(5000)); };
  { const Socket leaves_at_once = stranger(); }
  const Socket says_nothing = stranger(), speaks_otherwise = stranger();
  ASSERT_EQ(write(speaks_otherwise.fd(), "GET / HTTP/1.1", 14), 14);
  // Whose words are there before this side looks for them.
  const Socket client = stranger();
  say(client.fd(), json{{"uet-perf", kControlVersion}, {"mode", "tcp"}}.dump());
  say(client.fd(), json{{"word", 1}}.dump());
  Patience patience{milliseconds(20'000)};
  testing::internal::CaptureStderr();
  ControlChannel control = ControlChannel::accept(listener, "tcp", patience, milliseconds(50));
  EXPECT_EQ(control.await("a word"), json({{"word", 1}}));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("127.0.0.1: it sent no greeting"), std::string::npos) << said;

  Patience short_one{milliseconds(60)};
  const Socket silent[] = {stranger(), stranger(), stranger()};
  EXPECT_THROW(ControlChannel::accept(listener, "tcp", short_one, milliseconds(50)), ControlLost);
}

TEST(ControlAcceptTest, both_sides_greet) {
  const Socket listener = listen_tcp("127.0.0.1", 0);
  constexpr milliseconds kLong = std::chrono::seconds(20);
  Patience patience(kLong), of_client(kLong);
  std::thread peer([&] {
    ControlChannel::connect("127.0.0.1", port_of_listener(listener), "tcp", of_client)
        .send({{"word", 1}});
  });
  ControlChannel control = ControlChannel::accept(listener, "tcp", patience, kLong);
  EXPECT_EQ(control.await("a word"), json({{"word", 1}}));
  peer.join();
}

TEST(ControlAcceptTest, an_address_that_the_host_does_not_have_is_named) {
  try {
    listen_for_control("192.0.2.1", 0);
    FAIL();
  } catch (const ControlLost& error) {
    EXPECT_NE(std::string(error.what()).find("--listen 192.0.2.1"), std::string::npos);
  }
}

TEST_F(ControlChannelTest, what_is_not_ours_ends_the_connection) {
  for (const char* text : {"GET / HTTP/1.1", "[1]", "17", ""}) {
    Ends other;
    other.peer_says(std::string(text));
    EXPECT_NE(refusal<ControlLost>([&] { other.channel_->await("x"); }).find("not this uet-perf"),
              std::string::npos)
        << text;
  }
  const std::uint32_t huge = htonl(0x4745'5420);
  ASSERT_EQ(write(peer_, &huge, sizeof huge), static_cast<ssize_t>(sizeof huge));
  EXPECT_NE(refusal<ControlLost>([&] { channel_->await("x"); }).find("not this uet-perf"),
            std::string::npos);
}

TEST_F(ControlChannelTest, a_peer_that_leaves_is_noticed_while_something_else_is_waited_for) {
  hang_up();
  EXPECT_NE(refusal<ControlLost>([&] { channel_->look(); }).find("closed"), std::string::npos);
}

TEST_F(ControlChannelTest, the_last_words_of_a_peer_that_leaves_are_heard) {
  peer_says(json{{"failed", "no memory"}});
  hang_up();
  EXPECT_EQ(refusal<PeerFailed>([&] { channel_->look(); }), "no memory");
}

TEST_F(ControlChannelTest, settle__forgets_what_was_under_way_and_leaves_both_in_step) {
  ControlChannel other(std::exchange(peer_, -1), patience_);
  other.send({{"stale", 1}});
  std::string told;
  std::thread peer([&] { told = other.settle("mine"); });
  EXPECT_EQ(channel_->settle("yours"), "mine");
  peer.join();
  EXPECT_EQ(told, "yours");
  other.send({{"fresh", 1}});
  EXPECT_EQ(channel_->await("x"), json({{"fresh", 1}}));
}

TEST_F(ControlChannelTest, settle__keeps_what_the_peer_says_after_its_failure) {
  peer_says(json{{"stale", 1}});
  peer_says(json{{"failed", "no"}});
  peer_says(json{{"fresh", 1}});
  EXPECT_EQ(channel_->settle("yours"), "no");
  EXPECT_EQ(channel_->await("x"), json({{"fresh", 1}}));
}

TEST_F(ImpatientChannelTest, settle__a_peer_that_never_answers_is_given_up) {
  EXPECT_NE(refusal<std::runtime_error>([&] { channel_->settle("bad"); }).find("failure: bad"),
            std::string::npos);
}

TEST_F(ImpatientChannelTest, send__a_peer_that_takes_nothing_is_given_up) {
  const json much = {{"much", std::string(100'000, 'x')}};
  EXPECT_NE(refusal<std::runtime_error>([&] {
              for (int i = 0; i < 1000; ++i) channel_->send(much);
            }),
            "nothing");
}

}  // namespace
}  // namespace uet::perf
