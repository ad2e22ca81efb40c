#include "apps/drill/values.h"

#include <fmt/format.h>

#include <charconv>

#include "lib/wire/enums.h"

namespace uet::drill {

namespace {

struct Name {
  std::string_view name;
  std::uint64_t value;
};

/// As the specification spells them, from the declarations of the wire format.
constexpr Name kNames[] = {
#define UET_X(enumerator, value, name) {name, value},
    UET_NACK_CODES(UET_X) UET_CONTROL_TYPES(UET_X) UET_NEXT_HDRS(UET_X) UET_ACK_REQUESTS(UET_X)
        UET_PDS_TYPES(UET_X) UET_SES_OPCODES(UET_X)
#undef UET_X
// Names that several lists have stand with the list they are from.
#define UET_X(enumerator, value, name) {"RC_" name, value},
            UET_RETURN_CODES(UET_X)
#undef UET_X
#define UET_X(enumerator, value, name) {"RO_" name, value},
                UET_RESPONSE_OPCODES(UET_X)
#undef UET_X
#define UET_X(enumerator, value, name) {"AMO_" name, value},
                    UET_AMO_OPCODES(UET_X)
#undef UET_X
#define UET_X(enumerator, value, name) {"DT_" name, value},
                        UET_AMO_DATATYPES(UET_X)
#undef UET_X
};

}  // namespace

std::optional<std::uint64_t> number(std::string_view text) {
  for (const Name& n : kNames)
    if (n.name == text) return n.value;
  const bool negative = text.starts_with("-");
  if (negative) text.remove_prefix(1);
  int radix = 10;
  if (text.starts_with("0x")) {
    radix = 16;
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, radix);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return negative ? 0 - value : value;
}

std::optional<std::uint64_t> Variables::read(std::string_view text, std::string& why_not) const {
  if (!text.starts_with("$")) {
    const auto n = number(text);
    if (!n) why_not = fmt::format("'{}' is no number", text);
    return n;
  }
  const std::size_t sign = text.find_first_of("+-", 1);
  const std::string_view name = text.substr(1, sign == std::string_view::npos ? sign : sign - 1);
  const auto at = values_.find(name);
  if (at == values_.end()) {
    why_not = fmt::format("${} has no value yet", name);
    return {};
  }
  if (sign == std::string_view::npos) return at->second;
  const auto step = read(text.substr(sign + 1), why_not);
  if (!step) return {};
  return text[sign] == '+' ? at->second + *step : at->second - *step;
}

}  // namespace uet::drill
