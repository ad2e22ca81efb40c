/// Properties of parse and emit, for every declared header.
#include <gtest/gtest.h>

#include <algorithm>

#include "lib/base/rng.h"
#include "lib/wire/header_type.h"

namespace uet::wire {
namespace {

constexpr std::uint64_t kSeed = 20251121;
constexpr int kRounds = 2000;

std::vector<std::uint8_t> random_bytes(base::Rng& rng, std::size_t n) {
  std::vector<std::uint8_t> bytes(n);
  for (auto& b : bytes) b = static_cast<std::uint8_t>(rng.next_u32());
  return bytes;
}

TEST(Codec, random_bytes_encode_to_themselves_but_for_reserved_bits) {
  base::Rng rng(kSeed);
  for (const HeaderType& type : header_types()) {
    for (int i = 0; i < kRounds; ++i) {
      auto bytes = random_bytes(rng, type.size);
      std::vector<std::uint8_t> out(type.size, 0xff);
      ASSERT_TRUE(type.encode(type.decode(bytes.data()), out.data()));
      clear_reserved_bits(type, bytes);
      ASSERT_EQ(out, bytes) << type.name << " seed " << kSeed << " round " << i;
    }
  }
}

/// Any value that the field can hold.
FieldValue random_value(base::Rng& rng, const FieldInfo& info) {
  FieldValue v{.info = info};
  if (info.is_reserved) return v;
  if (info.kind == FieldKind::kBytes) {
    v.bytes_size = static_cast<std::uint8_t>(info.width / 8);
    for (std::size_t i = 0; i < v.bytes_size; ++i)
      v.bytes[i] = static_cast<std::uint8_t>(rng.next_u32());
    return v;
  }
  v.value = {.hi = rng.next_u64(), .lo = rng.next_u64()};
  v.value.lo &= detail::low_mask(info.width);
  v.value.hi = info.width > 64 ? v.value.hi & detail::low_mask(info.width - 64) : 0;
  if (info.kind == FieldKind::kSigned)
    v.value.lo = static_cast<std::uint64_t>(static_cast<std::int16_t>(v.value.lo));
  return v;
}

TEST(Codec, random_values_survive_the_wire) {
  base::Rng rng(kSeed + 1);
  for (const HeaderType& type : header_types()) {
    for (int i = 0; i < kRounds; ++i) {
      std::vector<FieldValue> want;
      for (const FieldInfo& info : type.fields) want.push_back(random_value(rng, info));
      std::vector<std::uint8_t> out(type.size);
      ASSERT_TRUE(type.encode(want, out.data()));
      const auto got = type.decode(out.data());
      ASSERT_EQ(want.size(), got.size());
      for (std::size_t f = 0; f < want.size(); ++f) {
        ASSERT_EQ(want[f].value, got[f].value) << type.name << "." << want[f].info.name;
        ASSERT_EQ(want[f].bytes, got[f].bytes) << type.name << "." << want[f].info.name;
      }
    }
  }
}

TEST(Codec, every_field_lies_where_its_widths_put_it) {
  base::Rng rng(kSeed + 2);
  for (const HeaderType& type : header_types()) {
    for (int i = 0; i < 100; ++i) {
      const auto bytes = random_bytes(rng, type.size);
      for (const FieldValue& v : type.decode(bytes.data())) {
        if (v.info.kind == FieldKind::kBytes) {
          const auto got = v.as_bytes();
          EXPECT_EQ(8 * got.size(), v.info.width);
          EXPECT_TRUE(std::equal(got.begin(), got.end(), &bytes[v.info.offset / 8]));
          continue;
        }
        // Bit by bit: the slow way, against which the generated code is checked.
        U128 want = bits_of(bytes, v.info.offset, v.info.width);
        if (v.info.kind == FieldKind::kSigned)
          want.lo = static_cast<std::uint64_t>(static_cast<std::int16_t>(want.lo));
        EXPECT_EQ(v.value, want) << type.name << "." << v.info.name;
      }
    }
  }
}

TEST(Codec, a_struct_decoded_by_a_call_is_the_struct) {
  base::Rng rng(kSeed + 3);
  const auto bytes = random_bytes(rng, SesStandardFirst::kSize);
  std::array<std::uint8_t, SesStandardFirst::kSize> inlined, called;
  emit(decode<SesStandardFirst>(bytes.data()), inlined.data());
  emit(decode_out_of_line<SesStandardFirst>(bytes.data()), called.data());
  EXPECT_EQ(inlined, called);
  EXPECT_EQ(type_of<EthernetHeader>().name, EthernetHeader::kName);
  EXPECT_EQ(type_of<UdpHeader>().name, UdpHeader::kName);
  EXPECT_EQ(type_of<EntropyHeader>().name, EntropyHeader::kName);
  EXPECT_EQ(type_of<SesResponseDataSmall>().name, SesResponseDataSmall::kName);
  EXPECT_EQ(header_types().size(), NetHeaders::kCount + UetHeaders::kCount);
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

template <typename H>
void expect_initiator_error_set() {
  H header;
  std::vector<std::uint8_t> marked(H::kSize), built(H::kSize);
  emit(header, marked.data());
  set_initiator_error(marked.data());
  header.ie = true;
  emit(header, built.data());
  EXPECT_EQ(marked, built) << H::kName;
}

TEST(Codec, initiator_error_can_be_set_in_every_request_that_was_built) {
  expect_initiator_error_set<SesStandardFirst>();
  expect_initiator_error_set<SesStandardNext>();
  expect_initiator_error_set<SesMedium>();
  expect_initiator_error_set<SesSmall>();
}

TEST(Parse, needs_every_byte) {
  const std::vector<std::uint8_t> bytes(PdsRequest::kSize);
  EXPECT_TRUE(parse<PdsRequest>(bytes));
  const auto r = parse<PdsRequest>(std::span(bytes).first(PdsRequest::kSize - 1));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error(), base::DropReason::kTruncated);
}

TEST(Parse, into_a_header_leaves_it_as_it_was_where_a_byte_is_missing) {
  base::Rng rng(kSeed);
  const auto check = [&]<typename H>(H) {
    const auto bytes = random_bytes(rng, H::kSize);
    std::array<std::uint8_t, H::kSize> before, after, read, again;
    H h;
    emit(h, before.data());
    EXPECT_FALSE(parse_into(h, std::span(bytes).first(H::kSize - 1))) << H::kName;
    emit(h, after.data());
    EXPECT_EQ(after, before) << H::kName;
    EXPECT_TRUE(parse_into(h, bytes)) << H::kName;
    emit(h, read.data());
    emit(decode<H>(bytes.data()), again.data());
    EXPECT_EQ(read, again) << H::kName;
  };
  check(EthernetHeader{});
  check(VlanTag{});
  check(Ipv4Header{});
  check(Ipv6Header{});
  check(UdpHeader{});
  check(EntropyHeader{});
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
  for (const HeaderType& type : header_types())
    EXPECT_EQ(type.fields.back().offset + type.fields.back().width, 8 * type.size) << type.name;
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
