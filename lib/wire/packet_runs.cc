#include "lib/wire/packet_runs.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/wire/net_headers.h"
#include "lib/wire/ses_rules.h"
#include "lib/wire/uet_crc.h"

namespace uet::wire {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kRunPackets = 128;     ///< UDP_MAX_SEGMENTS
constexpr std::size_t kSmallestPacket = 12;  ///< an ACK without SES header and CRC
/// Payload and headers of the largest packet. [WIRE 7.2]
constexpr std::size_t kLargestPacket = kPayloadMtuMax + 164;

void store_be16(std::uint8_t* to, std::size_t value) {
  to[0] = static_cast<std::uint8_t>(value >> 8);
  to[1] = static_cast<std::uint8_t>(value);
}

/// Of packets whose problems alone are asked for.
class ProblemCounter final : public DissectVisitor {
 public:
  void on_header(const HeaderType&, std::string_view, std::size_t, Bytes) override {}
  void on_bytes(BytesKind, std::size_t, Bytes) override {}
  void on_problem(Problem, std::size_t, std::uint64_t, std::uint64_t) override { ++count; }
  int count = 0;
};

}  // namespace

struct RunCutter::Look final : public DissectVisitor {
  void on_header(const HeaderType& type, std::string_view, std::size_t offset, Bytes raw) override {
    const std::string_view layer = type.layer;
    if (layer == "ipv4" || layer == "ipv6") {
      ip = offset;
      is_v4 = layer == "ipv4";
      ip_header_bytes = raw.size();
    } else if (layer == "udp") {
      udp = offset;
      udp_length = base::load_be<std::uint16_t>(raw.data() + 4);
      has_udp = true;
    } else if (has_udp) {
      headers_end = offset + raw.size();
    }
  }
  void on_bytes(BytesKind kind, std::size_t, Bytes bytes) override {
    if (kind == BytesKind::kPayload) payload = bytes.size();
    if (kind == BytesKind::kCrc) has_crc = true;
  }
  void on_problem(Problem problem, std::size_t, std::uint64_t, std::uint64_t) override {
    if (problem == Problem::kBadCrc) has_bad_crc = true;
    if (problem == Problem::kNotUet) is_foreign = true;
    if (problem != Problem::kCaptureCut) ++problems;
  }

  bool has_udp = false, is_v4 = true, is_foreign = false;
  bool has_crc = false, has_bad_crc = false;
  std::size_t ip = 0, ip_header_bytes = 0, udp = 0, udp_length = 0;
  std::size_t headers_end = 0;  ///< behind the UET headers of the first packet
  std::size_t payload = 0;      ///< that these announce, as far as they do
  int problems = 0;
};

bool RunCutter::begin(const CapturedPacket& frame) {
  Look look;
  dissect_frame(frame.link, frame.data, frame.wire_length, options_, look);
  const bool is_packet = look.has_crc && !look.has_bad_crc;
  // Neither options nor extension headers: the header of UDP follows that of IP.
  if (!look.has_udp || look.is_foreign || is_packet || look.udp != look.ip + look.ip_header_bytes)
    return false;
  run_ = frame;
  ip_ = look.ip;
  udp_ = look.udp;
  is_v4_ = look.is_v4;
  uet_ = udp_ + UdpHeader::kSize;
  end_ = udp_ + look.udp_length;
  if (end_ > frame.wire_length || end_ < uet_ + kSmallestPacket * 2 || frame.data.size() <= uet_)
    return false;
  packet_bytes_ = 0;
  if (options_.crc != CrcPolicy::kNever) packet_bytes_ = length_by_crc(look);
  if (packet_bytes_ == 0) packet_bytes_ = length_by_tss();
  // A CRC that is wrong, and nothing else, is damage.
  const int others = look.problems - (look.has_bad_crc ? 1 : 0);
  if (packet_bytes_ == 0 && options_.crc != CrcPolicy::kAlways && others > 0)
    packet_bytes_ = length_by_problems(look);
  if (packet_bytes_ == 0) {
    if (end_ - uet_ > kLargestPacket) has_missed_ = true;
    return false;
  }
  at_ = uet_;
  return true;
}

bool RunCutter::next(CapturedPacket& packet) {
  if (at_ >= end_) return false;
  if (at_ >= run_.data.size()) {
    has_missed_ = true;
    at_ = end_;
    return false;
  }
  const std::size_t bytes = std::min(packet_bytes_, end_ - at_);
  build(at_, bytes);
  packet = run_;
  packet.data = frame_;
  packet.wire_length = uet_ + bytes;
  packet.lost_before = at_ == uet_ ? run_.lost_before : 0;
  at_ += bytes;
  return true;
}

/// Lengths that packets of this run may have: those that the headers of the first one allow, and those that divide it evenly.
std::vector<std::size_t> RunCutter::candidates(const Look& look) const {
  const std::size_t all = end_ - uet_;
  std::vector<std::size_t> out;
  const auto add = [&](std::size_t bytes) {
    if (bytes >= kSmallestPacket && bytes < all && all <= bytes * kRunPackets) out.push_back(bytes);
  };
  if (look.headers_end > uet_) {
    const std::size_t headers = look.headers_end - uet_;
    for (const std::size_t payload :
         {look.payload, std::size_t{0}, std::size_t{kPayloadMtuMin}, std::size_t{kEthernetPayload},
          std::size_t{2048}, std::size_t{4096}, std::size_t{kPayloadMtuMax}}) {
      add(headers + payload + kUetCrcBytes);
      add(headers + payload);
    }
  }
  for (std::size_t n = 2; n <= kRunPackets; ++n)
    if (all % n == 0) add(all / n);
  return out;
}

std::size_t RunCutter::length_by_crc(const Look& look) const {
  const std::size_t address_bytes = is_v4_ ? 4 : 16;
  const Bytes source = run_.data.subspan(ip_ + (is_v4_ ? 12 : 8), address_bytes);
  const Bytes destination = run_.data.subspan(ip_ + (is_v4_ ? 16 : 24), address_bytes);
  std::array<std::uint8_t, UdpHeader::kSize> udp{};
  std::copy_n(run_.data.begin() + static_cast<std::ptrdiff_t>(udp_), 4, udp.begin());
  const std::uint32_t addresses = crc32c(destination, crc32c(source));
  for (const std::size_t bytes : candidates(look)) {
    if (uet_ + bytes > run_.data.size() || bytes < kUetCrcBytes) continue;
    store_be16(udp.data() + 4, UdpHeader::kSize + bytes);
    const Bytes covered = run_.data.subspan(uet_, bytes - kUetCrcBytes);
    const auto found = base::load_be<std::uint32_t>(covered.data() + covered.size());
    if (crc32c(covered, crc32c(udp, addresses)) == found) return bytes;
  }
  return 0;
}

/// Type, association number, domain and epoch of the first packet, at each step.
std::size_t RunCutter::length_by_tss() const {
  constexpr std::size_t kSame = 6;
  const std::size_t end = std::min(end_, run_.data.size());
  if (run_.data[uet_] >> 3 != static_cast<int>(PdsType::kTss) || end < uet_ + TssHeader::kSize)
    return 0;
  const Bytes uet = run_.data.subspan(uet_, end - uet_);
  const auto has_header = [&](std::size_t at) {
    return std::memcmp(uet.data() + at, uet.data(), std::min(kSame, uet.size() - at)) == 0;
  };
  constexpr std::size_t kSmallestSealed = TssHeader::kSize + kTssIcvBytes;
  const std::size_t shortest = std::max(kSmallestSealed, uet.size() / kRunPackets);
  for (std::size_t bytes = shortest; bytes + kSmallestSealed <= uet.size(); ++bytes) {
    bool fits = true;
    for (std::size_t at = bytes; fits && at < uet.size(); at += bytes) fits = has_header(at);
    if (fits) return bytes;
  }
  return 0;
}

std::size_t RunCutter::length_by_problems(const Look& look) {
  if (run_.data.size() < end_) return 0;
  const auto is_sealed = [&](std::size_t at) {
    return run_.data[at] >> 3 == static_cast<int>(PdsType::kTss);
  };
  DissectOptions options = options_;
  options.crc = CrcPolicy::kNever;
  for (const std::size_t bytes : candidates(look)) {
    ProblemCounter problems;
    for (std::size_t at = uet_; at < end_ && problems.count == 0; at += bytes) {
      // In a TSS packet there is nothing that could be a problem, and a run is of one kind.
      if (is_sealed(at) != is_sealed(uet_)) ++problems.count;
      build(at, std::min(bytes, end_ - at));
      dissect_frame(run_.link, frame_, frame_.size(), options, problems);
    }
    if (problems.count == 0) return bytes;
  }
  return 0;
}

void RunCutter::build(std::size_t from, std::size_t bytes) {
  const std::size_t captured = std::min(bytes, run_.data.size() - from);
  frame_.assign(run_.data.begin(), run_.data.begin() + static_cast<std::ptrdiff_t>(uet_));
  const auto packet = run_.data.subspan(from, captured);
  frame_.insert(frame_.end(), packet.begin(), packet.end());
  std::uint8_t* const ip = frame_.data() + ip_;
  const std::size_t udp_bytes = UdpHeader::kSize + bytes;
  store_be16(frame_.data() + udp_ + 4, udp_bytes);
  if (is_v4_) {
    store_be16(ip + 2, Ipv4Header::kSize + udp_bytes);
    store_be16(ip + 10, ipv4_checksum({ip, Ipv4Header::kSize}));
  } else {
    store_be16(ip + 4, udp_bytes);
  }
}

bool PacketReader::next(CapturedPacket& packet) {
  if (is_in_run_ && cutter_.next(packet)) return true;
  is_in_run_ = false;
  if (!reader_.next(frame_)) return false;
  is_in_run_ = cutter_.begin(frame_);
  if (is_in_run_) return cutter_.next(packet);
  packet = frame_;
  return true;
}

}  // namespace uet::wire
