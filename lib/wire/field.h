/// The vocabulary of header declarations. A header is a plain struct of decoded fields plus a
/// static function fields() that lists them in wire order, reserved bits included. Everything else
/// (parse, emit, uet-dump, the Wireshark plug-in, the scapy layer, fuzz round trips) is generated
/// from that list. [WIRE 1.1]
///
/// fields() is a template over its own header, `template <typename H = ThisHeader>`, so that a list is put together only
/// in the files that decode or emit it: including every header costs 0.2 s that way, and 3.5 s otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lib/base/serial.h"
#include "lib/wire/u128.h"

namespace uet::wire {

/// A named field of header H, held in a member of type T.
template <typename H, typename T>
struct Field {
  using Value = T;
  std::string_view name;
  T H::*member;
  unsigned width;  ///< bits
  std::string_view meaning;
};

template <typename H, typename T>
constexpr Field<H, T> field(std::string_view name, T H::*member, unsigned width,
                            std::string_view meaning) {
  return {name, member, width, meaning};
}

/// Bits that are sent as 0 and ignored on receive.
struct Reserved {
  std::string_view name;
  unsigned width;
};

constexpr Reserved reserved(std::string_view name, unsigned width) {
  return {name, width};
}

template <typename F>
inline constexpr bool kIsReserved = std::is_same_v<std::remove_cvref_t<F>, Reserved>;

/// An ordered list of entries of different types. std::tuple would serve, but for what its constructors cost the compiler:
/// half a second for each header in each file that encodes it.
template <std::size_t I, typename F>
struct FieldSlot {
  F entry;
};
template <typename Indices, typename... F>
struct FieldSlots;
template <std::size_t... I, typename... F>
struct FieldSlots<std::index_sequence<I...>, F...> : FieldSlot<I, F>... {
  static constexpr std::size_t kCount = sizeof...(F);
};
template <typename... F>
using FieldList = FieldSlots<std::index_sequence_for<F...>, F...>;

template <typename... F>
constexpr FieldList<F...> list_of(const F&... entries) {
  return {{entries}...};
}

template <std::size_t I, typename F>
constexpr const F& entry(const FieldSlot<I, F>& slot) {
  return slot.entry;
}

/// The entries of `a`, then those of `b`, then those of the others.
template <std::size_t... I, typename... F, std::size_t... J, typename... G, typename... Others>
constexpr auto join(const FieldSlots<std::index_sequence<I...>, F...>& a,
                    const FieldSlots<std::index_sequence<J...>, G...>& b, const Others&... others) {
  const FieldList<F..., G...> both{{entry<I>(a)}..., {entry<J>(b)}...};
  if constexpr (sizeof...(Others) == 0)
    return both;
  else
    return join(both, others...);
}

/// The declared list of H, as one constant.
template <typename H>
inline constexpr auto kFields = H::fields();

template <typename H>
inline constexpr std::size_t kFieldCount = decltype(H::fields())::kCount;

template <typename H>
using FieldIndices = std::make_index_sequence<kFieldCount<H>>;

/// What an entry is apart from its type, so that plain loops can look through a header.
struct Cell {
  unsigned offset = 0;  ///< bits from the first one on the wire
  unsigned width = 0;
  bool is_reserved = false;
  bool is_bytes = false;  ///< held in an array of bytes
};

template <typename T>
inline constexpr bool kIsBytes = false;
template <std::size_t N>
inline constexpr bool kIsBytes<std::array<std::uint8_t, N>> = true;

namespace detail {

template <typename H, typename T>
constexpr Cell cell_of(const Field<H, T>& f) {
  return {.width = f.width, .is_bytes = kIsBytes<T>};
}
constexpr Cell cell_of(const Reserved& r) {
  return {.width = r.width, .is_reserved = true};
}

template <std::size_t... I, typename... F>
constexpr std::array<Cell, sizeof...(F)> cells_of(
    const FieldSlots<std::index_sequence<I...>, F...>& list) {
  std::array<Cell, sizeof...(F)> cells{cell_of(entry<I>(list))...};
  for (std::size_t i = 1; i < cells.size(); ++i)
    cells[i].offset = cells[i - 1].offset + cells[i - 1].width;
  return cells;
}

}  // namespace detail

template <typename H>
inline constexpr auto kCells = detail::cells_of(kFields<H>);

/// Sum of all widths: what kSize is checked against.
template <typename H>
constexpr unsigned bit_count() {
  return kCells<H>.back().offset + kCells<H>.back().width;
}

/// Calls visit(field_or_reserved, bit_offset) for every entry of H's list in wire order.
template <typename H, typename Visitor>
constexpr void for_each_field(Visitor&& visit) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (visit(entry<I>(kFields<H>), kCells<H>[I].offset), ...);
  }
  (FieldIndices<H>{});
}

}  // namespace uet::wire
