// Which ordered messages an endpoint takes of which source, without the part that matches them. [SES 2.5, 7.2, decisions 106, 107]
#include "ses/gates.h"

#include <gtest/gtest.h>

#include <deque>

#include "ses/core.h"
#include "ses/header_entries.h"
#include "tests/ses/fabric.h"

namespace uet::ses::testing {
namespace {

struct RefusedTest : ::testing::Test {
  RefusedTest() : core({}, 1024, net::FabricAddress::from_v4(0x0a000002), rng, trace) {
    endpoint = *core.endpoints.open(now, {}, sink);
    clock.advance(now);
  }
  static net::FabricAddress source(std::uint32_t n) {
    return net::FabricAddress::from_v4(0x0a000100 + n);
  }
  Sender& sender(std::uint32_t n) {
    return *senders.find_or_make(endpoint->id, source(n), clock.ns(), true);
  }
  /// A message of `length` bytes of source `n`.
  RequestContext packet_of(std::uint32_t n, std::uint32_t length) {
    requests.push_back(
        {.handle = {pds::PdcRef{n}, base::Psn(1), false}, .source = source(n), .is_proven = true});
    RequestContext c{now, requests.back(), {}, {}};
    c.request.opcode = SesOpcode::kSend;
    c.request.som = true;
    c.request.request_length = length;
    c.endpoint = endpoint;
    return c;
  }
  RiSpace& space() { return endpoint->space(Space::kUntagged); }
  void wait(Duration time) {
    for (Duration done; done < time; done = done + Duration::from_seconds(1))
      clock.advance(now = now + Duration::from_seconds(1));
  }

  Instant now = Instant::from_ns(1'000'000);
  base::Rng rng{1};
  base::Trace trace;
  Recorder sink;
  std::deque<pds::RxRequest> requests;
  Core core;
  Endpoint* endpoint = nullptr;
  LoopClock clock;
  UnexpectedStore store{core.config};
  SenderTable senders{64, 4, Duration::from_seconds(60), core.hash_key};
};

struct GatesTest : RefusedTest {
  std::uint8_t generation(std::uint32_t n) {
    return gates.generation_for(endpoint, source(n), false, 77);
  }
  Gates gates{core.config, senders, clock};
};

struct HeaderEntriesTest : RefusedTest {
  void TearDown() override {
    while (UnexpectedMessage* u = space().unexpected.front()) headers.forget(*u);
  }
  UnexpectedMessage* note(std::uint32_t n, std::uint32_t length) {
    return headers.note(packet_of(n, length), space(), sender(n));
  }
  HeaderEntries headers{core.config, store, senders, clock};
};

TEST_F(GatesTest, generation_for__unknown_sources_and_closed_endpoints) {
  EXPECT_EQ(generation(1), 0);
  EXPECT_EQ(gates.generation_for(nullptr, source(1), false, 77), 77);
}

TEST_F(GatesTest, close__holds_up_one_source_until_there_is_room) {
  Sender& first = sender(1);
  const Sender& second = sender(2);
  EXPECT_EQ(gates.close(packet_of(1, 64), space(), first), ReturnCode::kDisabledGen);
  EXPECT_FALSE(first.gates[0].is_enabled);
  EXPECT_TRUE(first.gates[1].is_enabled);  // tagged messages have their own
  EXPECT_TRUE(second.gates[0].is_enabled);
  gates.open_all(space());
  EXPECT_TRUE(first.gates[0].is_enabled);
  EXPECT_EQ(generation(1), 1);
  EXPECT_EQ(generation(2), 0);
}

TEST_F(GatesTest, close__without_generations) {
  core.config.use_generations = false;
  EXPECT_EQ(gates.close(packet_of(1, 64), space(), sender(1)), ReturnCode::kDisabled);
  gates.open_all(space());
  EXPECT_EQ(generation(1), 0);
}

// What may be forged holds up its own PDC and what is not proven either, and leaves no trace.
TEST_F(GatesTest, close__by_a_source_that_proved_nothing) {
  Sender& s = sender(1);
  const RequestContext forged = packet_of(1, 64);
  requests.back().is_proven = false;
  gates.close(forged, space(), s);
  const pds::PdcRef pdc{1}, other{2};
  EXPECT_TRUE(s.gates[0].is_closed_to(pdc, true));
  EXPECT_TRUE(s.gates[0].is_closed_to(other, false));
  EXPECT_FALSE(s.gates[0].is_closed_to(other, true));
  EXPECT_EQ(gates.closed_on(other), nullptr);
  ASSERT_EQ(gates.closed_on(pdc), &s.gates[0]);
  gates.undo_close(space(), s.gates[0]);
  EXPECT_FALSE(s.gates[0].is_closed_to(pdc, true));
  EXPECT_EQ(generation(1), 0);
  EXPECT_EQ(gates.closed_on(pdc), nullptr);
  // A proven one that finds no room takes its place.
  gates.close(forged, space(), s);
  gates.close(packet_of(1, 65), space(), s);
  EXPECT_EQ(gates.closed_on(pdc), nullptr);
  EXPECT_TRUE(s.gates[0].is_closed_to(other, true));
  gates.open_all(space());
  EXPECT_EQ(generation(1), 1);
}

TEST_F(GatesTest, was_closed_for__the_same_message_alone) {
  Sender& s = sender(1);
  gates.close(packet_of(1, 64), space(), s);
  EXPECT_TRUE(gates.was_closed_for(packet_of(1, 64), s));
  EXPECT_FALSE(gates.was_closed_for(packet_of(1, 65), s));
  gates.open(space(), s.gates[0]);
  EXPECT_TRUE(s.gates[0].is_enabled);
  EXPECT_TRUE(space().closed.empty());
}

TEST_F(HeaderEntriesTest, note__is_found_when_its_message_comes_again) {
  UnexpectedMessage* u = note(1, 64);
  ASSERT_NE(u, nullptr);
  EXPECT_EQ(headers.find(packet_of(1, 64), sender(1)), u);
  EXPECT_EQ(headers.find(packet_of(1, 65), sender(1)), nullptr);
  EXPECT_EQ(headers.find(packet_of(2, 64), sender(2)), nullptr);
  EXPECT_EQ(space().unexpected.front(), u);
  headers.forget(*u);
  EXPECT_EQ(headers.find(packet_of(1, 64), sender(1)), nullptr);
  EXPECT_EQ(space().unexpected.front(), nullptr);
  EXPECT_EQ(endpoint->headers, 0u);
}

TEST_F(HeaderEntriesTest, note__a_source_and_an_endpoint_have_their_bounds) {
  core.config.overflow_headers = 20;
  std::uint32_t length = 1;
  while (note(1, length) != nullptr) ++length;
  EXPECT_EQ(headers.size(), 16u);
  while (note(2, length) != nullptr) ++length;
  EXPECT_EQ(headers.size(), 20u);
}

TEST_F(HeaderEntriesTest, find_idle__the_one_that_came_least_lately) {
  UnexpectedMessage* first = note(1, 1);
  UnexpectedMessage* second = note(1, 2);
  wait(core.config.message_idle - Duration::from_seconds(1));
  headers.touch(*first);
  EXPECT_EQ(headers.find_idle(), nullptr);
  wait(Duration::from_seconds(1));
  EXPECT_EQ(headers.find_idle(), second);
}

/// Records of senders: none keeps what every message of several packets needs from others.
struct SenderTableTest : ::testing::Test {
  static constexpr std::uint32_t kSenders = 64;
  static net::FabricAddress address(std::uint32_t n) {
    return net::FabricAddress::from_v4(0x0a010000 + n);
  }
  std::size_t hold_all(EndpointId endpoint, std::uint32_t first, bool is_proven) {
    std::size_t held = 0;
    for (std::uint32_t n = first; n < first + 2 * kSenders; ++n)
      if (Sender* s = senders.find_or_make(endpoint, address(n), 0, is_proven)) {
        senders.hold(*s);
        ++held;
      }
    return held;
  }
  const base::HashKey key{base::Rng(1)};
  SenderTable senders{kSenders, 4, Duration::from_seconds(60), key};
};

TEST_F(SenderTableTest, find_or_make__what_is_kept_at_endpoints_leaves_places_to_others) {
  EXPECT_EQ(hold_all(1, 0, false), kSenders / 8);
  EXPECT_EQ(hold_all(2, 1000, false), 0u);
  EXPECT_EQ(hold_all(1, 1000, true), kSenders / 2 - kSenders / 8);
  EXPECT_EQ(hold_all(2, 2000, true), 0u);
  EXPECT_EQ(hold_all(0, 0, true), kSenders / 2);
}

TEST_F(SenderTableTest, find_or_make__one_at_rest_makes_place_at_endpoints_too) {
  hold_all(1, 0, true);
  senders.unhold(*senders.find(1, address(7)));
  EXPECT_NE(senders.find_or_make(2, address(5000), 0, true), nullptr);
  EXPECT_EQ(senders.find(1, address(7)), nullptr);
}

}  // namespace
}  // namespace uet::ses::testing
