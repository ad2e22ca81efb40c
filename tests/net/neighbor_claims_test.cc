/// Hosts that say where an address is: which of them are used, which are confirmed, and what they can make a port send.

#include "lib/wire/codec.h"
#include "tests/net/ip_port_fixture.h"

namespace uet::net {
namespace {

constexpr std::size_t kEthernet = 14;
constexpr std::size_t kIcmp = kEthernet + 40;
constexpr MacAddress kA{2, 0, 0, 0, 0, 0xa};
constexpr MacAddress kB{2, 0, 0, 0, 0, 0xb};
constexpr MacAddress kOther{2, 0, 0, 0, 0, 0xc};

/// A knows where B is.
class NeighborClaims : public IpPortTest {
 protected:
  void know_v4() {
    open_v4();
    exchange();
  }
  void know_v6() {
    open_v6();
    exchange();
  }
  void exchange() {
    send(a_, b_, "x");
    settle();
    EXPECT_TRUE(a_.port->next_deadline().is_never());
    questions();
  }

  /// An ARP message in B's name.
  void claim_v4(const MacAddress& mac, std::uint16_t operation, const FabricAddress& target,
                const FabricAddress& sender) {
    Bytes frame(kEthernet + ArpMessage::kSize);
    std::copy(kA.begin(), kA.end(), frame.begin());
    std::copy(mac.begin(), mac.end(), frame.begin() + 6);
    frame[12] = 0x08;
    frame[13] = 0x06;
    wire::emit(ArpMessage{.operation = operation,
                          .sender_mac = mac,
                          .sender_ip = sender.v4(),
                          .target_mac = kA,
                          .target_ip = target.v4()},
               frame.data() + kEthernet);
    give(std::move(frame));
  }
  void forge_answer(const MacAddress& mac) {
    claim_v4(mac, ArpMessage::kReply, address("10.0.0.1"), address("10.0.0.2"));
  }
  void ask_a(const MacAddress& mac, const char* sender = "10.0.0.2") {
    claim_v4(mac, ArpMessage::kRequest, address("10.0.0.1"), address(sender));
  }
  void claim_v6(const NeighborMessage& message) {
    Bytes frame = b_.device->sent.front();
    frame.resize(kIcmp + kNeighborMessageBytes);
    frame[kEthernet + 5] = kNeighborMessageBytes;
    emit_neighbor_message(message, address("fd00::2"), address("fd00::1"), frame.data() + kIcmp);
    give(std::move(frame));
  }
  void advertise(bool is_solicited, const MacAddress& mac) {
    claim_v6({.is_advertisement = true,
              .is_solicited = is_solicited,
              .overrides = true,
              .target = address("fd00::2"),
              .mac = mac});
  }
  void give(Bytes frame) {
    a_.device->inject(std::move(frame));
    receive(a_);
  }

  /// Questions that A sent since the last call.
  std::size_t questions() {
    std::size_t n = 0;
    for (; looked_at_ < a_.device->sent.size(); ++looked_at_) {
      const Bytes& frame = a_.device->sent[looked_at_];
      const bool is_arp = frame[12] == 0x08 && frame[13] == 0x06;
      n += is_arp ? frame[kEthernet + 7] == ArpMessage::kRequest
                  : frame[12] == 0x86 && frame[kEthernet + 6] == 58 &&
                        frame[kIcmp] == IcmpHeader::kNeighborSolicitation;
    }
    return n;
  }
  /// Sends a packet every millisecond; how many arrive.
  std::size_t talk(Duration time) {
    std::size_t arrived = 0;
    for (const Instant end = now_ + time; now_ < end;) {
      got_b_.clear();
      send(a_, b_, "data");
      advance(Duration::from_ms(1));
      settle();
      arrived += got_b_.size();
    }
    return arrived;
  }

  std::size_t looked_at_ = 0;
};

TEST_F(NeighborClaims, another_mac__is_used_and_asked_at_the_next_use) {
  know_v4();
  advance(Duration::from_seconds(1));
  forge_answer(kOther);
  EXPECT_TRUE(a_.port->next_deadline().is_never()) << "no question for one that is not used";
  EXPECT_EQ(mac_of_next(), kOther);
  questions();
  advance(Duration());
  EXPECT_EQ(questions(), 1u);
  EXPECT_EQ(a_.device->sent.back()[5], kOther[5]) << "the question goes to the new MAC";
}

// A failover, or a machine that moves.
TEST_F(NeighborClaims, another_mac__that_answers_is_confirmed) {
  know_v4();
  advance(Duration::from_seconds(1));
  forge_answer(kOther);
  mac_of_next();
  advance(Duration());
  forge_answer(kOther);
  EXPECT_TRUE(a_.port->next_deadline().is_never());
  questions();
  for (int i = 0; i < 4; ++i) {
    advance(Duration::from_seconds(1));
    EXPECT_EQ(mac_of_next(), kOther);
  }
  EXPECT_EQ(questions(), 0u);
}

TEST_F(NeighborClaims, another_mac__that_does_not_answer_costs_a_tenth_of_a_second) {
  know_v4();
  for (int i = 0; i < 3; ++i) {
    forge_answer(kOther);
    EXPECT_GE(talk(Duration::from_seconds(25)), 24'890u);
    EXPECT_EQ(mac_of_next(), kB);
  }
}

// No question may follow so soon after another one; when it may, it is for all hosts.
TEST_F(NeighborClaims, another_mac__that_does_not_answer_costs_no_more_right_after_a_question) {
  know_v4();
  for (int i = 0; i < 12; ++i) {
    // Until our question of every 5 s was sent and answered.
    questions();
    for (int ms = 0; ms < 6000 && questions() == 0; ++ms) talk(Duration::from_ms(1));
    talk(Duration::from_ms(i * 10));
    forge_answer(kOther);
    EXPECT_GE(talk(Duration::from_seconds(1)), 890u) << i * 10 << " ms after a question";
    EXPECT_EQ(mac_of_next(), kB);
    EXPECT_LE(questions(), 4u);
  }
}

TEST_F(NeighborClaims, another_mac__is_no_answer_to_a_question_by_unicast) {
  know_v4();
  advance(Duration::from_seconds(1));
  forge_answer(kOther);
  mac_of_next();
  advance(Duration());
  forge_answer({2, 0, 0, 0, 0, 0xd});
  EXPECT_FALSE(a_.port->next_deadline().is_never());
}

TEST_F(NeighborClaims, one_that_comes_again_and_again__does_not_put_off_the_broadcast) {
  know_v4();
  std::size_t arrived = 0;
  for (int i = 0; i < 100; ++i) {
    forge_answer(kOther);
    arrived += talk(Duration::from_seconds(1));
  }
  EXPECT_GE(arrived, 75'000u);
}

TEST_F(NeighborClaims, many_macs__draw_ten_questions_a_second) {
  know_v4();
  b_.device->is_cut = true;
  for (int i = 0; i < 10'000; ++i) {
    forge_answer({2, 0, 0, 0, 1, static_cast<std::uint8_t>(i)});
    send(a_, b_, "data");
    advance(Duration::from_ms(1));
  }
  EXPECT_LE(questions(), 101u);
}

TEST_F(NeighborClaims, question_of_a_neighbor__confirms_nothing) {
  know_v4();
  for (int i = 0; i < 6; ++i) {
    ask_a(kB);
    advance(Duration::from_seconds(1));
    ask_a(kB);
  }
  send(a_, b_, "data");
  advance(Duration());
  EXPECT_EQ(questions(), 1u);
}

TEST_F(NeighborClaims, question_of_a_stranger__is_answered_and_asked_back_at_the_first_use) {
  know_v4();
  ask_a(kOther, "10.0.0.3");
  EXPECT_TRUE(a_.port->next_deadline().is_never());
  send(a_, address("10.0.0.3"), "hello");
  EXPECT_EQ(a_.device->sent.back()[5], kOther[5]);
  advance(Duration());
  EXPECT_EQ(questions(), 1u);
}

// [RFC 4861 7.2.5]
TEST_F(NeighborClaims, unsolicited_advertisement__is_used_and_asked) {
  know_v6();
  advance(Duration::from_seconds(1));
  advertise(false, kOther);
  EXPECT_EQ(mac_of_next(), kOther);
  advance(Duration());
  EXPECT_EQ(questions(), 1u);
  EXPECT_GE(talk(Duration::from_seconds(1)), 890u);
}

TEST_F(NeighborClaims, solicited_advertisement__is_not_believed_unasked) {
  know_v6();
  advance(Duration::from_seconds(1));
  advertise(true, kOther);
  EXPECT_GE(talk(Duration::from_seconds(1)), 890u);
}

TEST_F(NeighborClaims, advertisement_of_the_known_mac__changes_nothing) {
  know_v6();
  advance(Duration::from_seconds(1));
  advertise(false, kB);
  EXPECT_EQ(mac_of_next(), kB);
  EXPECT_TRUE(a_.port->next_deadline().is_never());
}

// [RFC 4861 7.2.3]
TEST_F(NeighborClaims, source_of_a_solicitation__is_used_and_asked) {
  know_v6();
  advance(Duration::from_seconds(1));
  claim_v6({.target = address("fd00::1"), .mac = kOther});
  EXPECT_EQ(mac_of_next(), kOther);
  advance(Duration());
  EXPECT_EQ(questions(), 1u);
}

TEST_F(NeighborClaims, neighbor_that_moves_without_a_word__is_found_within_six_seconds) {
  know_v4();
  got_b_.clear();
  b_.open(config_of("10.0.0.2"), 0xc);
  a_.device->connect(*b_.device);
  b_.device->connect(*a_.device);
  talk(Duration::from_seconds(6));
  EXPECT_EQ(mac_of_next(), kOther);
}

}  // namespace
}  // namespace uet::net
