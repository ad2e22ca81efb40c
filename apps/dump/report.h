/// One decoded packet as data: what the printers, the filters and the statistics of uet-dump look
/// at.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "keys/key_log.h"
#include "lib/wire/capture_reader.h"
#include "lib/wire/dissect_frame.h"

namespace uet::dump {

/// A number that follows from fields of the same header, such as ACK_PSN.
struct DerivedValue {
  std::string_view name;
  std::uint64_t value;
};

struct Layer {
  std::string_view layer;      ///< "eth", "pds", "ses", ...
  std::string_view header;     ///< "RUD_REQ", "REQUEST_STD", ...
  std::string_view form = {};  ///< kName of the declared layout: "request_syn", ...
  std::size_t offset = 0;      ///< of its first byte in the frame
  std::size_t length = 0;
  std::vector<wire::FieldValue> fields = {};
  std::vector<DerivedValue> derived = {};

  const wire::FieldValue* find(std::string_view name) const;
  /// The number in the field `name`, or `otherwise`.
  std::uint64_t number(std::string_view name, std::uint64_t otherwise = 0) const;
};

struct ReportedProblem {
  wire::Problem problem{};
  std::size_t offset = 0;
  std::uint64_t a = 0, b = 0;

  /// "bad-crc: UET CRC is 1, should be 2"
  std::string to_string() const;
  /// False of what is normal in a capture: a packet that it cut, and discovery of neighbors.
  bool is_fault() const;
};

struct Report {
  std::vector<Layer> layers;
  std::vector<ReportedProblem> problems;
  std::size_t payload_bytes = 0;       ///< SES payload that is really here
  std::size_t payload_wire_bytes = 0;  ///< and on the wire: more where the capture cut the packet
  bool is_trimmed = false;
  /// Of processes that share the address of their host [decision 168]; 0: the port of UET, or not known.
  std::uint16_t source_port = 0, destination_port = 0;

  const Layer* find(std::string_view layer) const;
};

/// Decodes a frame; never fails, the report says what is wrong. `keys` open sealed packets.
Report report_frame(wire::LinkType link, std::span<const std::uint8_t> frame,
                    std::size_t wire_length, const wire::DissectOptions& options,
                    const keys::CaptureKeys* keys = nullptr);

}  // namespace uet::dump
