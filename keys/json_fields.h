/// Reads the fields of a JSON object by name, with range checks, and finds those that were not
/// asked for. Keeps the first thing that is wrong.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "keys/secret_json.h"

namespace uet::keys {

class Fields {
 public:
  /// `where` is the path of the object for messages; what goes wrong goes into `error` unless
  /// something is there. Both JSON and `error` must outlive this.
  Fields(const SecretJson& object, std::string where, std::string& error);

  bool has(std::string_view name) const;
  /// Decimal, or a text with 0x and hexadecimal digits.
  std::uint64_t number(std::string_view name, std::uint64_t fallback, std::uint64_t max);
  bool flag(std::string_view name, bool fallback);
  std::string text(std::string_view name, std::string_view fallback);
  /// Index of the word; 0 when it is none of them.
  std::size_t choice(std::string_view name, std::string_view fallback,
                     std::initializer_list<std::string_view> words);
  /// Exactly out.size() bytes in hexadecimal digits.
  void secret(std::string_view name, std::span<std::uint8_t> out);
  std::vector<std::uint64_t> numbers(std::string_view name, std::uint64_t max);
  /// An object that is missing reads as an empty one, unless it is required.
  Fields object(std::string_view name, bool is_required);
  std::vector<Fields> list(std::string_view name);

  void fail(std::string_view name, std::string_view why);
  /// Complains about fields that were not asked for.
  void finish();

 private:
  const SecretJson* find(std::string_view name);
  bool to_number(const SecretJson& value, std::string_view name, std::uint64_t max,
                 std::uint64_t& out);
  std::string path(std::string_view name) const;

  const SecretJson* object_;
  std::string where_;
  std::string* error_;
  std::vector<std::string> asked_;
};

}  // namespace uet::keys
