/// Builds the blocks of a pcapng file in memory. Where the bytes go is the caller's business.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lib/wire/link_type.h"

namespace uet::wire {

enum class PacketDirection : std::uint8_t { kUnknown = 0, kInbound = 1, kOutbound = 2 };

/// One packet to write; times are nanoseconds since 1970.
struct PacketRecord {
  std::uint64_t time_ns = 0;
  std::span<const std::uint8_t> data;
  std::size_t wire_length = 0;  ///< 0: as long as data
  PacketDirection direction = PacketDirection::kUnknown;
  std::string_view comment;
  std::uint64_t lost_before = 0;  ///< packets that are missing between this one and the one before
};

/// How a file begins.
struct FileStart {
  LinkType link{};
  std::string_view application;
  std::string_view interface_name;
  std::string_view comment = {};  ///< of the whole section
  std::uint32_t snap_length = 0;  ///< bytes kept of a packet; 0: all
};

/// Appends a section header and one interface (number 0, nanosecond times) to `out`.
void append_file_start(std::vector<std::uint8_t>& out, const FileStart& start);

/// Appends one enhanced packet block for interface 0.
void append_packet(std::vector<std::uint8_t>& out, const PacketRecord& record);

}  // namespace uet::wire
