/// Looking at a decoded header without knowing its type: what the dump tool, the generators and the
/// tests use.
#pragma once

#include <cstring>
#include <span>
#include <string_view>

#include "lib/wire/codec.h"
#include "lib/wire/enums.h"

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

/// A field and its value in some header. `bytes` points into that header.
struct FieldValue {
  FieldInfo info;
  U128 value = {};  ///< numbers; sign-extended into lo when kSigned
  std::span<const std::uint8_t> bytes = {};

  std::string_view value_name() const {
    return find_name(info.entries, static_cast<std::uint32_t>(value.lo));
  }
};

namespace detail {

template <typename F>
constexpr FieldInfo info_of(const F& f, unsigned offset) {
  FieldInfo info{.name = f.name, .offset = offset, .width = f.width};
  if constexpr (kIsReserved<F>) {
    info.is_reserved = true;
  } else {
    using T = typename F::Value;
    info.meaning = f.meaning;
    info.is_psn = std::is_same_v<T, base::Psn>;
    if constexpr (kIsBytes<T>)
      info.kind = FieldKind::kBytes;
    else if constexpr (std::is_same_v<T, U128>)
      info.kind = FieldKind::kWide;
    else if constexpr (std::is_same_v<T, bool>)
      info.kind = FieldKind::kBool;
    else if constexpr (std::is_enum_v<T>) {
      info.kind = FieldKind::kEnum;
      info.enum_name = EnumTraits<T>::kName;
      info.entries = enum_entries<T>();
    } else if constexpr (!std::is_same_v<T, base::Psn>) {
      if constexpr (std::is_signed_v<T>) info.kind = FieldKind::kSigned;
    }
  }
  return info;
}

}  // namespace detail

/// Calls visit(const FieldInfo&) for every entry of H's list, reserved bits included.
template <typename H, typename Visitor>
constexpr void for_each_info(Visitor&& visit) {
  for_each_field<H>([&](const auto& f, unsigned offset) { visit(detail::info_of(f, offset)); });
}

/// Calls visit(const FieldValue&) for every named field of `h` in wire order.
template <typename H, typename Visitor>
void for_each_value(const H& h, Visitor&& visit) {
  for_each_field<H>([&](const auto& f, unsigned offset) {
    using F = std::remove_cvref_t<decltype(f)>;
    if constexpr (!kIsReserved<F>) {
      using T = typename F::Value;
      FieldValue v{.info = detail::info_of(f, offset), .value = {}, .bytes = {}};
      const T& member = h.*(f.member);
      if constexpr (detail::kIsBytes<T>)
        v.bytes = member;
      else if constexpr (std::is_same_v<T, U128>)
        v.value = member;
      else if constexpr (std::is_same_v<T, base::Psn>)
        v.value.lo = member.value();
      else
        v.value.lo = static_cast<std::uint64_t>(member);
      visit(static_cast<const FieldValue&>(v));
    }
  });
}

/// Sets the field `name` of `h` from a number; false when there is no such field or it holds bytes.
template <typename H>
bool set_value(H& h, std::string_view name, U128 value) {
  bool found = false;
  for_each_field<H>([&](const auto& f, unsigned) {
    using F = std::remove_cvref_t<decltype(f)>;
    if constexpr (!kIsReserved<F>) {
      using T = typename F::Value;
      if constexpr (!detail::kIsBytes<T>) {
        if (f.name == name) {
          found = true;
          if constexpr (std::is_same_v<T, U128>)
            h.*(f.member) = value;
          else
            h.*(f.member) = detail::from_bits<T>(value.lo);
        }
      }
    }
  });
  return found;
}

/// Sets the byte-string field `name` of `h`; false when there is none of that name and length.
template <typename H>
bool set_bytes(H& h, std::string_view name, std::span<const std::uint8_t> bytes) {
  bool found = false;
  for_each_field<H>([&](const auto& f, unsigned) {
    using F = std::remove_cvref_t<decltype(f)>;
    if constexpr (!kIsReserved<F>) {
      if constexpr (detail::kIsBytes<typename F::Value>) {
        if (f.name == name && bytes.size() == (h.*(f.member)).size()) {
          found = true;
          std::memcpy((h.*(f.member)).data(), bytes.data(), bytes.size());
        }
      }
    }
  });
  return found;
}

namespace detail {

/// 1 in every bit of H that belongs to a named field.
template <typename H>
constexpr std::array<std::uint8_t, H::kSize> make_defined_mask() {
  std::array<std::uint8_t, H::kSize> mask{};
  for_each_field<H>([&](const auto& f, unsigned offset) {
    if constexpr (!kIsReserved<decltype(f)>) {
      for (unsigned bit = offset; bit < offset + f.width; ++bit)
        mask[bit / 8] = static_cast<std::uint8_t>(mask[bit / 8] | (0x80U >> (bit % 8)));
    }
  });
  return mask;
}

}  // namespace detail

template <typename H>
inline constexpr std::array<std::uint8_t, H::kSize> kDefinedMask = detail::make_defined_mask<H>();

/// True when a bit that H reserves is 1 in these H::kSize bytes.
template <typename H>
bool has_reserved_bits_set(std::span<const std::uint8_t> bytes) {
  std::uint8_t extra = 0;
  for (std::size_t i = 0; i < H::kSize; ++i)
    extra = static_cast<std::uint8_t>(extra | (bytes[i] & ~kDefinedMask<H>[i]));
  return extra != 0;
}

}  // namespace uet::wire
