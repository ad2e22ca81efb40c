// Which headers a packet has, and what their values are called.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "apps/drill/headers.h"
#include "lib/wire/enums.h"

namespace uet::drill {

namespace {

using wire::NextHdr;
using wire::PdsType;

constexpr std::array<std::string_view, 4> kFamilies = {"any_ack", "any_request", "any_request_syn",
                                                       "any_message"};

/// The header of packet delivery that `bytes` begin with; empty when there is none.
std::string_view delivery_header(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 2) return {};
  constexpr std::uint8_t kSyn = 0x04;
  constexpr std::size_t kCcType = 12;
  const bool syn = (bytes[1] & kSyn) != 0;
  switch (static_cast<PdsType>(bytes[0] >> 3)) {
    case PdsType::kRudReq:
    case PdsType::kRodReq:
      return syn ? "request_syn" : "request";
    case PdsType::kRudCcReq:
    case PdsType::kRodCcReq:
      return syn ? "request_cc_syn" : "request_cc";
    case PdsType::kAck:
      return "ack";
    case PdsType::kAckCc:
      return bytes.size() > kCcType && bytes[kCcType] >> 4 == 1 ? "ack_cc_credit" : "ack_cc_nscc";
    case PdsType::kAckCcx:
      return "ack_ccx";
    case PdsType::kNack:
      return "nack";
    case PdsType::kControl:
      return syn ? "control_syn" : "control";
    case PdsType::kRudiReq:
    case PdsType::kRudiResp:
      return "rudi";
    case PdsType::kUudReq:
      return "uud";
    default:
      return {};
  }
}

std::string_view semantic_header(std::uint64_t next_hdr, std::span<const std::uint8_t> bytes) {
  constexpr std::uint8_t kSom = 0x01;
  switch (static_cast<NextHdr>(next_hdr)) {
    case NextHdr::kRequestSmall:
      return "small";
    case NextHdr::kRequestMedium:
      return "medium";
    case NextHdr::kRequestStd:
      return bytes.size() > 1 && (bytes[1] & kSom) == 0 ? "standard_som0" : "standard_som1";
    case NextHdr::kResponse:
      return "response";
    case NextHdr::kResponseData:
      return "response_data";
    case NextHdr::kResponseDataSmall:
      return "response_data_small";
    default:
      return {};
  }
}

bool is_in_family(std::string_view name, std::string_view family) {
  if (family == "any_message")
    return name == "standard_som1" || name == "medium" || name == "small";
  if (family == "any_ack") return name.starts_with("ack");
  const bool is_syn = name.ends_with("_syn");
  return name.starts_with("request") && is_syn == (family == "any_request_syn");
}

std::span<const wire::EnumEntry> names_of(const Header& header, std::string_view field) {
  if (field == "type") return wire::enum_entries<PdsType>();
  if (field == "next_hdr") return wire::enum_entries<NextHdr>();
  if (field == "nack_code") return wire::enum_entries<wire::NackCode>();
  if (field == "ctl_type") return wire::enum_entries<wire::ControlType>();
  if (field == "return_code") return wire::enum_entries<wire::ReturnCode>();
  if (field == "req") return wire::enum_entries<wire::AckReq>();
  if (field == "opcode" && header.name().starts_with("response"))
    return wire::enum_entries<wire::ResponseOpcode>();
  if (field == "opcode") return wire::enum_entries<wire::SesOpcode>();
  return {};
}

}  // namespace

bool is_header_family(std::string_view name) {
  return std::find(kFamilies.begin(), kFamilies.end(), name) != kFamilies.end();
}

bool family_has_field(std::string_view family, std::string_view field) {
  for (const std::string_view name : header_names())
    if (is_in_family(name, family) && find_header(name)->has_field(field)) return true;
  return false;
}

const Header* find_in_family(std::string_view family, std::optional<std::uint64_t> next_hdr,
                             std::span<const std::uint8_t> bytes) {
  std::string_view name = delivery_header(bytes);
  if (family == "any_message") name = next_hdr ? semantic_header(*next_hdr, bytes) : "";
  return is_in_family(name, family) ? find_header(name) : nullptr;
}

std::vector<const Header*> tell_headers(std::span<const std::uint8_t> packet) {
  const Header* const outer = find_header(delivery_header(packet));
  if (outer == nullptr || packet.size() < outer->size()) return {};
  std::vector<const Header*> headers = {outer};
  const auto values = *outer->decode(packet);
  const auto next = values.find("next_hdr");
  if (next == values.end()) return headers;
  const auto rest = packet.subspan(outer->size());
  const Header* const inner = find_header(semantic_header(next->second, rest));
  if (inner != nullptr && rest.size() >= inner->size()) headers.push_back(inner);
  return headers;
}

std::string kind_of(std::span<const std::uint8_t> packet) {
  const std::string_view name = delivery_header(packet);
  if (!name.empty()) return std::string(name);
  return packet.empty() ? "no bytes" : fmt::format("type {}", packet[0] >> 3);
}

std::string show_value(const Header& header, std::string_view field, std::uint64_t value) {
  const std::string_view name =
      wire::find_name(names_of(header, field), static_cast<std::uint32_t>(value));
  if (!name.empty()) return fmt::format("{}", name);
  return value > 9 ? fmt::format("{} ({:#x})", value, value) : fmt::to_string(value);
}

}  // namespace uet::drill
