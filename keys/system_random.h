/// Bytes of keys and their names.
#pragma once

#include <cstdint>
#include <span>

namespace uet::keys {

/// From the system, which is waited for while it has just started and has none. One that gives none ends the process: no key may be made of less.
void fill_random(std::span<std::uint8_t> out);

}  // namespace uet::keys
