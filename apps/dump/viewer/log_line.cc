#include "apps/dump/viewer/log_line.h"

#include <charconv>

namespace uet::dump {
namespace {

/// Takes `c` from the front.
bool take(std::string_view& in, char c) {
  if (in.empty() || in.front() != c) return false;
  in.remove_prefix(1);
  return true;
}

/// What is between quotes. An escape is none of ours: the line is refused.
std::optional<std::string_view> take_text(std::string_view& in) {
  if (!take(in, '"')) return std::nullopt;
  const std::size_t end = in.find_first_of("\"\\");
  if (end == std::string_view::npos || in[end] == '\\') return std::nullopt;
  const std::string_view out = in.substr(0, end);
  in.remove_prefix(end + 1);
  return out;
}

std::optional<std::string_view> take_number(std::string_view& in) {
  const std::size_t end = in.find_first_not_of("+-.0123456789eE");
  if (end == 0 || end == std::string_view::npos) return std::nullopt;
  const std::string_view out = in.substr(0, end);
  in.remove_prefix(end);
  return out;
}

}  // namespace

std::optional<LogLine> LogLine::parse(std::string_view in) {
  LogLine out;
  if (!take(in, '{')) return std::nullopt;
  while (out.count < kFieldsMax) {
    Field& field = out.fields[out.count++];
    const auto key = take_text(in);
    if (!key || !take(in, ':')) return std::nullopt;
    field.key = *key;
    field.is_text = !in.empty() && in.front() == '"';
    const auto value = field.is_text ? take_text(in) : take_number(in);
    if (!value) return std::nullopt;
    field.text = *value;
    if (take(in, '}')) return out;
    if (!take(in, ',')) return std::nullopt;
  }
  return std::nullopt;
}

const LogLine::Field* LogLine::find(std::string_view key) const {
  for (std::size_t i = 0; i < count; ++i)
    if (fields[i].key == key) return &fields[i];
  return nullptr;
}

std::int64_t LogLine::number(std::string_view key, std::int64_t otherwise) const {
  const Field* const field = find(key);
  if (field == nullptr) return otherwise;
  std::int64_t out = otherwise;
  std::from_chars(field->text.data(), field->text.data() + field->text.size(), out);
  return out;
}

}  // namespace uet::dump
