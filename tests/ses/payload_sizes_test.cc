// How long the packets of a message are, and what an endpoint says and takes a peer to mean. [WIRE 7.2, decisions 125, 162, 169]
#include "ses/payload_sizes.h"

#include <gtest/gtest.h>

#include "ses/core.h"
#include "ses/ways.h"
#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

constexpr std::uint16_t kOldSaysSmallest = 1 << kTakesPayloadShift;

TEST(PayloadSizes, device__is_told_by_the_address) {
  for (const std::uint32_t device : {1024u, 1280u, 2048u, 4096u, 8192u}) {
    EXPECT_EQ(said_payload(say_payload(device)), device);
    EXPECT_EQ(knows_ethernet_payload(say_payload(device)), device >= 1280) << device;
  }
  EXPECT_EQ(said_payload(0), 8192u) << "no word";
  EXPECT_EQ(said_payload(say_payload(4086)), 8192u) << "a simulation's";
}

TEST(PayloadSizes, Ethernet_size__is_not_known_by_one_that_was_set_to_send_less) {
  for (const std::uint32_t device : {1280u, 8192u}) {
    EXPECT_EQ(say_payload(device, 1024), say_payload(device) & ~kTakesEthernetPayload) << device;
    EXPECT_EQ(say_payload(device, 1280), say_payload(device)) << device;
  }
  EXPECT_EQ(said_payload(say_payload(1280, 1024)), 1024u);
}

TEST(PayloadSizes, address_of_before_the_Ethernet_size__says_what_it_said) {
  EXPECT_EQ(said_payload(kOldSaysSmallest), 1024u);
  EXPECT_EQ(say_payload(1280) & kTakesPayload, kOldSaysSmallest) << "and reads what it read";
  EXPECT_EQ(say_payload(1024), kOldSaysSmallest);
}

/// Every way carries the same.
struct OneWay final : Ways {
  std::uint32_t payload = 0;
  bool is_here = false;
  std::uint32_t payload_towards(Instant, const net::FabricAddress&) override { return payload; }
  bool stays_on_host(Instant, const net::FabricAddress&) override { return is_here; }
};

class PayloadToPeerTest : public ::testing::Test {
 protected:
  std::uint32_t piece(std::uint16_t fep_cap, std::uint64_t length = 100'000) {
    Peer peer;
    peer.address.fep_cap = fep_cap;
    return core.payload_to({}, peer, length);
  }

  base::Rng rng{1};
  base::Trace trace;
  Core core{SesConfig{}, 8192, net::FabricAddress::from_v4(0x0a000001), rng, trace};
  OneWay way;
};

TEST_F(PayloadToPeerTest, way_of_an_Ethernet__carries_1280_to_those_that_know_it) {
  core.ways = &way;
  way.payload = 1280;
  for (const std::uint32_t device : {1280u, 2048u, 4096u, 8192u})
    EXPECT_EQ(piece(say_payload(device)), 1280u) << device;
  EXPECT_EQ(piece(say_payload(1024)), 1024u);
  EXPECT_EQ(piece(kOldSaysSmallest), 1024u);
  EXPECT_EQ(piece(0), 1024u) << "another make, or an address made from a name";
  way.is_here = true;
  EXPECT_EQ(piece(0), 1024u);
  EXPECT_EQ(piece(say_payload(1024)), 1024u);
  EXPECT_EQ(piece(say_payload(1280)), 1280u);
}

TEST_F(PayloadToPeerTest, device_of_an_Ethernet__is_sent_1280_whatever_the_way_carries) {
  core.ways = &way;
  way.payload = 8192;
  EXPECT_EQ(piece(say_payload(1280)), 1280u);
  EXPECT_EQ(piece(kOldSaysSmallest), 1024u);
  EXPECT_EQ(piece(0), 8192u);
  way.is_here = true;
  EXPECT_EQ(piece(say_payload(1280)), 8192u) << "no device is on the way";
}

TEST_F(PayloadToPeerTest, configured_for_1280__cuts_otherwise_for_those_that_do_not_know_it) {
  core.payload_mtu = 1280;
  EXPECT_EQ(piece(say_payload(1280)), 1280u);
  EXPECT_EQ(piece(0), 1024u);
}

TEST(PayloadSizes, short_message_of_whole_KiB_over_an_Ethernet__is_cut_evenly) {
  for (const std::uint64_t length : {1024u, 2048u, 3072u, 8192u, 32'768u}) {
    EXPECT_EQ(payload_for(length, 1280), 1024u) << length;
    EXPECT_TRUE(is_cut_evenly(length, 1280)) << length;
  }
  for (const std::uint64_t length : {1281u, 2047u, 2049u, 5000u, 33'792u}) {
    EXPECT_EQ(payload_for(length, 1280), 1280u) << length;
    EXPECT_FALSE(is_cut_evenly(length, 1280)) << length;
  }
  for (const std::uint64_t length : {0u, 8u, 1023u, 1279u, 1280u, 2560u, 12'800u})
    EXPECT_TRUE(is_cut_evenly(length, 1280)) << length;
}

TEST(PayloadSizes, messages_elsewhere__are_cut_into_what_packets_carry) {
  for (const std::uint32_t payload : {1024u, 2048u, 4096u, 8192u}) {
    EXPECT_EQ(payload_for(3072, payload), payload);
    EXPECT_EQ(is_cut_evenly(3072, payload), payload != 2048);
    EXPECT_TRUE(is_cut_evenly(payload, payload));
    EXPECT_TRUE(is_cut_evenly(4 * payload, payload));
    EXPECT_FALSE(is_cut_evenly(4 * payload + 1, payload));
  }
}

// Covers: SES-33
TEST(PayloadSizes, READ_that_does_not_say_how_it_is_cut__asks_for_a_size_of_the_specification) {
  RawRequest r;
  r.opcode = wire::SesOpcode::kRead;
  r.length = 10'000;
  r.eom = false;
  const Bytes bytes = encode(r);
  RequestView view;
  for (const auto& [own, covered] :
       {std::pair{1024u, 1024u}, {1280u, 1024u}, {2048u, 2048u}, {8192u, 8192u}}) {
    ASSERT_TRUE(
        parse_request(static_cast<std::uint8_t>(wire::NextHdr::kRequestStd), bytes, own, view));
    EXPECT_EQ(view.covered, covered) << own;
  }
}

}  // namespace
}  // namespace uet::ses::testing
