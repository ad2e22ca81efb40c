// The READs of a target for rendezvous, without the part that matches messages. [SES 9]
#include "ses/rx_fetches.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "tests/ses/fabric.h"

namespace uet::ses::testing {
namespace {

SesConfig four_fetches() {
  SesConfig c;
  c.rendezvous = true;
  c.max_fetches = 4;
  return c;
}

/// The Transmitter that issues the READs.
struct FetchesTest : ::testing::Test, Fetcher {
  FetchesTest() : core(four_fetches(), 1024, net::FabricAddress::from_v4(0x0a000002), rng, trace) {
    core.fetcher = this;
    endpoint = *core.endpoints.open(now, {}, sink);
    clock.advance(now);
  }
  bool fetch(Instant, Fetch& f, const FetchRequest& request) override {
    if (asked.size() >= room) return false;
    asked.push_back({&f, request.length});
    return true;
  }
  void give_up(Instant, Fetch&) override {}

  /// A message of 4096 bytes of source `n`, of which 96 came with its header and a receive has all the room.
  UnexpectedMessage& message_of(std::uint32_t n) {
    const auto address = net::FabricAddress::from_v4(0x0a000100 + n);
    UnexpectedMessage& u = messages.emplace_back();
    u.endpoint = endpoint;
    u.sender = senders.find_or_make(endpoint->id, address, clock.ns(), true);
    u.header.source = address;
    u.receive = &receive;
    u.length = 4096;
    u.rest.eager = 96;
    u.rest.limit = 4096;
    u.is_rendezvous = true;
    senders.hold(*u.sender);
    fetches.join(u);
    return u;
  }
  UnexpectedMessage& ask_for(std::uint32_t n) {
    UnexpectedMessage& u = message_of(n);
    fetches.ask(now, u);
    return u;
  }
  Fetches::End end(std::size_t i, ReturnCode code = ReturnCode::kOk) {
    return fetches.on_fetched(now, *asked[i].fetch, code);
  }
  void wait(Duration time) {
    for (Duration done; done < time; done = done + Duration::from_seconds(1))
      clock.advance(now = now + Duration::from_seconds(1));
  }

  struct Asked {
    Fetch* fetch;
    std::uint64_t length;
  };
  Instant now = Instant::from_ns(1'000'000);
  base::Rng rng{1};
  base::Trace trace;
  Recorder sink;
  Receive receive;
  std::vector<Asked> asked;
  std::size_t room = 100;
  std::deque<UnexpectedMessage> messages;
  Core core;
  Endpoint* endpoint = nullptr;
  LoopClock clock;
  SenderTable senders{16, 4, Duration::from_seconds(60), core.hash_key};
  Fetches fetches{core, senders, clock};
};

TEST_F(FetchesTest, ask__one_packet_first_and_then_the_rest) {
  UnexpectedMessage& u = ask_for(1);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].length, 1024u);
  EXPECT_FALSE(end(0).is_over);
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[1].length, 4096u - 96 - 1024);
  const Fetches::End whole = end(1);
  EXPECT_TRUE(whole.is_over);
  EXPECT_EQ(whole.message, &u);
  EXPECT_EQ(whole.code, ReturnCode::kOk);
  fetches.leave(u);
  EXPECT_EQ(fetches.messages(), 0u);
}

TEST_F(FetchesTest, ask__no_source_has_all_places) {
  for (int i = 0; i < 4; ++i) ask_for(1);
  EXPECT_EQ(asked.size(), 2u);
  ask_for(2);
  EXPECT_EQ(asked.size(), 3u);
}

TEST_F(FetchesTest, serve__begins_what_the_transmitter_had_no_room_for) {
  room = 0;
  UnexpectedMessage& u = ask_for(1);
  EXPECT_TRUE(u.waits_for_fetch);
  room = 1;
  fetches.serve(now);
  EXPECT_FALSE(u.waits_for_fetch);
  EXPECT_EQ(u.fetch, asked[0].fetch);
}

TEST_F(FetchesTest, on_fetched__with_an_error_names_the_message) {
  UnexpectedMessage& u = ask_for(1);
  const Fetches::End failed = end(0, ReturnCode::kUndeliverable);
  EXPECT_TRUE(failed.is_over);
  EXPECT_EQ(failed.message, &u);
  EXPECT_EQ(failed.code, ReturnCode::kUndeliverable);
}

TEST_F(FetchesTest, on_fetched__of_a_message_that_has_left_gives_its_place_to_the_next) {
  UnexpectedMessage& first = ask_for(1);
  ask_for(1);
  UnexpectedMessage& waiting = ask_for(1);
  EXPECT_TRUE(waiting.waits_for_fetch);
  fetches.leave(first);
  const Fetches::End over = end(0);
  EXPECT_TRUE(over.is_over);
  EXPECT_EQ(over.message, nullptr);
  fetches.serve(now);
  EXPECT_FALSE(waiting.waits_for_fetch);
}

TEST_F(FetchesTest, restart__is_asked_for_once_and_found_by_its_token) {
  UnexpectedMessage& u = message_of(1);
  u.is_deferred = true;
  fetches.ask(now, u);
  ASSERT_EQ(asked.size(), 1u);
  const std::uint32_t token = asked[0].fetch->token;
  EXPECT_EQ(fetches.find_restart(token), asked[0].fetch);
  EXPECT_EQ(fetches.find_restart(token + 1), nullptr);
  EXPECT_EQ(fetches.find_restart(0), nullptr);
  EXPECT_FALSE(end(0).is_over);  // its initiator will send it
  fetches.leave(u);
  EXPECT_EQ(fetches.find_restart(token), nullptr);
}

TEST_F(FetchesTest, take_idle__a_source_that_sends_nothing) {
  UnexpectedMessage& u = ask_for(1);
  UnexpectedMessage& lively = ask_for(2);
  wait(core.config.message_idle);
  lively.fetch->placed = 100;
  const Fetches::Idle idle = fetches.take_idle();
  EXPECT_EQ(idle.message, &u);
  EXPECT_EQ(idle.under_way, asked[0].fetch);
  EXPECT_EQ(u.fetch, nullptr);
  EXPECT_EQ(fetches.take_idle().message, nullptr);
}

// Sources that died had all places for as long as a source may be silent.
TEST_F(FetchesTest, find_idle_waiting__not_when_the_turn_of_its_source_has_just_come) {
  for (std::uint32_t n = 1; n <= 4; ++n) ask_for(n);
  ASSERT_EQ(asked.size(), 4u);
  UnexpectedMessage& first = ask_for(5);
  UnexpectedMessage& second = ask_for(5);
  wait(core.config.message_idle);
  fetches.leave(*fetches.take_idle().message);
  end(0, ReturnCode::kCancelled);
  fetches.serve(now);
  EXPECT_FALSE(first.waits_for_fetch);
  EXPECT_EQ(fetches.find_idle_waiting(), nullptr);
  wait(core.config.message_idle);
  EXPECT_EQ(fetches.find_idle_waiting(), &second);
}

TEST_F(FetchesTest, find_idle_waiting__a_turn_that_could_not_begin_is_no_sign_of_life) {
  room = 0;
  UnexpectedMessage& u = ask_for(1);
  wait(core.config.message_idle);
  fetches.serve(now);
  EXPECT_EQ(fetches.find_idle_waiting(), &u);
}

TEST_F(FetchesTest, find_idle_waiting__behind_others_of_its_source) {
  ask_for(1);
  ask_for(1);
  UnexpectedMessage& waiting = ask_for(1);
  EXPECT_EQ(fetches.find_idle_waiting(), nullptr);
  wait(core.config.message_idle);
  EXPECT_EQ(fetches.find_idle_waiting(), &waiting);
  fetches.leave(waiting);
  EXPECT_EQ(fetches.find_idle_waiting(), nullptr);
}

}  // namespace
}  // namespace uet::ses::testing
