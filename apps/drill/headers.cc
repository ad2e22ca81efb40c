#include "apps/drill/headers.h"

#include <memory>

#include "lib/base/byte_cursor.h"
#include "lib/wire/header_type.h"

namespace uet::drill {

namespace {

bool is_number(const wire::FieldInfo& info) {
  return !info.is_reserved && info.kind != wire::FieldKind::kBytes &&
         info.kind != wire::FieldKind::kWide;
}

/// The numbers among them, in the bits of the field's width: negative offsets appear as they do on the wire.
FieldValues numbers_of(std::span<const wire::FieldValue> all) {
  FieldValues numbers;
  for (const wire::FieldValue& v : all)
    if (is_number(v.info))
      numbers[std::string(v.info.name)] = v.value.lo & wire::detail::low_mask(v.info.width);
  return numbers;
}

/// A declared header of the wire format.
class DeclaredHeader final : public Header {
 public:
  explicit DeclaredHeader(const wire::HeaderType& type)
      : type_(type), defaults_(numbers_of(type.defaults())) {}
  std::string_view name() const override { return type_.name; }
  std::size_t size() const override { return type_.size; }
  bool has_field(std::string_view field) const override { return defaults_.contains(field); }
  std::optional<FieldValues> decode(std::span<const std::uint8_t> bytes) const override {
    if (bytes.size() < type_.size) return {};
    return numbers_of(type_.decode(bytes.data()));
  }
  std::vector<std::uint8_t> encode(const FieldValues& fields) const override {
    auto values = type_.defaults();
    for (wire::FieldValue& v : values) {
      const auto at = fields.find(v.info.name);
      if (is_number(v.info) && at != fields.end()) v.value.lo = at->second;
    }
    std::vector<std::uint8_t> bytes(type_.size);
    type_.encode(values, bytes.data());
    return bytes;
  }
  const FieldValues& defaults() const override { return defaults_; }

 private:
  const wire::HeaderType& type_;
  FieldValues defaults_;
};

/// A number in a payload: the operand of an atomic operation.
class Number64 final : public Header {
 public:
  std::string_view name() const override { return "u64"; }
  std::size_t size() const override { return sizeof(std::uint64_t); }
  bool has_field(std::string_view field) const override { return defaults_.contains(field); }
  std::optional<FieldValues> decode(std::span<const std::uint8_t> bytes) const override {
    if (bytes.size() < size()) return {};
    return FieldValues{{"value", base::load_be<std::uint64_t>(bytes.data())}};
  }
  std::vector<std::uint8_t> encode(const FieldValues& fields) const override {
    std::vector<std::uint8_t> bytes(size());
    const auto at = fields.find("value");
    base::store_be(bytes.data(), at == fields.end() ? std::uint64_t{0} : at->second);
    return bytes;
  }
  const FieldValues& defaults() const override { return defaults_; }

 private:
  FieldValues defaults_ = {{"value", 0}};
};

template <typename... H>
std::vector<std::unique_ptr<Header>> make_headers() {
  std::vector<std::unique_ptr<Header>> all;
  (all.push_back(std::make_unique<DeclaredHeader>(wire::type_of<H>())), ...);
  all.push_back(std::make_unique<Number64>());
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
                   wire::SesResponseDataSmall, wire::ExtAtomic>();
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
