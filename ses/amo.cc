#include "ses/amo.h"

#include <atomic>
#include <cstring>
#include <limits>

#include "ses/amo_element.h"

namespace uet::ses {
namespace {

enum class Kind : std::uint8_t { kInteger, kReal, kNarrow, kComplex };

Kind kind_of(AmoDatatype type) {
  switch (type) {
    case AmoDatatype::kFloat:
    case AmoDatatype::kDouble:
    case AmoDatatype::kLongDouble:
      return Kind::kReal;
    case AmoDatatype::kBfloat16:
    case AmoDatatype::kFloat16:
      return Kind::kNarrow;
    case AmoDatatype::kFloatComplex:
    case AmoDatatype::kDoubleComplex:
    case AmoDatatype::kLongDoubleComplex:
      return Kind::kComplex;
    default:
      return Kind::kInteger;
  }
}

/// The rows of the table, without its distinction of forms.
bool is_defined(AmoOpcode op, Kind kind) {
  switch (op) {
    case AmoOpcode::kMin:
    case AmoOpcode::kMax:
    case AmoOpcode::kCswapLe:
    case AmoOpcode::kCswapLt:
    case AmoOpcode::kCswapGe:
    case AmoOpcode::kCswapGt:
      return kind != Kind::kComplex;
    case AmoOpcode::kLor:
    case AmoOpcode::kLand:
    case AmoOpcode::kLxor:
      return kind != Kind::kNarrow;
    case AmoOpcode::kBor:
    case AmoOpcode::kBand:
    case AmoOpcode::kBxor:
    case AmoOpcode::kMswap:
      return kind == Kind::kInteger;
    default:
      return !wire::name_of(op).empty();
  }
}

// --- Memory --------------------------------------------------------------------------------------

template <typename T>
T load(const std::uint8_t* from) {
  T value{};
  if (from != nullptr) std::memcpy(&value, from, sizeof value);
  return value;
}

/// The bytes of a number, without what lies in its padding: that would be memory of ours.
template <typename T>
void store(const T& value, std::uint8_t* to) {
  constexpr bool kIsPadded =
      std::numeric_limits<long double>::digits == 64 && sizeof(long double) == 16;
  constexpr std::size_t kExtended = 10;
  std::memcpy(to, &value, sizeof value);
  if constexpr (kIsPadded && std::same_as<T, long double>)
    std::memset(to + kExtended, 0, sizeof value - kExtended);
  if constexpr (kIsPadded && std::same_as<T, std::complex<long double>>)
    for (const std::size_t part : {std::size_t{0}, sizeof value / 2})
      std::memset(to + part + kExtended, 0, sizeof value / 2 - kExtended);
}

/// One step of the CPU.
template <typename T, typename Word>
void step(AmoOpcode op, std::uint8_t* target, T v, T c, std::uint8_t* old) {
  static_assert(sizeof(T) == sizeof(Word) && std::atomic_ref<Word>::is_always_lock_free);
  std::atomic_ref<Word> memory(*reinterpret_cast<Word*>(target));
  Word before = memory.load(std::memory_order_acquire);
  for (;;) {
    T t = load<T>(reinterpret_cast<const std::uint8_t*>(&before));
    if (!combine(op, t, v, c)) break;
    Word after{};
    store(t, reinterpret_cast<std::uint8_t*>(&after));
    if (memory.compare_exchange_weak(before, after, std::memory_order_acq_rel,
                                     std::memory_order_acquire))
      break;
  }
  if (old != nullptr) std::memcpy(old, &before, sizeof before);
}

template <typename T>
void copy_step(AmoOpcode op, std::uint8_t* target, T v, T c, std::uint8_t* old) {
  T t = load<T>(target);
  if (old != nullptr) std::memmove(old, target, sizeof t);
  if (combine(op, t, v, c)) store(t, target);
}

template <typename T, typename Word>
void run(const AmoOperation& amo, std::uint8_t* target, std::size_t count, std::uint8_t* old) {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(target) % sizeof(T) == 0;
  const auto at = [](const std::uint8_t* from, std::size_t i) {
    return from == nullptr ? nullptr : from + i * sizeof(T);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const T v = load<T>(at(amo.operand, i));
    const T c = load<T>(at(amo.compare, i));
    std::uint8_t* const old_at = old == nullptr ? nullptr : old + i * sizeof(T);
    std::uint8_t* const element = target + i * sizeof(T);
    if constexpr (!std::same_as<Word, void>) {
      if (is_aligned) {
        step<T, Word>(amo.op, element, v, c, old_at);
        continue;
      }
    }
    copy_step<T>(amo.op, element, v, c, old_at);
  }
}

}  // namespace

ReturnCode judge_amo(AmoOpcode op, AmoDatatype type, bool fetching) {
  if (wire::name_of(op).empty()) return ReturnCode::kAmoUnsupportedOp;
  const std::size_t element = amo_bytes(type);
  if (element == 0) return ReturnCode::kAmoUnsupportedDt;
  if (!is_defined(op, kind_of(type))) return ReturnCode::kAmoUnsupportedOp;
  const bool returns_only = op == AmoOpcode::kRead || has_compare_operands(op);
  if (returns_only ? !fetching : op == AmoOpcode::kInval && fetching)
    return ReturnCode::kAmoUnsupportedOp;
  // The fields for the operands hold 16 bytes. [WIRE 5.11]
  if (has_compare_operands(op) && element > sizeof(wire::U128))
    return ReturnCode::kAmoUnsupportedDt;
  return ReturnCode::kOk;
}

void execute(const AmoOperation& amo, std::uint8_t* target, std::size_t count, std::uint8_t* old) {
  switch (amo.type) {
    case AmoDatatype::kInt8:
      return run<std::int8_t, std::uint8_t>(amo, target, count, old);
    case AmoDatatype::kUint8:
      return run<std::uint8_t, std::uint8_t>(amo, target, count, old);
    case AmoDatatype::kInt16:
      return run<std::int16_t, std::uint16_t>(amo, target, count, old);
    case AmoDatatype::kUint16:
      return run<std::uint16_t, std::uint16_t>(amo, target, count, old);
    case AmoDatatype::kInt32:
      return run<std::int32_t, std::uint32_t>(amo, target, count, old);
    case AmoDatatype::kUint32:
      return run<std::uint32_t, std::uint32_t>(amo, target, count, old);
    case AmoDatatype::kInt64:
      return run<std::int64_t, std::uint64_t>(amo, target, count, old);
    case AmoDatatype::kUint64:
      return run<std::uint64_t, std::uint64_t>(amo, target, count, old);
    case AmoDatatype::kInt128:
      return run<Int128, void>(amo, target, count, old);
    case AmoDatatype::kUint128:
      return run<Uint128, void>(amo, target, count, old);
    case AmoDatatype::kFloat:
      return run<float, std::uint32_t>(amo, target, count, old);
    case AmoDatatype::kDouble:
      return run<double, std::uint64_t>(amo, target, count, old);
    case AmoDatatype::kFloatComplex:
      return run<std::complex<float>, std::uint64_t>(amo, target, count, old);
    case AmoDatatype::kDoubleComplex:
      return run<std::complex<double>, void>(amo, target, count, old);
    case AmoDatatype::kLongDouble:
      return run<long double, void>(amo, target, count, old);
    case AmoDatatype::kLongDoubleComplex:
      return run<std::complex<long double>, void>(amo, target, count, old);
    case AmoDatatype::kBfloat16:
      return run<Bfloat16, std::uint16_t>(amo, target, count, old);
    case AmoDatatype::kFloat16:
      return run<Float16, std::uint16_t>(amo, target, count, old);
  }
}

}  // namespace uet::ses
