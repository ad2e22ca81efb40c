/// Headers whose type is known at run time only: what the dissector hands out, and what uet-dump, the generators and the
/// tests look at. The data path uses codec.h. All that depends on a header's type is compiled once, in header_type.cc.
#pragma once

#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "lib/wire/headers.h"

namespace uet::wire {

enum class FieldKind : std::uint8_t { kUnsigned, kSigned, kBool, kEnum, kBytes, kWide };

/// One declared field, as text and numbers.
struct FieldInfo {
  std::string_view name = {};
  std::string_view meaning = {};
  unsigned offset = 0;  ///< bits from the start of the header
  unsigned width = 0;   ///< bits
  FieldKind kind = FieldKind::kUnsigned;
  bool is_reserved = false;
  bool is_psn = false;
  std::string_view enum_name = {};
  std::span<const EnumEntry> entries = {};  ///< of kEnum
};

/// A field, or a run of reserved bits, and its value in some header.
struct FieldValue {
  FieldInfo info = {};
  U128 value = {};                       ///< numbers; sign-extended into lo when kSigned
  std::array<std::uint8_t, 16> bytes{};  ///< of kBytes
  std::uint8_t bytes_size = 0;

  std::span<const std::uint8_t> as_bytes() const { return {bytes.data(), bytes_size}; }
  std::string_view value_name() const {
    return find_name(info.entries, static_cast<std::uint32_t>(value.lo));
  }
};

/// One declared header.
struct HeaderType {
  std::string_view layer;             ///< "pds", "ses", ...
  std::string_view name;              ///< of the layout: "request_syn", ...
  std::size_t size = 0;               ///< bytes
  std::span<const FieldInfo> fields;  ///< in wire order, reserved bits included
  /// Decodes `size` bytes; as many values as `fields`, in their order. Reserved bits are read as they are.
  std::vector<FieldValue> (*decode)(const std::uint8_t* raw);
  /// Encodes such a list to `size` bytes: reserved bits as 0, values cut to their width. False: a value was cut.
  bool (*encode)(std::span<const FieldValue> values, std::uint8_t* out);
  /// The values that a newly made header holds.
  std::vector<FieldValue> (*defaults)();
  /// Decodes `size` bytes into `header`, which points to a struct of this type: see decode_out_of_line.
  void (*decode_struct)(const std::uint8_t* raw, void* header);
};

/// Every declared header: those of the network first, then those of UET.
std::span<const HeaderType> header_types();
/// Those of UET.
std::span<const HeaderType> uet_header_types();

/// The type of H, which is one of NetHeaders or UetHeaders.
template <typename H>
const HeaderType& type_of() {
  constexpr std::size_t net = NetHeaders::index_of<H>();
  if constexpr (net < NetHeaders::kCount)
    return header_types()[net];
  else
    return uet_header_types()[UetHeaders::index_of<H>()];
}

/// decode<H> of codec.h by a call: slower, and nothing to compile.
template <typename H>
H decode_out_of_line(const std::uint8_t* raw) {
  H h;
  type_of<H>().decode_struct(raw, &h);
  return h;
}

/// Up to 128 bits of `raw` from bit `offset` on, one by one.
U128 bits_of(std::span<const std::uint8_t> raw, unsigned offset, unsigned width);

/// True when a bit that the header reserves is 1 in these bytes.
bool has_reserved_bits_set(const HeaderType& type, std::span<const std::uint8_t> raw);
/// Makes those bits 0.
void clear_reserved_bits(const HeaderType& type, std::span<std::uint8_t> raw);

}  // namespace uet::wire
