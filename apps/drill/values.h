/// Numbers in scripts: literals, names of the specification, variables.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace uet::drill {

/// Decimal, hexadecimal (0x...), negative, or a name such as NO_PDC_AVAIL or CLOSE_COMMAND.
std::optional<std::uint64_t> number(std::string_view text);

class Variables {
 public:
  void set(std::string name, std::uint64_t value) { values_[std::move(name)] = value; }
  /// A number, `$NAME`, `$NAME+N` or `$NAME-N`, where N may be a variable too. Nothing, and a reason, when it is none of these.
  std::optional<std::uint64_t> read(std::string_view text, std::string& why_not) const;

 private:
  std::map<std::string, std::uint64_t, std::less<>> values_;
};

}  // namespace uet::drill
