/// Texts that are wiped when they go.
#pragma once

#include <string>

#include "tss/locked_memory.h"

namespace uet::keys {

/// Texts longer than a string object holds in itself, as keys are, live in memory for keys.
using SecretText = std::basic_string<char, std::char_traits<char>, tss::LockedAllocator<char>>;

}  // namespace uet::keys
