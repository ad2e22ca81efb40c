#include "lib/wire/capture_part.h"

#include <charconv>

namespace uet::wire {

namespace {

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

bool take(std::string_view& text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

}  // namespace

std::string CapturePart::to_comment() const {
  std::string text = "uet capture " + std::to_string(capture) + ", part " + std::to_string(part) +
                     ", files kept " + std::to_string(files) + ", packets before " +
                     std::to_string(packets_before);
  if (part > 1)
    text += "; the part before is in the file with .1 behind its name, or was overwritten";
  return text;
}

std::optional<CapturePart> CapturePart::parse(std::string_view comment) {
  CapturePart out;
  if (take(comment, "uet capture ") && take(comment, out.capture) && take(comment, ", part ") &&
      take(comment, out.part) && take(comment, ", files kept ") && take(comment, out.files) &&
      take(comment, ", packets before ") && take(comment, out.packets_before) && out.part >= 1 &&
      out.files >= 1)
    return out;
  return std::nullopt;
}

}  // namespace uet::wire
