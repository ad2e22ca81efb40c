#include "lib/wire/uet_crc.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/base/byte_cursor.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace uet::wire {

namespace {

#ifdef __x86_64__
/// isa-l's kernels for AVX-512 return with the upper halves of the vector registers in use. As long as they are, an SSE instruction
/// that writes a register waits for what was in it, and this program has no others: large writes are a tenth slower, reads a fifth.
[[gnu::target("avx")]] void clear_upper_halves() {
  _mm256_zeroupper();
}
#endif

/// The register of isa-l after `n` more bytes, at most 2^31 - 1. It picks its kernel once, and does not write to them.
std::uint32_t advance(const std::uint8_t* bytes, std::size_t n, std::uint32_t state) {
  state = crc32_iscsi(const_cast<unsigned char*>(bytes), static_cast<int>(n), state);
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx")) [[likely]]
    clear_upper_halves();
#endif
  return state;
}

/// The last `Bytes` of both addresses, as one copy of a known size each. Returns how many bytes that is.
template <std::size_t Bytes>
std::size_t put_addresses(const CrcPseudoHeader& from, std::uint8_t* to) {
  std::memcpy(to, from.source.data() + 16 - Bytes, Bytes);
  std::memcpy(to + Bytes, from.destination.data() + 16 - Bytes, Bytes);
  return 2 * Bytes;
}

#ifdef __x86_64__
/// The same of a few words of 32 bits, for which a kernel made for long runs costs several times as much.
[[gnu::target("sse4.2")]] std::uint32_t advance_words(const std::uint8_t* bytes, std::size_t n,
                                                      std::uint32_t state) {
  std::uint64_t wide = state;
  for (; n >= 8; n -= 8, bytes += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  if (n == 0) return static_cast<std::uint32_t>(wide);
  std::uint32_t last;
  std::memcpy(&last, bytes, 4);
  return _mm_crc32_u32(static_cast<std::uint32_t>(wide), last);
}
#endif

/// The register behind what stands in front of the packet.
std::uint32_t state_behind(const CrcPseudoHeader& in_front) {
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
#ifdef __x86_64__
  if (__builtin_cpu_supports("sse4.2")) [[likely]]
    return advance_words(front.data(), n, ~0u);
#endif
  return advance(front.data(), n, ~0u);
}

}  // namespace

std::uint32_t crc32c(std::span<const std::uint8_t> bytes, std::uint32_t previous) {
  constexpr std::size_t kMost = 1U << 30;
  // isa-l takes and returns what it was before the final inversion.
  std::uint32_t state = ~previous;
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), kMost);
    state = advance(bytes.data(), n, state);
    bytes = bytes.subspan(n);
  }
  return ~state;
}

std::uint32_t uet_crc(const CrcPseudoHeader& in_front, std::span<const std::uint8_t> uet) {
  return uet_crc(in_front, uet, {});
}

std::uint32_t uet_crc(const CrcPseudoHeader& in_front, std::span<const std::uint8_t> uet,
                      std::span<const std::uint8_t> rest) {
  std::uint32_t state = advance(uet.data(), uet.size(), state_behind(in_front));
  if (!rest.empty()) state = advance(rest.data(), rest.size(), state);
  return ~state;
}

}  // namespace uet::wire
