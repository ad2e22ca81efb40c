// Opening PDCs. [PDS 5, 6]
#include <set>

#include "tests/pds/harness.h"

namespace uet::pds::test {
namespace {

// Covers: PDS-12
TEST(Establish, first_packet_opens_and_carries_data) {
  World w;
  w.send(0, 1);
  w.run_until_quiet();
  const auto req = w.requests(0);
  ASSERT_EQ(req.size(), 1u);
  EXPECT_TRUE(req[0].syn);
  EXPECT_EQ(req[0].psn_offset, 0);
  const auto ack = w.acks(1);
  ASSERT_EQ(ack.size(), 1u);
  EXPECT_NE(ack[0].spdcid, 0);
  EXPECT_EQ(ack[0].dpdcid, req[0].spdcid);
  EXPECT_EQ(w.host(1).ses.delivered.size(), 1u);
  EXPECT_EQ(w.host(0).ses.responses.size(), 1u);
  EXPECT_EQ(w.host(0).count(EventId::kPdcEstablished), 1u);
}

// Covers: PDS-13
TEST(Establish, syn_until_the_first_ack) {
  World w;
  w.send(0, 1, 10);
  w.run_until_quiet();
  w.send(0, 1, 3);
  w.run_until_quiet();
  const auto req = w.requests(0);
  ASSERT_EQ(req.size(), 13u);
  const auto ack = w.acks(1);
  for (unsigned i = 0; i < 10; ++i) {
    EXPECT_TRUE(req[i].syn);
    EXPECT_EQ(req[i].psn_offset, i);
  }
  for (unsigned i = 10; i < 13; ++i) {
    EXPECT_FALSE(req[i].syn);
    EXPECT_EQ(req[i].dpdcid, ack[0].spdcid);
  }
}

// Covers: PDS-16
TEST(Establish, lost_ack_of_syn_does_not_deliver_twice) {
  World w;
  w.drop_nth(1, 1, [](const Seen& s) { return s.is_ack(); });
  w.send(0, 1);
  w.run_until_quiet();
  EXPECT_EQ(w.host(1).ses.delivered.size(), 1u);
  EXPECT_EQ(w.host(0).ses.responses.size(), 1u);
  EXPECT_EQ(w.host(1).pds->gauges().pdcs_open, 1u);
  EXPECT_EQ(w.requests(0).size(), 2u);
}

}  // namespace
}  // namespace uet::pds::test
