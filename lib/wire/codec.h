/// parse and emit for any declared header: expanded at compile time into word loads, shifts and
/// masks; no loops. A header that is filled and emitted, or decoded and taken apart, in one function need not be in memory: fields that
/// were just stored one at a time would have to reach the cache before a wider load could take them together.
#pragma once

#include <bit>
#include <cstring>
#include <span>

#include "lib/base/byte_cursor.h"
#include "lib/base/drop_reason.h"
#include "lib/base/result.h"
#include "lib/wire/field.h"

namespace uet::wire {

namespace detail {

constexpr std::uint64_t low_mask(unsigned width) {
  return width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
}

/// The raw bits of a field value (of one of the types that fit 64 bits).
template <typename T>
constexpr std::uint64_t to_bits(T value) {
  if constexpr (std::is_same_v<T, base::Psn>)
    return value.value();
  else if constexpr (std::is_signed_v<T>)
    return static_cast<std::make_unsigned_t<T>>(value);
  else
    return static_cast<std::uint64_t>(value);
}

template <typename T>
constexpr T from_bits(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, base::Psn>)
    return base::Psn(static_cast<std::uint32_t>(bits));
  else if constexpr (std::is_same_v<T, bool>)
    return bits != 0;
  else
    return static_cast<T>(bits);
}

/// Bits [Offset, Offset + Width) of a header of Size bytes; Width at most 64. Fields inside one
/// aligned 32-bit word are cut out of a load of that word, so that the compiler loads each word
/// once.
template <unsigned Offset, unsigned Width, std::size_t Size>
inline std::uint64_t read_bits(const std::uint8_t* p) {
  constexpr unsigned first = Offset / 8;
  constexpr unsigned last = (Offset + Width - 1) / 8;
  constexpr unsigned word = Offset / 32;
  if constexpr (Width == 64 && Offset % 8 == 0) {
    return base::load_be<std::uint64_t>(p + first);
  } else if constexpr (Width == 16 && Offset % 16 == 0) {
    return base::load_be<std::uint16_t>(p + first);
  } else if constexpr (Width == 8 && Offset % 8 == 0) {
    return p[first];
  } else if constexpr (word == (Offset + Width - 1) / 32 && word * 4 + 4 <= Size) {
    return (base::load_be<std::uint32_t>(p + word * 4) >> (word * 32 + 32 - Offset - Width)) &
           low_mask(Width);
  } else {
    // The smallest load that covers the field and stays inside the header.
    constexpr unsigned bytes = last - first + 1;
    static_assert(bytes <= 8);
    constexpr unsigned load = bytes == 1 ? 1 : bytes == 2 ? 2 : bytes <= 4 ? 4 : 8;
    constexpr unsigned from = first + load <= Size ? first : last + 1 - load;
    static_assert(from + load <= Size);
    using Word = std::conditional_t<
        load == 1, std::uint8_t,
        std::conditional_t<load == 2, std::uint16_t,
                           std::conditional_t<load == 4, std::uint32_t, std::uint64_t>>>;
    return (std::uint64_t{base::load_be<Word>(p + from)} >> (8 * (from + load) - Offset - Width)) &
           low_mask(Width);
  }
}

template <typename H, std::size_t I>
[[gnu::always_inline]] inline void decode_field(H& h, const std::uint8_t* p) {
  constexpr const auto& f = entry<I>(kFields<H>);
  constexpr unsigned offset = kCells<H>[I].offset;
  using F = std::remove_cvref_t<decltype(f)>;
  if constexpr (!kIsReserved<F>) {
    using T = typename F::Value;
    if constexpr (kIsBytes<T>) {
      static_assert(offset % 8 == 0 && f.width == 8 * sizeof(T));
      std::memcpy((h.*(f.member)).data(), p + offset / 8, sizeof(T));
    } else if constexpr (std::is_same_v<T, U128>) {
      static_assert(f.width > 64 && f.width <= 128);
      h.*(f.member) = U128{.hi = read_bits<offset, f.width - 64, H::kSize>(p),
                           .lo = read_bits<offset + f.width - 64, 64, H::kSize>(p)};
    } else {
      h.*(f.member) = from_bits<T>(read_bits<offset, f.width, H::kSize>(p));
    }
  }
}

/// What bits [Offset, Offset + Width) with this value add to the word [Begin, Begin + Bits).
template <unsigned Offset, unsigned Width, unsigned Begin, unsigned Bits>
constexpr std::uint64_t overlap(std::uint64_t value) {
  constexpr unsigned from = Offset > Begin ? Offset : Begin;
  constexpr unsigned to = Offset + Width < Begin + Bits ? Offset + Width : Begin + Bits;
  if constexpr (from >= to) {
    return 0;
  } else {
    const std::uint64_t shifted = (value >> (Offset + Width - to)) << (Begin + Bits - to);
    if constexpr (from == Begin)
      return shifted;  // what is too much leaves the word at the top
    else
      return shifted & (low_mask(to - from) << (Begin + Bits - to));
  }
}

/// True when the field is stored by itself rather than as part of a word.
constexpr bool is_stored_alone(const Cell& cell) {
  if (cell.is_reserved) return false;
  return cell.is_bytes || (cell.offset % 8 == 0 && (cell.width == 64 || cell.width == 128));
}

/// The entries that have bits in [begin, begin + bits).
struct EntryRange {
  std::size_t first = 0;
  std::size_t count = 0;
  bool is_needed = false;  ///< some of them are not stored by themselves
};
template <std::size_t N>
constexpr EntryRange entries_in(const std::array<Cell, N>& cells, unsigned begin, unsigned bits) {
  EntryRange range;
  for (std::size_t i = 0; i < N; ++i) {
    if (cells[i].offset + cells[i].width <= begin) range.first = i + 1;
    if (cells[i].offset >= begin + bits || cells[i].offset + cells[i].width <= begin) continue;
    ++range.count;
    if (!is_stored_alone(cells[i])) range.is_needed = true;
  }
  return range;
}

template <typename H, std::size_t I, unsigned Begin, unsigned Bits>
[[gnu::always_inline]] inline std::uint64_t word_part(const H& h) {
  constexpr const auto& f = entry<I>(kFields<H>);
  constexpr unsigned offset = kCells<H>[I].offset;
  using F = std::remove_cvref_t<decltype(f)>;
  if constexpr (kIsReserved<F> || is_stored_alone(kCells<H>[I])) {
    return 0;
  } else if constexpr (std::is_same_v<typename F::Value, U128>) {
    return overlap<offset, f.width - 64, Begin, Bits>((h.*(f.member)).hi) |
           overlap<offset + f.width - 64, 64, Begin, Bits>((h.*(f.member)).lo);
  } else if constexpr (std::is_same_v<typename F::Value, bool>) {
    // Never more than one bit: no mask.
    return std::uint64_t{h.*(f.member)} << (Begin + Bits - offset - 1);
  } else {
    return overlap<offset, f.width, Begin, Bits>(to_bits(h.*(f.member)));
  }
}

template <typename H, typename Word, unsigned Begin>
[[gnu::always_inline]] inline void emit_word(const H& h, std::uint8_t* out) {
  constexpr unsigned bits = 8 * sizeof(Word);
  constexpr EntryRange range = entries_in(kCells<H>, Begin, bits);
  if constexpr (range.is_needed) {
    const std::uint64_t value = [&]<std::size_t... I>(std::index_sequence<I...>) {
      return (std::uint64_t{0} | ... | word_part<H, range.first + I, Begin, bits>(h));
    }
    (std::make_index_sequence<range.count>{});
    base::store_be(out + Begin / 8, static_cast<Word>(value));
  }
}

template <typename H, std::size_t I>
[[gnu::always_inline]] inline void emit_alone(const H& h, std::uint8_t* out) {
  if constexpr (is_stored_alone(kCells<H>[I])) {
    constexpr const auto& f = entry<I>(kFields<H>);
    std::uint8_t* const at = out + kCells<H>[I].offset / 8;
    using T = typename std::remove_cvref_t<decltype(f)>::Value;
    if constexpr (kIsBytes<T>) {
      std::memcpy(at, (h.*(f.member)).data(), sizeof(T));
    } else if constexpr (std::is_same_v<T, U128>) {
      base::store_be(at, (h.*(f.member)).hi);
      base::store_be(at + 8, (h.*(f.member)).lo);
    } else {
      base::store_be(at, to_bits(h.*(f.member)));
    }
  }
}

}  // namespace detail

namespace detail {

// Compilers would rather not inline these long lists; calls would cost more than the lists themselves.
template <typename H, std::size_t... I>
[[gnu::always_inline]] inline void decode_fields(H& __restrict h, const std::uint8_t* __restrict p,
                                                 std::index_sequence<I...>) {
  (decode_field<H, I>(h, p), ...);
}

template <typename H, std::size_t... W>
[[gnu::always_inline]] inline void emit_words(const H& __restrict h, std::uint8_t* __restrict out,
                                              std::index_sequence<W...>) {
  (emit_word<H, std::uint32_t, 32 * W>(h, out), ...);
}

template <typename H, std::size_t... I>
[[gnu::always_inline]] inline void emit_alones(const H& __restrict h, std::uint8_t* __restrict out,
                                               std::index_sequence<I...>) {
  (emit_alone<H, I>(h, out), ...);
}

}  // namespace detail

/// Decodes H from H::kSize bytes at `p`, which the caller has checked to be there, into `h`. They must not overlap.
template <typename H>
[[gnu::always_inline]] inline void decode_into(H& __restrict h, const std::uint8_t* __restrict p) {
  static_assert(bit_count<H>() == 8 * H::kSize, "field widths do not add up to the header size");
  detail::decode_fields(h, p, FieldIndices<H>{});
}

/// The same as a value.
template <typename H>
[[nodiscard, gnu::always_inline]] inline H decode(const std::uint8_t* p) {
  H h;
  decode_into(h, p);
  return h;
}

/// Decodes H from the front of `bytes` into `h`. False when it does not fit. Values are not judged here.
template <typename H>
[[nodiscard, gnu::always_inline]] inline bool parse_into(H& h,
                                                         std::span<const std::uint8_t> bytes) {
  if (bytes.size() < H::kSize) [[unlikely]]
    return false;
  decode_into(h, bytes.data());
  return true;
}

/// The same by value. On the way of every packet parse_into() is faster.
template <typename H>
inline base::Result<H, base::DropReason> parse(std::span<const std::uint8_t> bytes) {
  H h;
  if (!parse_into(h, bytes)) return base::DropReason::kTruncated;
  return h;
}

/// Writes exactly H::kSize bytes to `out`, which must not overlap `h`; reserved bits become 0 and values are cut to
/// their width.
template <typename H>
[[gnu::always_inline]] inline void emit(const H& __restrict h, std::uint8_t* __restrict out) {
  static_assert(bit_count<H>() == 8 * H::kSize, "field widths do not add up to the header size");
  detail::emit_words(h, out, std::make_index_sequence<H::kSize / 4>{});
  if constexpr (H::kSize % 4 >= 2) detail::emit_word<H, std::uint16_t, 32 * (H::kSize / 4)>(h, out);
  if constexpr (H::kSize % 2 == 1) detail::emit_word<H, std::uint8_t, 8 * (H::kSize - 1)>(h, out);
  detail::emit_alones(h, out, FieldIndices<H>{});
}

/// True when every value of `h` fits the width it has on the wire, so that emit loses nothing.
template <typename H>
constexpr bool fits(const H& h) {
  bool ok = true;
  for_each_field<H>([&](const auto& f, unsigned) {
    using F = std::remove_cvref_t<decltype(f)>;
    if constexpr (!kIsReserved<F>) {
      using T = typename F::Value;
      if constexpr (std::is_same_v<T, U128>)
        ok = ok && (h.*(f.member)).hi <= detail::low_mask(f.width - 64);
      else if constexpr (!kIsBytes<T>)
        ok = ok && detail::to_bits(h.*(f.member)) <= detail::low_mask(f.width);
    }
  });
  return ok;
}

}  // namespace uet::wire
