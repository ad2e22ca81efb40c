/// Every operator on every type in every form: what is said to be valid, and what it does.
#include <complex>
#include <map>

#include "tests/provider/atomic_fixture.h"

namespace uet::provider::testing {
namespace {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

constexpr int kFloat16 = 16, kBfloat16 = 17, kDiff = 19;  // of libfabric 2

enum class Form { kPlain, kFetch, kCompare };

template <typename T>
constexpr bool kIsComplex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>> ||
    std::is_same_v<T, std::complex<long double>>;
template <typename T>
constexpr bool kIsInteger =
    std::is_integral_v<T> || std::is_same_v<T, Int128> || std::is_same_v<T, Uint128>;

template <typename T>
bool swaps(int op, T c, T t) {
  if (op == FI_CSWAP) return c == t;
  if (op == FI_CSWAP_NE) return c != t;
  if constexpr (!kIsComplex<T>) {
    if (op == FI_CSWAP_LE) return c <= t;
    if (op == FI_CSWAP_LT) return c < t;
    if (op == FI_CSWAP_GE) return c >= t;
    if (op == FI_CSWAP_GT) return c > t;
  }
  return false;
}

/// What `t` becomes; nothing where the table of [SES 16.3] has no entry for this form.
template <typename T>
std::optional<T> expected(int op, Form form, T t, T v, T c) {
  const bool fetching = form == Form::kFetch;
  if (form == Form::kCompare) {
    if (op == FI_MSWAP) {
      if constexpr (kIsInteger<T>)
        return static_cast<T>((v & c) | (t & ~c));
      else
        return std::nullopt;
    }
    const bool is_ordering = op >= FI_CSWAP_LE && op <= FI_CSWAP_GT;
    if (op < FI_CSWAP || op > FI_CSWAP_GT || (is_ordering && kIsComplex<T>) || sizeof(T) > 16)
      return std::nullopt;
    return swaps(op, c, t) ? v : t;
  }
  switch (op) {
    case FI_SUM:
      return static_cast<T>(t + v);
    case kDiff:
      return static_cast<T>(t - v);
    case FI_PROD:
      return static_cast<T>(t * v);
    case FI_LOR:
      return T(t != T(0) || v != T(0) ? 1 : 0);
    case FI_LAND:
      return T(t != T(0) && v != T(0) ? 1 : 0);
    case FI_LXOR:
      return T((t != T(0)) != (v != T(0)) ? 1 : 0);
    case FI_ATOMIC_WRITE:
      return v;
    case FI_ATOMIC_READ:
      return fetching ? std::optional(t) : std::nullopt;
    default:
      break;
  }
  if constexpr (!kIsComplex<T>) {
    if (op == FI_MIN) return v < t ? v : t;
    if (op == FI_MAX) return v > t ? v : t;
  }
  if constexpr (kIsInteger<T>) {
    if (op == FI_BOR) return static_cast<T>(t | v);
    if (op == FI_BAND) return static_cast<T>(t & v);
    if (op == FI_BXOR) return static_cast<T>(t ^ v);
  }
  return std::nullopt;
}

class AtomicMatrixTest : public AtomicPair {
 protected:
  template <typename T>
  void check(int type) {
    for (int op = 0; op <= kDiff + 2; ++op)
      for (const Form form : {Form::kPlain, Form::kFetch, Form::kCompare})
        for (const T& compare : {T(3), T(5), T(6)}) {
          check_one<T>(type, op, form, compare);
          ASSERT_FALSE(HasFailure())
              << "type " << type << " op " << op << " form " << static_cast<int>(form);
        }
  }

  template <typename T>
  void check_one(int type, int op, Form form, T compare) {
    const T target(5), value(3);
    const auto want = expected(op, form, target, value, compare);
    const auto t = static_cast<fi_datatype>(type);
    const auto o = static_cast<fi_op>(op);
    std::size_t count = 77;
    const int valid = form == Form::kPlain   ? fi_atomicvalid(a.ep, t, o, &count)
                      : form == Form::kFetch ? fi_fetch_atomicvalid(a.ep, t, o, &count)
                                             : fi_compare_atomicvalid(a.ep, t, o, &count);
    EXPECT_EQ(valid, want ? 0 : -FI_EOPNOTSUPP);
    check_query<T>(t, o, form, valid, count);
    std::memcpy(memory, &target, sizeof target);
    T old = T(99);
    const ssize_t ret = form == Form::kPlain
                            ? fi_atomic(a.ep, &value, 1, nullptr, to_b, 0, kKey, t, o, nullptr)
                        : form == Form::kFetch
                            ? fi_fetch_atomic(a.ep, op == FI_ATOMIC_READ ? nullptr : &value, 1,
                                              nullptr, &old, nullptr, to_b, 0, kKey, t, o, nullptr)
                            : fi_compare_atomic(a.ep, &value, 1, nullptr, &compare, nullptr, &old,
                                                nullptr, to_b, 0, kKey, t, o, nullptr);
    ASSERT_EQ(ret, want ? 0 : -FI_EOPNOTSUPP);
    if (!want) return;
    const Got got = wait_for(a);
    EXPECT_FALSE(got.failed);
    EXPECT_EQ(got.entry.flags, FI_ATOMIC | (form == Form::kPlain ? std::uint64_t{FI_WRITE}
                                                                 : std::uint64_t{FI_READ}));
    T after;
    std::memcpy(&after, memory, sizeof after);
    EXPECT_TRUE(after == *want);
    if (form != Form::kPlain) {
      EXPECT_TRUE(old == target);
    }
  }

  template <typename T>
  void check_query(fi_datatype t, fi_op o, Form form, int valid, std::size_t count) {
    const std::uint64_t flags = form == Form::kPlain   ? 0
                                : form == Form::kFetch ? FI_FETCH_ATOMIC
                                                       : FI_COMPARE_ATOMIC;
    fi_atomic_attr attr{};
    EXPECT_EQ(fi_query_atomic(a.domain, t, o, &attr, flags), valid);
    EXPECT_EQ(fi_query_atomic(a.domain, t, o, &attr, flags | FI_TAGGED), valid);
    if (valid != 0) return;
    EXPECT_EQ(attr.size, sizeof(T));
    EXPECT_EQ(attr.count, count);
    if (form == Form::kPlain)
      EXPECT_GE(count * sizeof(T), 992u);
    else
      EXPECT_EQ(count, 1u);
  }
};

// Covers: FI-49
TEST_F(AtomicMatrixTest, integers) {
  open_with_memory();
  check<std::int8_t>(FI_INT8);
  check<std::uint8_t>(FI_UINT8);
  check<std::int16_t>(FI_INT16);
  check<std::uint16_t>(FI_UINT16);
  check<std::int32_t>(FI_INT32);
  check<std::uint32_t>(FI_UINT32);
  check<std::int64_t>(FI_INT64);
  check<std::uint64_t>(FI_UINT64);
  check<Int128>(FI_INT128);
  check<Uint128>(FI_UINT128);
}

TEST_F(AtomicMatrixTest, floating_point) {
  open_with_memory();
  check<float>(FI_FLOAT);
  check<double>(FI_DOUBLE);
  check<long double>(FI_LONG_DOUBLE);
}

TEST_F(AtomicMatrixTest, complex) {
  open_with_memory();
  check<std::complex<float>>(FI_FLOAT_COMPLEX);
  check<std::complex<double>>(FI_DOUBLE_COMPLEX);
  check<std::complex<long double>>(FI_LONG_DOUBLE_COMPLEX);
}

// Types of libfabric 2, by number.
TEST_F(AtomicMatrixTest, sixteen_bit_floating_point) {
  open_with_memory();
  struct Case {
    int type;
    std::uint16_t one, two, three;
  };
  for (const auto& [type, one, two, three] :
       {Case{kFloat16, 0x3c00, 0x4000, 0x4200}, Case{kBfloat16, 0x3f80, 0x4000, 0x4040}}) {
    std::memcpy(memory, &one, 2);
    std::uint16_t old = 0;
    ASSERT_EQ(fi_fetch_atomic(a.ep, &two, 1, nullptr, &old, nullptr, to_b, 0, kKey,
                              static_cast<fi_datatype>(type), FI_SUM, nullptr),
              0);
    EXPECT_FALSE(wait_for(a).failed);
    EXPECT_EQ(old, one);
    EXPECT_EQ(std::memcmp(memory, &three, 2), 0);
  }
}

TEST_F(AtomicMatrixTest, nothing_else__is_valid) {
  open_with_memory();
  fi_atomic_attr attr{};
  for (const int type : {18, 25, 1000, -1})
    EXPECT_EQ(fi_query_atomic(a.domain, static_cast<fi_datatype>(type), FI_SUM, &attr, 0),
              -FI_EOPNOTSUPP);
  EXPECT_EQ(
      fi_query_atomic(a.domain, FI_UINT64, FI_CSWAP, &attr, FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC),
      -FI_EINVAL);
  EXPECT_EQ(fi_query_atomic(a.domain, FI_UINT64, FI_SUM, &attr, FI_MULTI_RECV), -FI_EBADFLAGS);
  std::uint64_t value = 1;
  EXPECT_EQ(fi_atomic(a.ep, &value, 1, nullptr, to_b, 0, kKey, FI_UINT64, FI_NOOP, nullptr),
            -FI_EOPNOTSUPP);
}

}  // namespace
}  // namespace uet::provider::testing
