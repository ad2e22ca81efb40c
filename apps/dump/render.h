/// How packets look: all fields, or one JSON object. line.h has the line per packet.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/dump/report.h"

namespace uet::dump {

/// One packet of a capture with its decoding.
struct DecodedPacket {
  std::uint64_t number = 0;  ///< from 1, counting packets that no filter took away too
  wire::CapturedPacket captured;
  Report report;
};

/// What is wrong with a packet, a line each; nothing of packets that were cut on purpose.
std::string problems_text(const Report& report);

/// Time of day in UTC.
std::string day_time_text(std::uint64_t ns);

/// Every layer with every field, indented.
std::string to_detailed_text(const DecodedPacket& packet);

/// {"n":1,"time":...,"layers":[...],"payload_len":...,"problems":[...]}
nlohmann::ordered_json to_json(const DecodedPacket& packet);

/// An IPv4, IPv6 or MAC address, by its length; anything else as hex digits.
std::string address_text(std::span<const std::uint8_t> bytes);

/// Who sent a packet, and to whom: the IP address, and behind a colon the UDP port of a process that shares it with others. `none` without
/// an IP header.
std::string source_text(const Report& report, const char* none);
std::string destination_text(const Report& report, const char* none);

/// The value as people write it: signed, decimal or hex by width, with its name.
std::string value_text(const wire::FieldValue& field);

}  // namespace uet::dump
