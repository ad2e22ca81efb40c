// Packets chosen by an enemy. [PDS 19, 21.10]
#include "tests/pds/open_pdc.h"

namespace uet::pds::test {
namespace {

// Covers: PDS-190, PDS-191, PDS-192
TEST(Hostile, wrong_ids_are_refused) {
  Open x;
  auto h = x.request(x.next);
  for (const std::uint16_t id : {std::uint16_t{0}, std::uint16_t{65535}}) {
    h.dpdcid = id;
    x.arrive(h);
    EXPECT_EQ(x.w.nacks(1).back().code, NackCode::kInvDpdcid);
  }
  h = x.request(x.next);
  x.w.inject(1, net::FabricAddress::from_v4(0x01010101), h, x.w.segment_bytes(1, 0, 1));
  x.w.pump();
  EXPECT_EQ(x.w.nacks(1).back().code, NackCode::kPdcHdrMismatch);
  h.type = PdsType::kRodReq;
  x.arrive(h);
  EXPECT_EQ(x.w.nacks(1).back().code, NackCode::kPdcModeMismatch);
  EXPECT_EQ(x.w.host(1).ses.delivered.size(), 1u);
}

// Covers: PDS-193
TEST(Hostile, truncated_headers_are_dropped) {
  Open x;
  for (unsigned type = 0; type < 32; ++type)
    for (std::size_t size = 0; size < 40; ++size) {
      std::vector<std::uint8_t> bytes(size, 0xff);
      if (size > 0) bytes[0] = static_cast<std::uint8_t>(type << 3);
      x.w.inject_bytes(1, x.w.host(0).address, bytes);
      x.w.pump();
    }
  x.w.send(0, 1);
  x.w.run_until_quiet();
  EXPECT_TRUE(x.w.host(0).ses.failures.empty());
}

// Covers: PDS-196
TEST(Hostile, mutated_packets_harm_nobody) {
  Open x;
  base::Rng rng(7);
  x.w.add_rule([&](const Seen& s, Fate& f) {
    (void)s;
    if (!rng.chance(0.3)) return;
    f.copies = 2;
    f.edit = [&](std::vector<std::uint8_t>& b) {
      for (int i = 0; i < 3; ++i)
        b[rng.below(static_cast<std::uint32_t>(std::min<std::size_t>(b.size(), 16)))] =
            static_cast<std::uint8_t>(rng.next_u32());
    };
  });
  for (int i = 0; i < 200; ++i) {
    SubmitResult r{};
    x.w.send(0, x.w.message(1, 1 + rng.below(8), 100), &r);
    x.w.run_for(us(300));
  }
  SUCCEED();
}

}  // namespace
}  // namespace uet::pds::test
