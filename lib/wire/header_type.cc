#include "lib/wire/header_type.h"

#include "lib/wire/codec.h"

namespace uet::wire {
namespace {

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

template <typename H, std::size_t... I>
constexpr std::array<FieldInfo, sizeof...(I)> infos_of(std::index_sequence<I...>) {
  return {info_of(entry<I>(kFields<H>), kCells<H>[I].offset)...};
}
template <typename H>
constexpr auto kInfos = infos_of<H>(FieldIndices<H>{});

// A member as a FieldValue, and back.

template <typename T>
void read_member(const T& member, FieldValue& out) {
  if constexpr (kIsBytes<T>) {
    static_assert(sizeof(T) <= sizeof out.bytes);
    std::memcpy(out.bytes.data(), member.data(), sizeof(T));
    out.bytes_size = sizeof(T);
  } else if constexpr (std::is_same_v<T, U128>) {
    out.value = member;
  } else if constexpr (std::is_same_v<T, base::Psn>) {
    out.value.lo = member.value();
  } else {
    out.value.lo = static_cast<std::uint64_t>(member);
  }
}

template <typename T>
void write_member(const FieldValue& from, T& member) {
  if constexpr (kIsBytes<T>)
    std::memcpy(member.data(), from.bytes.data(), sizeof(T));
  else if constexpr (std::is_same_v<T, U128>)
    member = from.value;
  else
    member = detail::from_bits<T>(from.value.lo);
}

template <typename H>
std::vector<FieldValue> values_of(const H& h) {
  std::vector<FieldValue> values(kFieldCount<H>);
  for (std::size_t i = 0; i < values.size(); ++i) values[i].info = kInfos<H>[i];
  auto next = values.begin();
  for_each_field<H>([&](const auto& f, unsigned) {
    if constexpr (!kIsReserved<decltype(f)>) read_member(h.*(f.member), *next);
    ++next;
  });
  return values;
}

template <typename H>
void decode_struct(const std::uint8_t* raw, void* header) {
  decode_into(*static_cast<H*>(header), raw);
}

template <typename H>
std::vector<FieldValue> decode_values(const std::uint8_t* raw) {
  H h;
  decode_struct<H>(raw, &h);
  auto values = values_of(h);
  for (FieldValue& v : values)
    if (v.info.is_reserved) v.value = bits_of({raw, H::kSize}, v.info.offset, v.info.width);
  return values;
}

template <typename H>
bool encode_values(std::span<const FieldValue> values, std::uint8_t* out) {
  H h;
  auto next = values.begin();
  for_each_field<H>([&](const auto& f, unsigned) {
    if constexpr (!kIsReserved<decltype(f)>) write_member(*next, h.*(f.member));
    ++next;
  });
  emit(h, out);
  return fits(h);
}

template <typename H>
constexpr HeaderType make_type() {
  return {.layer = H::kLayer,
          .name = H::kName,
          .size = H::kSize,
          .fields = kInfos<H>,
          .decode = decode_values<H>,
          .encode = encode_values<H>,
          .defaults = [] { return values_of(H{}); },
          .decode_struct = decode_struct<H>};
}

template <typename... N, typename... U>
constexpr std::array<HeaderType, sizeof...(N) + sizeof...(U)> make_types(HeaderList<N...>,
                                                                         HeaderList<U...>) {
  return {make_type<N>()..., make_type<U>()...};
}
constexpr auto kTypes = make_types(NetHeaders{}, UetHeaders{});

}  // namespace

std::span<const HeaderType> header_types() {
  return kTypes;
}
std::span<const HeaderType> uet_header_types() {
  return header_types().subspan(NetHeaders::kCount);
}

U128 bits_of(std::span<const std::uint8_t> raw, unsigned offset, unsigned width) {
  U128 v;
  for (unsigned i = offset; i < offset + width; ++i) {
    v.hi = v.hi << 1 | v.lo >> 63;
    v.lo = v.lo << 1 | ((raw[i / 8] >> (7 - i % 8)) & 1U);
  }
  return v;
}

bool has_reserved_bits_set(const HeaderType& type, std::span<const std::uint8_t> raw) {
  for (const FieldInfo& info : type.fields)
    if (info.is_reserved && bits_of(raw, info.offset, info.width) != U128{}) return true;
  return false;
}

void clear_reserved_bits(const HeaderType& type, std::span<std::uint8_t> raw) {
  for (const FieldInfo& info : type.fields) {
    if (!info.is_reserved) continue;
    for (unsigned i = info.offset; i < info.offset + info.width; ++i)
      raw[i / 8] = static_cast<std::uint8_t>(raw[i / 8] & ~(0x80U >> (i % 8)));
  }
}

}  // namespace uet::wire
