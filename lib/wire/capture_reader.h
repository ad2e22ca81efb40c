/// Reads pcap and pcapng capture files: ours and other programs'. Every length in the file is
/// hostile.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/wire/link_type.h"

namespace uet::wire {

/// Where the bytes of a capture come from: a file, a pipe, a test.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills the front of `out`; fewer bytes than asked for only at the end.
  virtual std::size_t read(std::span<std::uint8_t> out) = 0;
};

struct CapturedPacket {
  LinkType link{};
  std::uint64_t time_ns = 0;           ///< since 1970
  std::size_t wire_length = 0;         ///< at least data.size()
  std::span<const std::uint8_t> data;  ///< valid until the next call of next()
  std::string comment;                 ///< pcapng opt_comment; several are joined by newlines
  bool is_inbound = false, is_outbound = false;  ///< pcapng epb_flags
  /// Packets that the capture misses between this one and the one before: pcapng epb_dropcount. 0 where the file does not say.
  std::uint64_t lost_before = 0;
};

/// One capture, from front to back.
class CaptureReader {
 public:
  explicit CaptureReader(ByteSource& source) : source_(source) {}

  /// Reads the next packet. False at the end, and when the file cannot be read on: then error()
  /// says why.
  bool next(CapturedPacket& packet);
  const std::string& error() const { return error_; }
  /// The comment of the section that the last packet is in (pcapng), or of the one behind it at the end; read with the
  /// first packet.
  const std::string& section_comment() const { return section_comment_; }

  /// A packet or block larger than this is taken for damage, not for data.
  static constexpr std::uint32_t kBlockBytesMax = 16U << 20;
  static constexpr std::size_t kInterfacesMax = 65536;
  static constexpr std::size_t kCommentBytesMax = 4096;

 private:
  enum class Format : std::uint8_t { kUnknown, kPcap, kPcapng, kEnd };
  struct Interface {
    LinkType link{};
    std::uint32_t snap_length = 0;
    std::uint64_t ticks_per_second = 1'000'000;
    std::int64_t offset_seconds = 0;
  };

  bool start();
  bool start_pcap(std::uint32_t magic);
  bool next_pcap(CapturedPacket& packet);
  bool next_pcapng(CapturedPacket& packet);
  bool read_section();
  bool read_block_body(std::uint32_t total_length);
  void read_interface();
  bool read_enhanced_packet(CapturedPacket& packet, bool is_old_form);
  bool read_simple_packet(CapturedPacket& packet);
  void read_packet_options(std::span<const std::uint8_t> options, CapturedPacket& packet) const;

  bool fail(std::string why);
  /// Reads n bytes into buffer_. Memory grows with what is really there, not with what a length field claims.
  bool read_buffer(std::size_t n);
  /// True when `out` could be filled. At a clean end (nothing read) `at_end` is set instead of an
  /// error.
  bool read_exactly(std::span<std::uint8_t> out, bool* at_end = nullptr);
  std::uint16_t u16(const std::uint8_t* p) const;
  std::uint32_t u32(const std::uint8_t* p) const;
  std::uint64_t u64(const std::uint8_t* p) const;
  static std::uint64_t to_ns(std::uint64_t ticks, const Interface& interface);

  ByteSource& source_;
  Format format_ = Format::kUnknown;
  bool is_big_endian_ = false;
  Interface pcap_;
  std::vector<Interface> interfaces_;
  std::vector<std::uint8_t> buffer_;
  std::string error_;
  std::string section_comment_;
};

}  // namespace uet::wire
