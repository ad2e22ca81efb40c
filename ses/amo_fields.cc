// Operands of compare and swap between memory and packet. [WIRE 5.11]
#include <cstring>

#include "ses/amo.h"
#include "ses/amo_numbers.h"

namespace uet::ses {
namespace {

template <typename T>
T load_part(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename Part>
wire::U128 pair_field(const std::uint8_t* element) {
  const Uint128 both = static_cast<Uint128>(load_part<Part>(element)) << (8 * sizeof(Part)) |
                       load_part<Part>(element + sizeof(Part));
  return {.hi = static_cast<std::uint64_t>(both >> 64), .lo = static_cast<std::uint64_t>(both)};
}

template <typename T>
wire::U128 field(const std::uint8_t* element) {
  const Uint128 value = load_part<T>(element);
  return {.hi = static_cast<std::uint64_t>(value >> 64), .lo = static_cast<std::uint64_t>(value)};
}

template <typename T>
void put(Uint128 value, std::uint8_t* to) {
  const T low = static_cast<T>(value);
  std::memcpy(to, &low, sizeof low);
}

}  // namespace

wire::U128 to_operand_field(AmoDatatype type, const std::uint8_t* element) {
  if (type == AmoDatatype::kFloatComplex) return pair_field<std::uint32_t>(element);
  if (type == AmoDatatype::kDoubleComplex) return pair_field<std::uint64_t>(element);
  switch (amo_bytes(type)) {
    case 1:
      return field<std::uint8_t>(element);
    case 2:
      return field<std::uint16_t>(element);
    case 4:
      return field<std::uint32_t>(element);
    case 8:
      return field<std::uint64_t>(element);
    default:
      return field<Uint128>(element);
  }
}

void from_operand_field(AmoDatatype type, const wire::U128& f, std::uint8_t* element) {
  const Uint128 value = static_cast<Uint128>(f.hi) << 64 | f.lo;
  switch (type) {
    case AmoDatatype::kFloatComplex:
      put<std::uint32_t>(value >> 32, element);
      return put<std::uint32_t>(value, element + 4);
    case AmoDatatype::kDoubleComplex:
      put<std::uint64_t>(value >> 64, element);
      return put<std::uint64_t>(value, element + 8);
    default:
      break;
  }
  switch (amo_bytes(type)) {
    case 1:
      return put<std::uint8_t>(value, element);
    case 2:
      return put<std::uint16_t>(value, element);
    case 4:
      return put<std::uint32_t>(value, element);
    case 8:
      return put<std::uint64_t>(value, element);
    default:
      return put<Uint128>(value, element);
  }
}

}  // namespace uet::ses
