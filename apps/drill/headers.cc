#include "apps/drill/headers.h"

#include <array>
#include <memory>
#include <type_traits>

#include "lib/wire/codec.h"
#include "lib/wire/pds_headers.h"
#include "lib/wire/ses_headers.h"

namespace uet::drill {

namespace {

template <typename T>
inline constexpr bool kIsNumber = !wire::detail::kIsBytes<T> && !std::is_same_v<T, wire::U128>;

/// Bits of the field's width: negative offsets appear as they do on the wire.
constexpr std::uint64_t wire_bits(std::uint64_t bits, unsigned width) {
  return width >= 64 ? bits : bits & ((std::uint64_t{1} << width) - 1);
}

template <typename H>
FieldValues values_of(const H& h) {
  FieldValues values;
  wire::for_each_field<H>([&](const auto& f, unsigned) {
    using F = std::remove_cvref_t<decltype(f)>;
    if constexpr (!wire::kIsReserved<F>) {
      if constexpr (kIsNumber<typename F::Value>) {
        values[std::string(f.name)] = wire_bits(wire::detail::to_bits(h.*(f.member)), f.width);
      }
    }
  });
  return values;
}

template <typename H>
class HeaderOf final : public Header {
 public:
  HeaderOf() : defaults_(values_of(H{})) {}
  std::string_view name() const override { return H::kName; }
  std::size_t size() const override { return H::kSize; }
  bool has_field(std::string_view field) const override { return defaults_.contains(field); }
  std::optional<FieldValues> decode(std::span<const std::uint8_t> bytes) const override {
    if (bytes.size() < H::kSize) return {};
    return values_of(wire::decode<H>(bytes.data()));
  }
  std::vector<std::uint8_t> encode(const FieldValues& fields) const override {
    H h{};
    wire::for_each_field<H>([&](const auto& f, unsigned) {
      using F = std::remove_cvref_t<decltype(f)>;
      if constexpr (!wire::kIsReserved<F>) {
        if constexpr (kIsNumber<typename F::Value>) {
          const auto at = fields.find(f.name);
          if (at != fields.end()) {
            h.*(f.member) = wire::detail::from_bits<typename F::Value>(at->second);
          }
        }
      }
    });
    std::vector<std::uint8_t> bytes(H::kSize);
    wire::emit(h, bytes.data());
    return bytes;
  }
  const FieldValues& defaults() const override { return defaults_; }

 private:
  FieldValues defaults_;
};

/// A number in a payload: the operand of an atomic operation.
struct Number64 {
  static constexpr std::size_t kSize = 8;
  static constexpr std::string_view kName = "u64";

  std::uint64_t value = 0;

  template <typename H = Number64>
  static constexpr auto fields() {
    return std::make_tuple(wire::field("value", &H::value, 64, "big-endian"));
  }
};

template <typename... H>
std::vector<std::unique_ptr<Header>> make_headers() {
  std::vector<std::unique_ptr<Header>> all;
  (all.push_back(std::make_unique<HeaderOf<H>>()), ...);
  return all;
}

const std::vector<std::unique_ptr<Header>>& all_headers() {
  static const auto kAll =
      make_headers<wire::PdsRequest, wire::PdsRequestSyn, wire::PdsRequestCc, wire::PdsRequestCcSyn,
                   wire::PdsAck, wire::PdsAckCcNscc, wire::PdsAckCcCredit, wire::PdsAckCcx,
                   wire::PdsNack, wire::PdsControl, wire::PdsControlSyn, wire::PdsRudi,
                   wire::PdsUud, wire::PdsExpectedPsn, wire::SesStandardFirst,
                   wire::SesStandardNext, wire::SesSequenced, wire::SesSequencedNext,
                   wire::SesMedium, wire::SesSmall, wire::SesResponse, wire::SesResponseData,
                   wire::SesResponseDataSmall, wire::ExtAtomic, Number64>();
  return kAll;
}

}  // namespace

const Header* find_header(std::string_view name) {
  for (const auto& h : all_headers()) {
    if (h->name() == name) return h.get();
  }
  return nullptr;
}

std::vector<std::string_view> header_names() {
  std::vector<std::string_view> names;
  for (const auto& h : all_headers()) names.push_back(h->name());
  return names;
}

bool has_field_somewhere(std::string_view field) {
  for (const auto& h : all_headers()) {
    if (h->has_field(field)) return true;
  }
  return false;
}

}  // namespace uet::drill
