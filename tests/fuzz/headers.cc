#include "lib/wire/header_type.h"
#include "tests/fuzz/checking_visitor.h"

namespace uet::fuzz {

void headers(Bytes input) {
  if (input.empty()) return;
  // A copy of exactly this size: reading past the end is seen.
  const std::vector<std::uint8_t> bytes(input.begin() + 1, input.end());
  const auto types = wire::header_types();
  const wire::HeaderType& type = types[input[0] % types.size()];
  if (bytes.size() < type.size) return;
  CheckingVisitor visitor(Bytes(bytes).first(type.size));
  visitor.on_header(type, type.name, 0, Bytes(bytes).first(type.size));
  visitor.finish();
}

}  // namespace uet::fuzz
