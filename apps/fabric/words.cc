#include "apps/fabric/words.h"

#include <algorithm>

namespace uet::fabric {

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  constexpr std::string_view kSpaces = " \t\r";
  for (;;) {
    const std::size_t start = text.find_first_not_of(kSpaces);
    if (start == std::string_view::npos) return words;
    const std::size_t end = std::min(text.find_first_of(kSpaces, start), text.size());
    words.push_back(text.substr(start, end - start));
    text.remove_prefix(end);
  }
}

}  // namespace uet::fabric
