/// What came of building a packet.
#pragma once

#include <cstdint>

namespace uet::pds {

enum class Built : std::uint8_t { kNothing, kPacket, kNoBuffer };

}  // namespace uet::pds
