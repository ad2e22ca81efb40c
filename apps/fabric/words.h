/// Commands and rules are words with spaces between them.
#pragma once

#include <string_view>
#include <vector>

namespace uet::fabric {

std::vector<std::string_view> words_of(std::string_view text);

}  // namespace uet::fabric
