/// JSON whose texts are wiped when they go: key files and nothing else.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tss/locked_memory.h"

namespace uet::keys {

/// Texts longer than a string object holds in itself, as keys are, live in memory for keys.
using SecretText = std::basic_string<char, std::char_traits<char>, tss::LockedAllocator<char>>;
using SecretJson = nlohmann::basic_json<nlohmann::ordered_map, std::vector, SecretText, bool,
                                        std::int64_t, std::uint64_t, double>;

}  // namespace uet::keys
