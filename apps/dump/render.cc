#include "apps/dump/render.h"

#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>

namespace uet::dump {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

std::string wide_text(const wire::U128& v) {
  return fmt::format("0x{:016x}{:016x}", v.hi, v.lo);
}

/// Addresses as addresses, everything else as hex digits.
std::string bytes_text(const wire::FieldValue& field) {
  const bool is_address = field.info.name == "src" || field.info.name == "dst";
  return is_address ? address_text(field.as_bytes())
                    : fmt::format("{:02x}", fmt::join(field.as_bytes(), ""));
}

nlohmann::ordered_json field_json(const wire::FieldValue& field) {
  switch (field.info.kind) {
    case wire::FieldKind::kBytes:
      return bytes_text(field);
    case wire::FieldKind::kWide:
      return wide_text(field.value);
    case wire::FieldKind::kSigned:
      return static_cast<std::int64_t>(field.value.lo);
    default:
      return field.value.lo;
  }
}

nlohmann::ordered_json layer_json(const Layer& layer) {
  nlohmann::ordered_json fields = nlohmann::ordered_json::object();
  nlohmann::ordered_json names = nlohmann::ordered_json::object();
  for (const wire::FieldValue& f : layer.fields) {
    fields[std::string(f.info.name)] = field_json(f);
    if (const std::string_view name =
            wire::find_name(f.info.entries, static_cast<std::uint32_t>(f.value.lo));
        !name.empty())
      names[std::string(f.info.name)] = name;
  }
  nlohmann::ordered_json out = {{"layer", layer.layer},
                                {"header", layer.header},
                                {"form", layer.form},
                                {"offset", layer.offset},
                                {"length", layer.length}};
  nlohmann::ordered_json derived = nlohmann::ordered_json::object();
  for (const DerivedValue& d : layer.derived) {
    // The second word of a PROBE's answer is the opaque value: the spec's vectors call it by that
    // name.
    if (d.name == "probe_opaque")
      fields["probe_opaque"] = d.value;
    else
      derived[std::string(d.name)] = d.value;
  }
  out["fields"] = std::move(fields);
  if (!names.empty()) out["names"] = std::move(names);
  if (!derived.empty()) out["derived"] = std::move(derived);
  return out;
}

std::string endpoint_text(const Report& report, const char* which, std::uint16_t port,
                          const char* none) {
  for (const char* ip : {"ipv4", "ipv6"}) {
    const Layer* layer = report.find(ip);
    if (layer == nullptr) continue;
    const std::string address = address_text(layer->find(which)->as_bytes());
    if (port == 0) return address;
    const bool is_v6 = address.find(':') != std::string::npos;
    return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", address, is_v6 ? "]" : "", port);
  }
  return none;
}

}  // namespace

std::string problems_text(const Report& report) {
  std::string out;
  for (const ReportedProblem& p : report.problems)
    if (p.is_fault())
      fmt::format_to(std::back_inserter(out), "\n    ! {} (at byte {})", p.to_string(), p.offset);
  return out;
}

std::string day_time_text(std::uint64_t ns) {
  const auto seconds = static_cast<std::time_t>(ns / kNsPerSecond);
  return fmt::format("{:%H:%M:%S}.{:09}", fmt::gmtime(seconds), ns % kNsPerSecond);
}

std::string address_text(std::span<const std::uint8_t> bytes) {
  char text[INET6_ADDRSTRLEN] = {};
  if (bytes.size() == 4) return inet_ntop(AF_INET, bytes.data(), text, sizeof text);
  if (bytes.size() == 16) return inet_ntop(AF_INET6, bytes.data(), text, sizeof text);
  if (bytes.size() == 6) return fmt::format("{:02x}", fmt::join(bytes, ":"));
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

std::string source_text(const Report& report, const char* none) {
  return endpoint_text(report, "src", report.source_port, none);
}

std::string destination_text(const Report& report, const char* none) {
  return endpoint_text(report, "dst", report.destination_port, none);
}

std::string value_text(const wire::FieldValue& field) {
  switch (field.info.kind) {
    case wire::FieldKind::kBytes:
      return bytes_text(field);
    case wire::FieldKind::kWide:
      return wide_text(field.value);
    case wire::FieldKind::kSigned:
      return fmt::format("{}", static_cast<std::int64_t>(field.value.lo));
    case wire::FieldKind::kBool:
      return field.value.lo != 0 ? "1" : "0";
    case wire::FieldKind::kEnum: {
      const std::string_view name =
          wire::find_name(field.info.entries, static_cast<std::uint32_t>(field.value.lo));
      return fmt::format("{} ({})", field.value.lo, name.empty() ? "no name" : name);
    }
    case wire::FieldKind::kUnsigned:
      break;
  }
  if (field.info.width <= 16) return fmt::format("{}", field.value.lo);
  return fmt::format("{} (0x{:x})", field.value.lo, field.value.lo);
}

std::string to_detailed_text(const DecodedPacket& packet) {
  std::string out = fmt::format("packet {}  {}  {} bytes on the wire, {} captured", packet.number,
                                day_time_text(packet.captured.time_ns), packet.captured.wire_length,
                                packet.captured.data.size());
  if (!packet.captured.comment.empty())
    fmt::format_to(std::back_inserter(out), "\n  # {}", packet.captured.comment);
  for (const Layer& layer : packet.report.layers) {
    fmt::format_to(std::back_inserter(out), "\n  {} {} (bytes {}-{})", layer.layer, layer.header,
                   layer.offset, layer.offset + layer.length - 1);
    for (const wire::FieldValue& f : layer.fields) {
      if (f.info.is_reserved && f.value == wire::U128{}) continue;
      fmt::format_to(std::back_inserter(out), "\n    {:<24} {:<26} {}", f.info.name, value_text(f),
                     f.info.is_reserved ? "reserved" : f.info.meaning);
    }
    for (const DerivedValue& d : layer.derived)
      fmt::format_to(std::back_inserter(out), "\n    = {:<22} {}", d.name, d.value);
  }
  if (packet.report.payload_bytes > 0)
    fmt::format_to(std::back_inserter(out), "\n  payload {} bytes", packet.report.payload_bytes);
  return out + problems_text(packet.report);
}

nlohmann::ordered_json to_json(const DecodedPacket& packet) {
  nlohmann::ordered_json out;
  out["n"] = packet.number;
  out["time"] = static_cast<double>(packet.captured.time_ns) / 1e9;
  out["time_ns"] = packet.captured.time_ns;
  out["wire_len"] = packet.captured.wire_length;
  if (packet.captured.is_inbound) out["direction"] = "in";
  if (packet.captured.is_outbound) out["direction"] = "out";
  if (!packet.captured.comment.empty()) out["comment"] = packet.captured.comment;
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const Layer& layer : packet.report.layers) layers.push_back(layer_json(layer));
  out["layers"] = std::move(layers);
  out["payload_len"] = packet.report.payload_bytes;
  if (packet.report.is_trimmed) out["trimmed"] = true;
  nlohmann::ordered_json problems = nlohmann::ordered_json::array();
  for (const ReportedProblem& p : packet.report.problems) problems.push_back(p.to_string());
  out["problems"] = std::move(problems);
  return out;
}

}  // namespace uet::dump
