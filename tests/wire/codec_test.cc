/// Properties of parse and emit, for every declared header.
#include <gtest/gtest.h>

#include <algorithm>

#include "lib/base/rng.h"
#include "lib/wire/headers.h"
#include "lib/wire/reflect.h"

namespace uet::wire {
namespace {

constexpr std::uint64_t kSeed = 20251121;
constexpr int kRounds = 2000;

template <typename F>
void for_every_header(F&& f) {
  NetHeaders::for_each(f);
  UetHeaders::for_each(f);
}

template <typename H>
std::array<std::uint8_t, H::kSize> random_bytes(base::Rng& rng) {
  std::array<std::uint8_t, H::kSize> bytes;
  for (auto& b : bytes) b = static_cast<std::uint8_t>(rng.next_u32());
  return bytes;
}

TEST(Codec, random_bytes_encode_to_themselves_but_for_reserved_bits) {
  base::Rng rng(kSeed);
  for_every_header([&]<typename H>() {
    for (int i = 0; i < kRounds; ++i) {
      auto bytes = random_bytes<H>(rng);
      std::array<std::uint8_t, H::kSize> out;
      out.fill(0xff);
      emit(decode<H>(bytes.data()), out.data());
      for (std::size_t j = 0; j < H::kSize; ++j) bytes[j] &= kDefinedMask<H>[j];
      ASSERT_EQ(out, bytes) << H::kName << " seed " << kSeed << " round " << i;
    }
  });
}

TEST(Codec, random_values_survive_the_wire) {
  base::Rng rng(kSeed + 1);
  for_every_header([&]<typename H>() {
    for (int i = 0; i < kRounds; ++i) {
      H h;
      for_each_info<H>([&](const FieldInfo& info) {
        U128 v{.hi = rng.next_u64(), .lo = rng.next_u64()};
        if (info.width < 64) v.lo &= detail::low_mask(info.width);
        if (info.width <= 64)
          v.hi = 0;
        else
          v.hi &= detail::low_mask(info.width - 64);
        set_value(h, info.name, v);
      });
      ASSERT_TRUE(fits(h));
      std::array<std::uint8_t, H::kSize> out;
      emit(h, out.data());
      const H back = decode<H>(out.data());
      std::vector<U128> want, got;
      for_each_value(h, [&](const FieldValue& v) { want.push_back(v.value); });
      for_each_value(back, [&](const FieldValue& v) { got.push_back(v.value); });
      ASSERT_EQ(want, got) << H::kName << " round " << i;
    }
  });
}

/// Reads a field bit by bit: the slow way, against which the generated code is checked.
U128 slow_read(std::span<const std::uint8_t> bytes, unsigned offset, unsigned width) {
  U128 v;
  for (unsigned i = offset; i < offset + width; ++i) {
    v.hi = v.hi << 1 | v.lo >> 63;
    v.lo = v.lo << 1 | ((bytes[i / 8] >> (7 - i % 8)) & 1U);
  }
  return v;
}

TEST(Codec, every_field_lies_where_its_widths_put_it) {
  base::Rng rng(kSeed + 2);
  for_every_header([&]<typename H>() {
    for (int i = 0; i < 100; ++i) {
      const auto bytes = random_bytes<H>(rng);
      for_each_value(decode<H>(bytes.data()), [&](const FieldValue& v) {
        if (v.info.kind == FieldKind::kBytes) {
          EXPECT_TRUE(std::equal(v.bytes.begin(), v.bytes.end(), &bytes[v.info.offset / 8]));
          return;
        }
        U128 want = slow_read(bytes, v.info.offset, v.info.width);
        if (v.info.kind == FieldKind::kSigned)
          want.lo = static_cast<std::uint64_t>(static_cast<std::int16_t>(want.lo));
        EXPECT_EQ(v.value, want) << H::kName << "." << v.info.name;
      });
    }
  });
}

TEST(Codec, values_that_do_not_fit_are_noticed_and_cut) {
  SesMedium h;
  EXPECT_TRUE(fits(h));
  h.request_length = 0x4001;
  EXPECT_FALSE(fits(h));
  std::array<std::uint8_t, SesMedium::kSize> out;
  emit(h, out.data());
  EXPECT_EQ(decode<SesMedium>(out.data()).request_length, 1);
  PdsNackCcx wide;
  wide.nack_ccx_state.hi = 1ULL << 60;
  EXPECT_FALSE(fits(wide));
}

TEST(Parse, needs_every_byte) {
  for_every_header([&]<typename H>() {
    const std::vector<std::uint8_t> bytes(H::kSize);
    EXPECT_TRUE(parse<H>(bytes));
    const auto r = parse<H>(std::span(bytes).first(H::kSize - 1));
    ASSERT_FALSE(r);
    EXPECT_EQ(r.error(), base::DropReason::kTruncated);
  });
}

TEST(Sizes, are_those_of_the_table) {
  EXPECT_EQ(PdsRequest::kSize, 12U);
  EXPECT_EQ(PdsRequestCc::kSize, 16U);
  EXPECT_EQ(PdsAckCcNscc::kSize, 32U);
  EXPECT_EQ(PdsAckCcx::kSize, 40U);
  EXPECT_EQ(PdsNackCcx::kSize, 32U);
  EXPECT_EQ(
      TssHeaderSsi::kSize + PdsRequestCc::kSize + SesStandardFirst::kSize + ExtRendezvous::kSize,
      100U);
  for_every_header([&]<typename H>() { EXPECT_EQ(bit_count<H>(), 8 * H::kSize); });
}

TEST(Names, exist_for_every_assigned_value) {
  EXPECT_EQ(name_of(PdsType::kRodCcReq), "ROD_CC_REQ");
  EXPECT_EQ(name_of(PdsType{15}), "");
  EXPECT_EQ(name_of(NackCode{0x0c}), "");
  EXPECT_EQ(name_of(NackCode::kRcvrInferLoss), "RCVR_INFER_LOSS");
  EXPECT_EQ(name_of(ReturnCode::kDropped), "DROPPED");
  EXPECT_EQ(enum_entries<NackCode>().size(), 28U);
  EXPECT_EQ(enum_entries<ReturnCode>().size(), 38U);
  EXPECT_EQ(enum_entries<SesOpcode>().size(), 24U);
}

}  // namespace
}  // namespace uet::wire
