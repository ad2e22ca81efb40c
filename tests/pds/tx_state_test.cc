// The life of an outstanding PSN against its committed matrix, and what the sender half counts of it. [PDS 4.3, 13, 14]
#include "pds/tx_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "pds/send_window.h"

namespace uet::pds {
namespace {

constexpr auto state_at(std::size_t i) {
  return static_cast<TxState>(i);
}
constexpr auto event_at(std::size_t i) {
  return static_cast<TxEvent>(i);
}

std::string tx_matrix() {
  std::ostringstream out;
  for (std::size_t s = 0; s < kTxStateCount; ++s)
    for (std::size_t e = 0; e < kTxEventCount; ++e) {
      const auto next = next_state(state_at(s), event_at(e));
      out << name_of(state_at(s)) << " + " << name_of(event_at(e)) << " = "
          << (next ? name_of(*next) : "-") << '\n';
    }
  return out.str();
}

/// For each state that a record can reach, the events that lead there.
std::map<TxState, std::vector<TxEvent>> ways() {
  std::map<TxState, std::vector<TxEvent>> found{{TxState::kUnsent, {}}};
  std::deque<TxState> open{TxState::kUnsent};
  for (; !open.empty(); open.pop_front())
    for (const TxTransition& t : kTxTransitions)
      if (t.from == open.front() && !found.contains(t.to)) {
        auto way = found[t.from];
        way.push_back(t.on);
        found[t.to] = way;
        open.push_back(t.to);
      }
  return found;
}

// A change here changes what is sent again and when: look at the diff of tests/pds/tx_matrix.txt.
TEST(TxState, matrix_is_the_committed_one) {
  std::ifstream file(UET_TX_MATRIX);
  std::stringstream committed;
  committed << file.rdbuf();
  if (std::getenv("UET_WRITE_MATRIX") != nullptr) {
    std::ofstream(UET_TX_MATRIX) << tx_matrix();
  } else {
    EXPECT_EQ(tx_matrix(), committed.str());
  }
}

TEST(TxRecord, was_asked_about__until_it_is_sent_again) {
  for (const auto& [state, way] : ways())
    for (const TxTransition& t : kTxTransitions) {
      if (t.from != state) continue;
      TxRecord record;
      bool was_asked = false;
      const auto move = [&](TxEvent on) {
        record.move(on);
        was_asked = on == TxEvent::kAsked || (was_asked && on != TxEvent::kSent);
      };
      for (const TxEvent on : way) move(on);
      move(t.on);
      EXPECT_EQ(record.was_asked_about(), was_asked) << name_of(state) << " + " << name_of(t.on);
    }
}

TEST(TxState, no_event_leads_to_two_states) {
  std::set<std::pair<TxState, TxEvent>> seen;
  for (const TxTransition& t : kTxTransitions)
    EXPECT_TRUE(seen.emplace(t.from, t.on).second) << name_of(t.from) << " + " << name_of(t.on);
}

TEST(TxState, every_state_is_reached_and_an_acknowledgement_ends_each_that_was_sent) {
  const auto reached = ways();
  EXPECT_EQ(reached.size(), kTxStateCount);
  for (const auto& [state, way] : reached) {
    const bool ends = state != TxState::kUnsent && state != TxState::kAcked;
    const auto next = next_state(state, TxEvent::kAcknowledged);
    EXPECT_EQ(next, ends ? std::optional(TxState::kAcked) : std::nullopt) << name_of(state);
  }
  for (std::size_t e = 0; e < kTxEventCount; ++e)
    EXPECT_FALSE(next_state(TxState::kAcked, event_at(e))) << name_of(event_at(e));
}

TEST(TxState, only_a_queued_packet_is_sent_again_and_only_a_queued_one_pauses) {
  for (const TxTransition& t : kTxTransitions) {
    if (t.on == TxEvent::kSent) {
      EXPECT_TRUE(t.from == TxState::kUnsent || t.from == TxState::kQueued) << name_of(t.from);
    }
    if (t.on == TxEvent::kPaused || t.on == TxEvent::kPausedForPlace) {
      EXPECT_EQ(t.from, TxState::kQueued);
    }
  }
}

TEST(TxState, each_state_is_in_one_class) {
  for (std::size_t s = 0; s < kTxStateCount; ++s) {
    const TxState state = state_at(s);
    const bool ends = state == TxState::kUnsent || state == TxState::kAcked;
    EXPECT_EQ((is_out(state) ? 1 : 0) + (has_arrived(state) ? 1 : 0) +
                  (waits_for_resend(state) ? 1 : 0) + (ends ? 1 : 0),
              1)
        << name_of(state);
    EXPECT_TRUE(has_arrived(state) || !(was_asked(state) || is_ask_due(state)));
    EXPECT_TRUE(waits_for_resend(state) || !is_paused(state));
  }
}

/// A record on the way to some state, and the counts of its sender half.
struct Walk {
  explicit Walk(const std::vector<TxEvent>& way, Message* message = nullptr) {
    record.message = message;
    for (const TxEvent event : way) SendWindow::move(tx, record, event);
  }
  TxHalf tx;
  TxRecord record;
};

TEST(TxState, the_counts_follow_every_transition) {
  Message message;
  const auto reached = ways();
  for (const TxTransition& t : kTxTransitions)
    for (Message* of : {&message, static_cast<Message*>(nullptr)}) {
      Walk w(reached.at(t.from), of);
      SendWindow::move(w.tx, w.record, t.on);
      EXPECT_EQ(w.record.state(), t.to);
      const bool queued =
          t.to == TxState::kQueued && of != nullptr;  // control packets are not counted
      EXPECT_EQ(w.tx.rtx_count, queued ? 1u : 0u) << name_of(t.from) << " + " << name_of(t.on);
      EXPECT_EQ(w.tx.paused_count, is_paused(t.to) ? 1u : 0u)
          << name_of(t.from) << " + " << name_of(t.on);
    }
}

// Nothing new is sent while a packet waits for a place, whatever else waits for something.
TEST(TxState, a_place_is_wanted_until_the_packets_that_want_one_go_on) {
  const auto reached = ways();
  const auto paused = std::find_if(reached.begin(), reached.end(), [](const auto& at) {
    return is_paused(at.first) && at.first != TxState::kPlaceWanted;
  });
  ASSERT_NE(paused, reached.end());
  TxHalf tx;
  TxRecord wants_place, pauses;
  for (const TxEvent event : reached.at(TxState::kPlaceWanted))
    SendWindow::move(tx, wants_place, event);
  for (const TxEvent event : paused->second) SendWindow::move(tx, pauses, event);
  EXPECT_EQ(tx.places_wanted, 1u);
  EXPECT_EQ(tx.paused_count, 2u);
  SendWindow::move(tx, wants_place, TxEvent::kResumed);
  EXPECT_EQ(tx.places_wanted, 0u);
  EXPECT_EQ(tx.paused_count, 1u);
}

#if UET_DCHECK_ENABLED
TEST(TxStateDeathTest, what_the_table_does_not_allow_stops_a_build_with_checks) {
  Walk w(ways().at(TxState::kAcked));
  EXPECT_DEATH(SendWindow::move(w.tx, w.record, TxEvent::kSent), "is_allowed");
}
#else
TEST(TxState, what_the_table_does_not_allow_changes_nothing) {
  const auto reached = ways();
  for (std::size_t s = 0; s < kTxStateCount; ++s)
    for (std::size_t e = 0; e < kTxEventCount; ++e) {
      if (next_state(state_at(s), event_at(e))) continue;
      Walk w(reached.at(state_at(s)));
      const std::uint32_t paused = w.tx.paused_count;
      SendWindow::move(w.tx, w.record, event_at(e));
      EXPECT_EQ(w.record.state(), state_at(s));
      EXPECT_EQ(w.tx.paused_count, paused);
    }
}
#endif

// A message is reported as certainly not delivered only when every transmission of its packets was refused.
TEST(TxRecord, is_in_doubt_from_the_copy_that_follows_one_which_was_not_refused) {
  TxRecord record;
  for (const TxEvent event : {TxEvent::kSent, TxEvent::kRefused, TxEvent::kSent})
    record.move(event);
  EXPECT_FALSE(record.is_in_doubt());
  record.move(TxEvent::kLost);
  EXPECT_FALSE(record.is_in_doubt());
  record.move(TxEvent::kSent);
  EXPECT_TRUE(record.is_in_doubt());
  record.move(TxEvent::kRefused);
  record.move(TxEvent::kSent);
  EXPECT_TRUE(record.is_in_doubt());
}

TEST(TxRecord, was_refused__is_what_ended_the_transmission_before) {
  TxRecord record;
  record.move(TxEvent::kSent);
  record.move(TxEvent::kRefused);
  EXPECT_TRUE(record.was_refused());
  record.move(TxEvent::kPaused);
  record.move(TxEvent::kResumed);
  record.move(TxEvent::kSent);
  EXPECT_TRUE(record.was_refused());
  record.move(TxEvent::kLost);
  EXPECT_FALSE(record.was_refused());
}

}  // namespace
}  // namespace uet::pds
