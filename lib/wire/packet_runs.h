/// Captures of an interface on which the kernel passes packets on in runs (UDP_SEGMENT, UDP_GRO) hold each run as one frame, whose
/// UDP payload is packets of one length and a last one that may be shorter. Here each packet gets a frame of its own again.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/wire/capture_reader.h"
#include "lib/wire/dissect_frame.h"

namespace uet::wire {

/// Finds the length of a run's packets. It is sure of it by a CRC that fits the first packet at that length, by TSS headers of one domain
/// at equal steps, or, of a frame that is no packet, by packets at equal steps of which none has a problem.
class RunCutter {
 public:
  explicit RunCutter(const DissectOptions& options) : options_(options) {}

  /// True for a run: then take its packets with next(). The bytes of `frame` must stay until the last of them.
  bool begin(const CapturedPacket& frame);
  /// False behind the last packet. `packet` is valid until the next call.
  bool next(CapturedPacket& packet);
  /// A frame was longer than any packet, and it was not found where its packets end; or the capture cut whole packets of a run off.
  bool has_missed() const { return has_missed_; }

 private:
  /// Where the parts of a frame begin, and what the decision tree says of it as one packet.
  struct Look;

  std::size_t length_by_crc(const Look& look) const;
  std::size_t length_by_tss() const;
  std::size_t length_by_problems(const Look& look);
  std::vector<std::size_t> candidates(const Look& look) const;
  /// Into frame_, with lengths and checksum of the headers in front as the packet had them.
  void build(std::size_t from, std::size_t bytes);

  const DissectOptions options_;
  CapturedPacket run_;
  std::size_t ip_ = 0, udp_ = 0, uet_ = 0, end_ = 0;  ///< in run_.data; `end_` on the wire
  bool is_v4_ = true;
  std::size_t packet_bytes_ = 0;  ///< of UET, of each packet but the last
  std::size_t at_ = 0;            ///< the next packet
  std::vector<std::uint8_t> frame_;
  bool has_missed_ = false;
};

/// As CaptureReader, with the packets of runs one by one.
class PacketReader {
 public:
  PacketReader(ByteSource& source, const DissectOptions& options)
      : reader_(source), cutter_(options) {}

  bool next(CapturedPacket& packet);
  const std::string& error() const { return reader_.error(); }
  /// As that of RunCutter.
  bool has_missed() const { return cutter_.has_missed(); }

 private:
  CaptureReader reader_;
  RunCutter cutter_;
  CapturedPacket frame_;
  bool is_in_run_ = false;
};

}  // namespace uet::wire
