/// libfabric's operators and data types of atomics as those of SES. [SES 16.3]
#pragma once

#include <rdma/fi_atomic.h>

#include <cstdint>
#include <optional>

#include "ses/amo.h"

namespace uet::provider {

enum class AtomicForm : std::uint8_t { kPlain, kFetch, kCompare };

struct AmoKind {
  ses::AmoOpcode op;
  ses::AmoDatatype type;
  std::size_t element;  ///< bytes

  bool has_operand() const { return ses::has_operand(op); }
};

/// Empty where `op` does not exist for `type` in this form. Both may be newer than our headers.
std::optional<AmoKind> find_amo(int op, int type, AtomicForm form);

/// Elements that one call takes: those of one packet, or one whose old value comes back. [SES 16.4]
std::size_t max_elements(const AmoKind& kind, AtomicForm form, std::size_t payload_mtu);

}  // namespace uet::provider
