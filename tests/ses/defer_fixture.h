/// A and B, where B puts off what has no receive.
#pragma once

#include <optional>
#include <vector>

#include "tests/ses/pair_test.h"

namespace uet::ses::testing {

inline SesConfig deferring() {
  SesConfig c;
  c.sends_deferrable = c.defers = true;
  c.overflow_max = 0;
  c.retry_backoff_min = Duration::from_ms(1);
  c.message_idle = Duration::from_seconds(10);
  return c;
}

struct DeferTest : PairTest {
  explicit DeferTest(const SesConfig& config = deferring()) : PairTest(config) {}

  Bytes message = pattern(10 * kM, 1), into = Bytes(10 * kM);

  std::vector<RequestView> sent_by(const Node& from) const {
    std::vector<RequestView> views;
    for (const Flight& f : fabric.sent_log)
      if (f.channel->from == &from && !f.channel->is_return) views.push_back(f.view(kM));
    return views;
  }
  /// The message waits at A, and B has its header. Returns what A sent.
  std::vector<RequestView> put_off(std::optional<std::uint64_t> data = {}) {
    open();
    tsend(message, 5, 1, data);
    fabric.run();
    EXPECT_TRUE(at_a.all.empty());
    EXPECT_EQ(sb().gauges().unexpected_messages, 1u);
    return sent_by(a);
  }
  /// As if `tokens` came in a request to restart from B, or from elsewhere.
  ReturnCode restart(std::uint64_t tokens, std::uint32_t job = 7, std::uint32_t host = 2) {
    const Bytes bytes =
        encode({.opcode = SesOpcode::kDeferrableRtr, .job = job, .initiator = 4, .key = tokens});
    pds::RxRequest r;
    r.handle = {raw_pdc, base::Psn(next_raw_psn++), false};
    r.mode = pds::Mode::kRud;
    r.next_hdr = static_cast<std::uint8_t>(wire::NextHdr::kRequestStd);
    r.source = net::FabricAddress::from_v4(0x0a000000 + host);
    r.is_proven = true;
    r.bytes = bytes;
    return view(sa().on_request(fabric.now, r)).code;
  }
  /// The message waits; the receive that B posts has it asked for, by a request whose header is changed by `change` on its way.
  template <typename Change>
  void restart_with(Change&& change) {
    put_off();
    tpost(into, 5);
    fabric.cut_all();
    ASSERT_EQ(fabric.flights.size(), 1u);
    Bytes& rtr = fabric.flights[0].bytes;
    auto h = wire::decode<wire::SesStandardFirst>(rtr.data());
    change(h);
    wire::emit(h, rtr.data());
    fabric.run();
  }
  void expect_one_completion_each() {
    EXPECT_EQ(into, message);
    ASSERT_EQ(at_a.all.size(), 1u);
    EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
    EXPECT_EQ(at_a.all[0].length, message.size());
    ASSERT_EQ(at_b.all.size(), 1u);
    EXPECT_EQ(at_b.all[0].code, ReturnCode::kOk);
    EXPECT_EQ(at_b.all[0].length, message.size());
    expect_nothing_left();
  }
  /// B throws the message away.
  void discard() {
    PeekRequest discard;
    discard.tag = 5;
    discard.action = PeekAction::kDiscard;
    ASSERT_TRUE(sb().peek(fabric.now, eb, discard));
  }
  /// So it does; its initiator hears that all is well.
  void discard_and_expect_ok() {
    discard();
    fabric.run();
    ASSERT_EQ(at_a.all.size(), 1u);
    EXPECT_EQ(at_a.all[0].code, ReturnCode::kOk);
    expect_nothing_left();
  }
};

constexpr std::uint64_t tokens_of(const RequestView& r) {
  return std::uint64_t{r.initiator_token} << 32 | r.target_token;
}

}  // namespace uet::ses::testing
