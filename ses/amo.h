/// Atomic operators on elements in memory. [SES 16.3]
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/wire/ses_rules.h"
#include "lib/wire/u128.h"
#include "ses/ses.h"

namespace uet::ses {

using wire::amo_bytes;
using wire::has_compare_operands;

inline constexpr std::uint32_t kLargestElement = 32;

/// Bytes of operands in one packet of a payload MTU: the extension takes its place from the payload, so that no packet is longer
/// than a full one, and no element is cut in two. [SES 16.4, decision 140]
constexpr std::uint32_t atomic_payload_of(std::uint32_t payload_mtu) {
  return payload_mtu - kLargestElement;
}

/// What an element's address is a multiple of. Of complex numbers, the two parts are aligned and the pair need not be, as in C.
/// [decision 140]
constexpr std::size_t amo_alignment(AmoDatatype type) {
  const bool is_complex = type == AmoDatatype::kFloatComplex ||
                          type == AmoDatatype::kDoubleComplex ||
                          type == AmoDatatype::kLongDoubleComplex;
  return is_complex ? amo_bytes(type) / 2 : amo_bytes(type);
}

/// Whether the operator exists for the type in this form: kOk, or what a target answers. [SES 16.3]
ReturnCode judge_amo(AmoOpcode op, AmoDatatype type, bool fetching);

/// READ and INVAL have none.
constexpr bool has_operand(AmoOpcode op) {
  return op != AmoOpcode::kRead && op != AmoOpcode::kInval;
}

/// One AMO on `count` elements that lie one behind the other. `operand` holds one value for each, `compare` (of the
/// compare-and-swap family) too; both need no alignment. The old values go to `old`, unless it is null. The combination must be
/// one that judge_amo() accepts, and `target` aligned.
///
/// An element of at most 8 bytes that is aligned to its size changes in one atomic step of the CPU, for all its threads.
/// Others are atomic only among calls of one thread.
struct AmoOperation {
  AmoOpcode op{};
  AmoDatatype type{};
  const std::uint8_t* operand = nullptr;
  const std::uint8_t* compare = nullptr;
};
void execute(const AmoOperation& amo, std::uint8_t* target, std::size_t count, std::uint8_t* old);

/// Operands of the compare-and-swap family are integers on the wire, of complex numbers with the real part in the upper half.
/// [WIRE 5.11]
wire::U128 to_operand_field(AmoDatatype type, const std::uint8_t* element);
void from_operand_field(AmoDatatype type, const wire::U128& field, std::uint8_t* element);

}  // namespace uet::ses
