// Operators and types of atomics. [SES 16.3]
#include "ses/amo.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>
#include <thread>
#include <vector>

#include "ses/amo_numbers.h"

namespace uet::ses {
namespace {

constexpr std::array kAllTypes = {AmoDatatype::kInt8,         AmoDatatype::kUint8,
                                  AmoDatatype::kInt16,        AmoDatatype::kUint16,
                                  AmoDatatype::kInt32,        AmoDatatype::kUint32,
                                  AmoDatatype::kInt64,        AmoDatatype::kUint64,
                                  AmoDatatype::kInt128,       AmoDatatype::kUint128,
                                  AmoDatatype::kFloat,        AmoDatatype::kDouble,
                                  AmoDatatype::kFloatComplex, AmoDatatype::kDoubleComplex,
                                  AmoDatatype::kLongDouble,   AmoDatatype::kLongDoubleComplex,
                                  AmoDatatype::kBfloat16,     AmoDatatype::kFloat16};

/// The element before and after, and what was fetched.
template <typename T>
struct Outcome {
  T after, old;
};

template <typename T>
Outcome<T> apply(AmoOpcode op, AmoDatatype type, T target, T value, T compare = T{}) {
  EXPECT_EQ(sizeof(T), amo_bytes(type));
  alignas(32) std::array<std::uint8_t, 3 * sizeof(T)> memory;
  memory.fill(0xaa);
  std::memcpy(memory.data() + sizeof(T), &target, sizeof(T));
  std::array<std::uint8_t, sizeof(T)> old;
  AmoOperation amo{op, type};
  amo.operand = reinterpret_cast<const std::uint8_t*>(&value);
  amo.compare = reinterpret_cast<const std::uint8_t*>(&compare);
  execute(amo, memory.data() + sizeof(T), 1, old.data());
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    EXPECT_EQ(memory[i], 0xaa);
    EXPECT_EQ(memory[2 * sizeof(T) + i], 0xaa);
  }
  Outcome<T> out;
  std::memcpy(&out.after, memory.data() + sizeof(T), sizeof(T));
  std::memcpy(&out.old, old.data(), sizeof(T));
  return out;
}

template <typename T>
void check_integers(AmoDatatype type) {
  const auto expect = [&](AmoOpcode op, T target, T value, T compare, T expected) {
    const auto o = apply<T>(op, type, target, value, compare);
    EXPECT_TRUE(o.old == target) << wire::name_of(op) << " " << wire::name_of(type);
    EXPECT_TRUE(o.after == expected) << wire::name_of(op) << " " << wire::name_of(type);
  };
  constexpr T kTop = static_cast<T>(~T{0});  // -1, or the largest
  constexpr bool kIsSigned = kTop < T{1};
  expect(AmoOpcode::kMin, T{5}, T{3}, T{}, T{3});
  expect(AmoOpcode::kMin, T{5}, kTop, T{}, kIsSigned ? kTop : T{5});
  expect(AmoOpcode::kMax, T{5}, kTop, T{}, kIsSigned ? T{5} : kTop);
  expect(AmoOpcode::kMax, T{5}, T{9}, T{}, T{9});
  expect(AmoOpcode::kSum, kTop, T{2}, T{}, T{1});
  expect(AmoOpcode::kDiff, T{2}, T{3}, T{}, kTop);
  expect(AmoOpcode::kProd, T{7}, T{6}, T{}, T{42});
  expect(AmoOpcode::kLor, T{0}, T{4}, T{}, T{1});
  expect(AmoOpcode::kLor, T{0}, T{0}, T{}, T{0});
  expect(AmoOpcode::kLand, T{2}, T{4}, T{}, T{1});
  expect(AmoOpcode::kLand, T{2}, T{0}, T{}, T{0});
  expect(AmoOpcode::kLxor, T{2}, T{4}, T{}, T{0});
  expect(AmoOpcode::kLxor, T{0}, T{4}, T{}, T{1});
  expect(AmoOpcode::kBor, T{0x21}, T{0x12}, T{}, T{0x33});
  expect(AmoOpcode::kBand, T{0x33}, T{0x12}, T{}, T{0x12});
  expect(AmoOpcode::kBxor, T{0x33}, T{0x12}, T{}, T{0x21});
  expect(AmoOpcode::kRead, T{0x33}, T{0x12}, T{}, T{0x33});
  expect(AmoOpcode::kWrite, T{0x33}, T{0x12}, T{}, T{0x12});
  expect(AmoOpcode::kCswap, T{5}, T{9}, T{5}, T{9});
  expect(AmoOpcode::kCswap, T{5}, T{9}, T{6}, T{5});
  expect(AmoOpcode::kCswapNe, T{5}, T{9}, T{5}, T{5});
  expect(AmoOpcode::kCswapNe, T{5}, T{9}, T{6}, T{9});
  // "C op T": with 4 on the left, LE, LT and NE hold of 5.
  expect(AmoOpcode::kCswapLe, T{5}, T{9}, T{4}, T{9});
  expect(AmoOpcode::kCswapLe, T{5}, T{9}, T{5}, T{9});
  expect(AmoOpcode::kCswapLe, T{5}, T{9}, T{6}, T{5});
  expect(AmoOpcode::kCswapLt, T{5}, T{9}, T{4}, T{9});
  expect(AmoOpcode::kCswapLt, T{5}, T{9}, T{5}, T{5});
  expect(AmoOpcode::kCswapGe, T{5}, T{9}, T{4}, T{5});
  expect(AmoOpcode::kCswapGe, T{5}, T{9}, T{5}, T{9});
  expect(AmoOpcode::kCswapGt, T{5}, T{9}, T{5}, T{5});
  expect(AmoOpcode::kCswapGt, T{5}, T{9}, T{6}, T{9});
  expect(AmoOpcode::kMswap, T{0x55}, T{0x0a}, T{0x0f}, T{0x5a});
}

// Covers: SES-74
TEST(Amo, execute__integers_of_every_size) {
  check_integers<std::int8_t>(AmoDatatype::kInt8);
  check_integers<std::uint8_t>(AmoDatatype::kUint8);
  check_integers<std::int16_t>(AmoDatatype::kInt16);
  check_integers<std::uint16_t>(AmoDatatype::kUint16);
  check_integers<std::int32_t>(AmoDatatype::kInt32);
  check_integers<std::uint32_t>(AmoDatatype::kUint32);
  check_integers<std::int64_t>(AmoDatatype::kInt64);
  check_integers<std::uint64_t>(AmoDatatype::kUint64);
  check_integers<Int128>(AmoDatatype::kInt128);
  check_integers<Uint128>(AmoDatatype::kUint128);
}

template <typename T>
void check_reals(AmoDatatype type) {
  const auto expect = [&](AmoOpcode op, T target, T value, T compare, T expected) {
    const auto o = apply<T>(op, type, target, value, compare);
    EXPECT_EQ(o.old, target) << wire::name_of(op);
    EXPECT_EQ(o.after, expected) << wire::name_of(op);
  };
  expect(AmoOpcode::kMin, T(1.5), T(-2), T{}, T(-2));
  expect(AmoOpcode::kMax, T(1.5), T(-2), T{}, T(1.5));
  expect(AmoOpcode::kSum, T(1.5), T(0.25), T{}, T(1.75));
  expect(AmoOpcode::kDiff, T(1.5), T(0.25), T{}, T(1.25));
  expect(AmoOpcode::kProd, T(1.5), T(-2), T{}, T(-3));
  expect(AmoOpcode::kLor, T(0), T(0.5), T{}, T(1));
  expect(AmoOpcode::kLand, T(0.5), T(-0.0), T{}, T(0));
  expect(AmoOpcode::kLxor, T(0.5), T(3), T{}, T(0));
  expect(AmoOpcode::kWrite, T(1), T(2), T{}, T(2));
  expect(AmoOpcode::kRead, T(1), T(2), T{}, T(1));
  expect(AmoOpcode::kCswap, T(1), T(2), T(1), T(2));
  expect(AmoOpcode::kCswapLt, T(1), T(2), T(0.5), T(2));
  expect(AmoOpcode::kCswapGt, T(1), T(2), T(0.5), T(1));
  // Nothing but "not equal" holds of a NaN.
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const auto op : {AmoOpcode::kCswap, AmoOpcode::kCswapLe, AmoOpcode::kCswapLt,
                        AmoOpcode::kCswapGe, AmoOpcode::kCswapGt})
    expect(op, T(1), T(2), nan, T(1));
  expect(AmoOpcode::kCswapNe, T(1), T(2), nan, T(2));
}

TEST(Amo, execute__floating_point) {
  check_reals<float>(AmoDatatype::kFloat);
  check_reals<double>(AmoDatatype::kDouble);
  check_reals<long double>(AmoDatatype::kLongDouble);
}

template <typename T>
void check_complex(AmoDatatype type) {
  using C = std::complex<T>;
  const auto after = [&](AmoOpcode op, C t, C v, C c = {}) {
    return apply<C>(op, type, t, v, c).after;
  };
  EXPECT_EQ(after(AmoOpcode::kSum, C(1, 2), C(3, 4)), C(4, 6));
  EXPECT_EQ(after(AmoOpcode::kDiff, C(1, 2), C(3, 5)), C(-2, -3));
  EXPECT_EQ(after(AmoOpcode::kProd, C(1, 2), C(3, 4)), C(-5, 10));
  EXPECT_EQ(after(AmoOpcode::kLand, C(0, 2), C(3, 0)), C(1, 0));
  EXPECT_EQ(after(AmoOpcode::kLor, C(0, 0), C(0, 0)), C(0, 0));
  EXPECT_EQ(after(AmoOpcode::kWrite, C(1, 2), C(3, 4)), C(3, 4));
}

TEST(Amo, execute__complex) {
  check_complex<float>(AmoDatatype::kFloatComplex);
  check_complex<double>(AmoDatatype::kDoubleComplex);
  check_complex<long double>(AmoDatatype::kLongDoubleComplex);
  using C = std::complex<double>;
  EXPECT_EQ(
      apply<C>(AmoOpcode::kCswap, AmoDatatype::kDoubleComplex, C(1, 2), C(3, 4), C(1, 2)).after,
      C(3, 4));
  EXPECT_EQ(
      apply<C>(AmoOpcode::kCswapNe, AmoDatatype::kDoubleComplex, C(1, 2), C(3, 4), C(1, 2)).after,
      C(1, 2));
}

std::uint16_t half_sum(AmoDatatype type, std::uint16_t a, std::uint16_t b,
                       AmoOpcode op = AmoOpcode::kSum) {
  return apply<std::uint16_t>(op, type, a, b).after;
}

TEST(Amo, execute__sixteen_bit_floating_point) {
  EXPECT_EQ(half_sum(AmoDatatype::kFloat16, 0x3c00, 0x4000), 0x4200);  // 1 + 2
  EXPECT_EQ(half_sum(AmoDatatype::kFloat16, 0x7bff, 0x7bff), 0x7c00);  // to infinity
  EXPECT_EQ(half_sum(AmoDatatype::kFloat16, 0x0001, 0x0001), 0x0002);  // denormals
  EXPECT_EQ(half_sum(AmoDatatype::kFloat16, 0x03ff, 0x0001), 0x0400);  // to the smallest normal
  EXPECT_EQ(half_sum(AmoDatatype::kFloat16, 0x6800, 0x3c00), 0x6800);  // 2048 + 1: a tie, to even
  EXPECT_EQ(half_sum(AmoDatatype::kFloat16, 0x6801, 0x3c00), 0x6802);  // 2050 + 1
  EXPECT_EQ(half_sum(AmoDatatype::kFloat16, 0x8001, 0x0000), 0x8001);
  EXPECT_EQ(half_sum(AmoDatatype::kBfloat16, 0x3f80, 0x4000), 0x4040);  // 1 + 2
  EXPECT_EQ(half_sum(AmoDatatype::kBfloat16, 0x7f7f, 0x7f7f), 0x7f80);
  EXPECT_EQ(half_sum(AmoDatatype::kBfloat16, 0x0001, 0x0001), 0x0002);
  EXPECT_EQ(half_sum(AmoDatatype::kBfloat16, 0x4380, 0x3f80), 0x4380);  // 256 + 1: a tie, to even
  EXPECT_EQ(half_sum(AmoDatatype::kFloat16, 0x3c00, 0xc000, AmoOpcode::kMin), 0xc000);
  EXPECT_EQ(half_sum(AmoDatatype::kFloat16, 0x3c00, 0x4000, AmoOpcode::kProd), 0x4000);
}

/// Every finite value survives the way through float.
template <typename T>
void check_round_trip(std::uint16_t infinity) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    T value;
    value.bits = static_cast<std::uint16_t>(bits);
    const bool is_nan = (bits & 0x7fff) > infinity;
    const T back(static_cast<float>(value));
    if (is_nan)
      EXPECT_TRUE(std::isnan(static_cast<float>(back)));
    else
      ASSERT_EQ(back.bits, bits);
  }
}

TEST(Amo, narrow__every_value_survives) {
  check_round_trip<Float16>(0x7c00);
  check_round_trip<Bfloat16>(0x7f80);
}

// Covers: SES-78
TEST(Amo, judge__is_the_table) {
  // One letter for each kind of type: integers, integers of 128 bits, float and double, 16 bits, long double, complex.
  // Y: both forms, F: fetching only, N: not fetching only.
  struct Row {
    AmoOpcode op;
    std::string_view cells;
  };
  constexpr std::array kTable = {
      Row{AmoOpcode::kMin, "YYYYY-"},     Row{AmoOpcode::kMax, "YYYYY-"},
      Row{AmoOpcode::kSum, "YYYYYY"},     Row{AmoOpcode::kDiff, "YYYYYY"},
      Row{AmoOpcode::kProd, "YYYYYY"},    Row{AmoOpcode::kLor, "YYY-YY"},
      Row{AmoOpcode::kLand, "YYY-YY"},    Row{AmoOpcode::kLxor, "YYY-YY"},
      Row{AmoOpcode::kBor, "YY----"},     Row{AmoOpcode::kBand, "YY----"},
      Row{AmoOpcode::kBxor, "YY----"},    Row{AmoOpcode::kRead, "FFFFFF"},
      Row{AmoOpcode::kWrite, "YYYYYY"},   Row{AmoOpcode::kCswap, "FFFFFF"},
      Row{AmoOpcode::kCswapNe, "FFFFFF"}, Row{AmoOpcode::kCswapLe, "FFFFF-"},
      Row{AmoOpcode::kCswapLt, "FFFFF-"}, Row{AmoOpcode::kCswapGe, "FFFFF-"},
      Row{AmoOpcode::kCswapGt, "FFFFF-"}, Row{AmoOpcode::kMswap, "FF----"},
      Row{AmoOpcode::kInval, "NNNNNN"}};
  const auto column = [](AmoDatatype t) -> std::size_t {
    if (t <= AmoDatatype::kUint64) return 0;
    if (t <= AmoDatatype::kUint128) return 1;
    if (t <= AmoDatatype::kDouble) return 2;
    if (t == AmoDatatype::kBfloat16 || t == AmoDatatype::kFloat16) return 3;
    return t == AmoDatatype::kLongDouble ? 4 : 5;
  };
  for (const Row& row : kTable)
    for (const AmoDatatype type : kAllTypes) {
      const char cell = row.cells[column(type)];
      // The operands of a compare-and-swap have 16 bytes each on the wire.
      const bool is_too_wide = has_compare_operands(row.op) && amo_bytes(type) > 16;
      for (const bool fetching : {false, true}) {
        const bool exists = cell == 'Y' || cell == (fetching ? 'F' : 'N');
        EXPECT_EQ(judge_amo(row.op, type, fetching) == ReturnCode::kOk, exists && !is_too_wide)
            << wire::name_of(row.op) << " on " << wire::name_of(type) << " fetching " << fetching;
      }
    }
  EXPECT_EQ(judge_amo(AmoOpcode::kBor, AmoDatatype::kFloat, true), ReturnCode::kAmoUnsupportedOp);
  EXPECT_EQ(judge_amo(AmoOpcode::kMin, AmoDatatype::kFloatComplex, false),
            ReturnCode::kAmoUnsupportedOp);
}

TEST(Amo, judge__nothing_else_exists) {
  for (unsigned op = 0x15; op <= 0xff; ++op)
    EXPECT_EQ(judge_amo(static_cast<AmoOpcode>(op), AmoDatatype::kInt32, true),
              ReturnCode::kAmoUnsupportedOp);
  for (unsigned type = 0x12; type <= 0xff; ++type)
    EXPECT_EQ(judge_amo(AmoOpcode::kSum, static_cast<AmoDatatype>(type), true),
              ReturnCode::kAmoUnsupportedDt);
}

// What a long double has behind its digits is memory of the target's own.
TEST(Amo, execute__padding_tells_nothing) {
  if (std::numeric_limits<long double>::digits != 64) GTEST_SKIP() << "no padding here";
  alignas(16) std::array<std::uint8_t, 16> memory;
  memory.fill(0xff);
  std::array<std::uint8_t, 16> operand;
  operand.fill(0xff);
  const long double one = 1;
  std::memcpy(memory.data(), &one, 10);
  std::memcpy(operand.data(), &one, 10);
  execute({AmoOpcode::kSum, AmoDatatype::kLongDouble, operand.data()}, memory.data(), 1, nullptr);
  for (std::size_t i = 10; i < 16; ++i) EXPECT_EQ(memory[i], 0);
}

TEST(Amo, operand_fields__are_integers) {
  for (const AmoDatatype type : kAllTypes) {
    if (amo_bytes(type) > sizeof(wire::U128)) continue;
    std::array<std::uint8_t, 16> element, back{};
    for (std::size_t i = 0; i < element.size(); ++i) element[i] = static_cast<std::uint8_t>(i + 1);
    const wire::U128 field = to_operand_field(type, element.data());
    from_operand_field(type, field, back.data());
    EXPECT_TRUE(std::equal(element.begin(), element.begin() + amo_bytes(type), back.begin()))
        << wire::name_of(type);
  }
  const std::uint32_t seven = 7;
  EXPECT_EQ(to_operand_field(AmoDatatype::kUint32, reinterpret_cast<const std::uint8_t*>(&seven)),
            (wire::U128{0, 7}));
  const std::complex<float> pair(1, 2);
  EXPECT_EQ(
      to_operand_field(AmoDatatype::kFloatComplex, reinterpret_cast<const std::uint8_t*>(&pair)),
      (wire::U128{0, 0x3f80'0000'4000'0000}));
}

/// [decision 140] Another thread's atomics on the same memory are lost by neither side.
TEST(Amo, execute__other_threads_count_too) {
  constexpr std::uint64_t kEach = 20'000;
  alignas(8) std::uint64_t counter = 0;
  std::thread other([&counter] {
    for (std::uint64_t i = 0; i < kEach; ++i) std::atomic_ref<std::uint64_t>(counter).fetch_add(1);
  });
  const std::uint64_t one = 1;
  const AmoOperation amo{AmoOpcode::kSum, AmoDatatype::kUint64,
                         reinterpret_cast<const std::uint8_t*>(&one)};
  for (std::uint64_t i = 0; i < kEach; ++i)
    execute(amo, reinterpret_cast<std::uint8_t*>(&counter), 1, nullptr);
  other.join();
  EXPECT_EQ(counter, 2 * kEach);
}

}  // namespace
}  // namespace uet::ses
