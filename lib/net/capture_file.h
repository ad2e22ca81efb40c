/// A pcapng capture on disk, bounded: a ring of files of limited size.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/net/output_file.h"
#include "lib/wire/pcapng_writer.h"

namespace uet::net {

struct CaptureFileConfig {
  std::string
      path;  ///< the newest packets; older ones in path.1, path.2, ...; see OutputFile::open()
  std::string interface_name;  ///< shown by tools
  std::uint64_t file_bytes_max = 64ULL << 20;
  unsigned files = 4;            ///< in all, the newest included; at least 1
  std::uint32_t snap_bytes = 0;  ///< kept of a packet; 0: all
  std::uint64_t started_ns = 0;  ///< since 1970; tells captures apart

  static constexpr std::uint64_t kFileBytesMin = 64 << 10, kFileBytesMax = 1ULL << 40;
  static constexpr std::uint64_t kFilesMax = 10'000;
  static constexpr std::uint64_t kSnapMin = 64, kSnapMax = 65536;

  /// "path[,size=64M][,files=4][,snap=256]", as in FI_UET_PCAP. False: `error` says what is wrong and what is known.
  static bool parse(std::string_view text, CaptureFileConfig& config, std::string& error);
};

/// Writes packets; when a file is full the older ones move up by one and the oldest goes. The head of each file says which
/// part it is and how many packets stand before it (wire/capture_part.h), so that a reader knows what it misses. One
/// thread. Packets for which a full disk has no room are missing, and their number is in the next packet that is there; see OutputFile.
class CaptureFile {
 public:
  /// Null when the file cannot be created; `error` says why.
  static std::unique_ptr<CaptureFile> open(const CaptureFileConfig& config, std::string& error);

  void write(const wire::PacketRecord& record);
  /// Whether a packet with so many bytes of data and comment may begin a new file. It does not always when this is true.
  bool may_rotate_for(std::size_t bytes) const {
    constexpr std::size_t kAroundPacket = 64;  // more than the rest of its block has
    return bytes_in_file_ + bytes + kAroundPacket > config_.file_bytes_max;
  }
  /// Hands everything to the operating system, so that another program can read it.
  void flush() { (void)file_->flush(); }
  /// In a child made by fork(): the file is the parent's alone. Safe between fork() and exec().
  void abandon_in_child() { file_->abandon_in_child(); }

  std::uint64_t packets_lost() const { return packets_lost_; }  ///< that could not be written

 private:
  CaptureFile(const CaptureFileConfig& config, std::unique_ptr<OutputFile> file);
  void begin_part();
  void rotate();

  CaptureFileConfig config_;
  std::unique_ptr<OutputFile> file_;
  std::uint64_t bytes_in_file_ = 0;
  std::uint64_t part_ = 0;             ///< of the file being written, from 1
  std::uint64_t packets_written_ = 0;  ///< or waiting to be, in all parts
  std::uint64_t packets_lost_ = 0;
  std::uint64_t lost_before_ = 0;    ///< since the last packet that is there
  std::vector<std::uint8_t> block_;  ///< reused for every packet
};

}  // namespace uet::net
