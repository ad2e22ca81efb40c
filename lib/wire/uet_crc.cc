#include "lib/wire/uet_crc.h"

#include <isa-l/crc.h>

#include <array>
#include <cstring>

#include "lib/base/byte_cursor.h"

namespace uet::wire {

std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t previous) {
  // isa-l takes and returns the register before the final inversion, an int length and a non-const
  // pointer (it does not write). It picks the fastest kernel of the running CPU once.
  constexpr std::size_t kMost = 1U << 30;
  std::uint32_t state = ~previous;
  while (!bytes.empty()) {
    const std::size_t n = bytes.size() < kMost ? bytes.size() : kMost;
    state = crc32_iscsi(const_cast<unsigned char*>(bytes.data()), static_cast<int>(n), state);
    bytes = bytes.subspan(n);
  }
  return ~state;
}

namespace {

/// The last `Bytes` of both addresses, as one copy of a known size each. Returns how many bytes that is.
template <std::size_t Bytes>
std::size_t put_addresses(const CrcPseudoHeader& from, std::uint8_t* to) {
  std::memcpy(to, from.source.data() + 16 - Bytes, Bytes);
  std::memcpy(to + Bytes, from.destination.data() + 16 - Bytes, Bytes);
  return 2 * Bytes;
}

}  // namespace

std::uint32_t uet_crc(const CrcPseudoHeader& in_front, std::span<const std::uint8_t> uet) {
  std::array<std::uint8_t, 16 + 16 + 8> front;
  std::size_t n = in_front.is_v4 ? put_addresses<4>(in_front, front.data())
                                 : put_addresses<16>(in_front, front.data());
  base::store_be(front.data() + n, in_front.entropy);
  if (in_front.is_udp) {
    base::store_be(front.data() + n + 2, in_front.udp_destination_port);
    base::store_be(front.data() + n + 4, in_front.udp_length);
    base::store_be(front.data() + n + 6, std::uint16_t{0});  // a checksum counts as 0
    n += 8;
  } else {
    base::store_be(front.data() + n + 2, in_front.entropy_reserved);
    n += 4;
  }
  return crc32c(uet, crc32c({front.data(), n}));
}

std::uint32_t uet_crc(const CrcPseudoHeader& in_front, std::span<const std::uint8_t> uet,
                      std::span<const std::uint8_t> rest) {
  return crc32c(rest, uet_crc(in_front, uet));
}

}  // namespace uet::wire
