/// One line of an event log: a JSON object of numbers and texts, read without building anything. Whatever stands in the file.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace uet::dump {

struct LogLine {
  struct Field {
    std::string_view key, text;  ///< what a text has between its quotes, or the digits of a number
    bool is_text = false;
  };
  static constexpr std::size_t kFieldsMax =
      8;  ///< what the events of an endpoint have, and some more

  std::array<Field, kFieldsMax> fields;
  std::size_t count = 0;

  /// Nothing when the line is no flat object of at most so many fields.
  static std::optional<LogLine> parse(std::string_view line);
  const Field* find(std::string_view key) const;
  std::int64_t number(std::string_view key, std::int64_t otherwise = 0) const;
};

}  // namespace uet::dump
