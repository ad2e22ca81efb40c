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

/// What stands in front of the packet. It is written in the words in which it is read: a load of a word that was written in parts
/// waits until all earlier stores have reached the cache, and at a target these are the payload of the packet before.
struct Front {
  explicit Front(const CrcPseudoHeader& of) {
    if (of.is_v4) {
      add(std::uint64_t{load<std::uint32_t>(of.source, 12)} << 32 |
          load<std::uint32_t>(of.destination, 12));
    } else {
      add(load<std::uint64_t>(of.source, 0));
      add(load<std::uint64_t>(of.source, 8));
      add(load<std::uint64_t>(of.destination, 0));
      add(load<std::uint64_t>(of.destination, 8));
    }
    if (of.is_udp)  // a checksum counts as 0
      add(std::uint64_t{of.entropy} << 48 | std::uint64_t{of.udp_destination_port} << 32 |
          std::uint64_t{of.udp_length} << 16);
    else
      add(std::uint32_t{of.entropy} << 16 | of.entropy_reserved);
  }

  template <typename Word>
  static Word load(std::span<const std::uint8_t, 16> address, std::size_t at) {
    return base::load_be<Word>(address.data() + at);
  }
  template <typename Word>
  void add(Word word) {
    base::store_be(bytes.data() + size, word);
    size += sizeof word;
  }

  std::array<std::uint8_t, 16 + 16 + 8> bytes;
  std::size_t size = 0;
};

#ifdef __x86_64__
/// isa-l's kernels are faster from here on, in bytes.
constexpr std::size_t kLong = 257;

template <typename Word>
Word word_at(const std::uint8_t* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

/// The register behind what stands in front of the packet, none of which is written to memory.
[[gnu::target("sse4.2"), gnu::always_inline]] inline std::uint64_t state_behind_words(
    const CrcPseudoHeader& in_front) {
  const std::uint8_t* const source = in_front.source.data();
  const std::uint8_t* const destination = in_front.destination.data();
  std::uint64_t state = ~std::uint32_t{0};
  if (in_front.is_v4) [[likely]] {
    const std::uint64_t both = std::uint64_t{word_at<std::uint32_t>(destination + 12)} << 32 |
                               word_at<std::uint32_t>(source + 12);
    state = _mm_crc32_u64(state, both);
  } else {
    for (const std::uint8_t* address : {source, destination})
      for (const std::size_t half : {0, 8})
        state = _mm_crc32_u64(state, word_at<std::uint64_t>(address + half));
  }
  if (!in_front.is_udp)
    return _mm_crc32_u32(
        static_cast<std::uint32_t>(state),
        __builtin_bswap32(std::uint32_t{in_front.entropy} << 16 | in_front.entropy_reserved));
  // The checksum field of UDP is 0.
  const std::uint64_t udp = std::uint64_t{in_front.entropy} << 48 |
                            std::uint64_t{in_front.udp_destination_port} << 32 |
                            std::uint64_t{in_front.udp_length} << 16;
  return _mm_crc32_u64(state, __builtin_bswap64(udp));
}

[[gnu::target("sse4.2")]] std::uint32_t short_crc(const CrcPseudoHeader& in_front,
                                                  const std::uint8_t* bytes, std::size_t n) {
  std::uint64_t state = state_behind_words(in_front);
  for (; n >= 32; n -= 32)
    for (const std::uint8_t* const end = bytes + 32; bytes != end; bytes += 8)
      state = _mm_crc32_u64(state, word_at<std::uint64_t>(bytes));
  for (; n >= 8; n -= 8, bytes += 8) state = _mm_crc32_u64(state, word_at<std::uint64_t>(bytes));
  auto narrow = static_cast<std::uint32_t>(state);
  if (n >= 4) {
    narrow = _mm_crc32_u32(narrow, word_at<std::uint32_t>(bytes));
    n -= 4, bytes += 4;
  }
  for (; n > 0; --n) narrow = _mm_crc32_u8(narrow, *bytes++);
  return ~narrow;
}

[[gnu::target("sse4.2")]] std::uint32_t state_by_words(const CrcPseudoHeader& in_front) {
  return static_cast<std::uint32_t>(state_behind_words(in_front));
}
#endif

/// The register behind what stands in front of the packet.
std::uint32_t state_behind(const CrcPseudoHeader& in_front) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("sse4.2")) [[likely]]
    return state_by_words(in_front);
#endif
  const Front front(in_front);
  return advance(front.bytes.data(), front.size, ~0u);
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

namespace {

/// By itself, so that the way of short packets needs no stack.
[[gnu::noinline]] std::uint32_t long_crc(const CrcPseudoHeader& in_front,
                                         std::span<const std::uint8_t> uet,
                                         std::span<const std::uint8_t> rest) {
  std::uint32_t state = advance(uet.data(), uet.size(), state_behind(in_front));
  if (!rest.empty()) state = advance(rest.data(), rest.size(), state);
  return ~state;
}

}  // namespace

std::uint32_t uet_crc(const CrcPseudoHeader& in_front, std::span<const std::uint8_t> uet) {
  return uet_crc(in_front, uet, {});
}

std::uint32_t uet_crc(const CrcPseudoHeader& in_front, std::span<const std::uint8_t> uet,
                      std::span<const std::uint8_t> rest) {
#ifdef __x86_64__
  if (uet.size() < kLong && rest.empty() && __builtin_cpu_supports("sse4.2")) [[likely]]
    return short_crc(in_front, uet.data(), uet.size());
#endif
  return long_crc(in_front, uet, rest);
}

}  // namespace uet::wire
