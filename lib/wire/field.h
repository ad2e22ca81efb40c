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
#include <tuple>
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

/// The declared list of H, as one constant.
template <typename H>
inline constexpr auto kFields = H::fields();

template <typename H>
inline constexpr std::size_t kFieldCount = std::tuple_size_v<decltype(H::fields())>;

template <typename H>
using FieldIndices = std::make_index_sequence<kFieldCount<H>>;

/// Bit offset of field I, counted from the first bit on the wire.
template <typename H, std::size_t I>
constexpr unsigned bit_offset() {
  return []<std::size_t... J>(std::index_sequence<J...>) {
    return (0U + ... + std::get<J>(kFields<H>).width);
  }
  (std::make_index_sequence<I>{});
}

/// Sum of all widths: what kSize is checked against.
template <typename H>
constexpr unsigned bit_count() {
  return bit_offset<H, kFieldCount<H>>();
}

/// Calls visit(field_or_reserved, bit_offset) for every entry of H's list in wire order.
template <typename H, typename Visitor>
constexpr void for_each_field(Visitor&& visit) {
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (visit(std::get<I>(kFields<H>), bit_offset<H, I>()), ...);
  }
  (FieldIndices<H>{});
}

}  // namespace uet::wire
