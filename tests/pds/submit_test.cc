// What SES submits, and what a PDC for it may cost others. No Pds. [PDS 5]
#include "pds/submit.h"

#include <gtest/gtest.h>

#include "tests/pds/life_parts.h"

namespace uet::pds::test {
namespace {

struct Submitting : Life {
  using Life::Life;
  Rudi rudi{env, scheduler, messages, shared.failed, shared.room, nacks, shared.built};
  Uud uud{env, messages, shared.failed};
  Submission submission{shared, window, proofs, life, rudi, uud};
};

PdsConfig sized(std::uint32_t pdcs) {
  PdsConfig config;
  config.max_pdc = pdcs;
  return config;
}

TEST(Submission, submit__closes_an_idle_pdc_where_there_is_no_place) {
  Submitting t(sized(4));  // one of them is for targets
  Pdc& idle = t.established(2);
  for (std::uint32_t peer = 3; peer < 5; ++peer) t.established(peer).locks = 1;
  EXPECT_EQ(t.submission.submit(kNow, Life::message_to(9)), SubmitResult::kAgain);
  EXPECT_EQ(idle.state, PdcState::kAckWait);
}

TEST(Submission, submit__keeps_to_the_pdc_of_the_message_before_while_it_takes_messages) {
  Submitting t(sized(8));
  Pdc& first = t.established(2);
  MessageToken token = 0;
  const auto submit = [&] { return t.submission.submit(kNow, Life::message_to(2, ++token)); };
  for (std::uint32_t n = 1; n <= 2; ++n) {
    EXPECT_EQ(submit(), SubmitResult::kQueued);
    EXPECT_EQ(first.tx.queued, n);
  }
  Pdc& second = t.established(2);  // another one, with less to do
  EXPECT_EQ(submit(), SubmitResult::kQueued);
  EXPECT_EQ(second.tx.queued, 1u);
  EXPECT_EQ(first.tx.queued, 2u);
  t.closing.begin(kNow, second);
  EXPECT_EQ(submit(), SubmitResult::kQueued);
  EXPECT_EQ(first.tx.queued, 3u) << "the other one closes";
}

// Its identifier would rest as well.
TEST(Submission, submit__closes_no_idle_pdc_where_all_identifiers_rest) {
  Submitting t(sized(4));
  Pdc& idle = t.established(2);
  for (std::uint32_t i = 0; i < 65'534; ++i) t.pdcs.release(kNow, *t.pdcs.allocate(kNow), Psn(1));
  EXPECT_EQ(t.submission.submit(kNow, Life::message_to(9)), SubmitResult::kAgain);
  EXPECT_EQ(idle.state, PdcState::kEstablished);
  EXPECT_EQ(t.lifecycle.next_deadline(), kNow + t.env.config.pdcid_quarantine);
}

}  // namespace
}  // namespace uet::pds::test
