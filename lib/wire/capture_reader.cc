#include "lib/wire/capture_reader.h"

#include <algorithm>
#include <array>

#include "lib/base/byte_cursor.h"

namespace uet::wire {
namespace {

constexpr std::uint32_t kPcapMicro = 0xa1b2c3d4;
constexpr std::uint32_t kPcapNano = 0xa1b23c4d;
constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a;  // reads the same in both byte orders
constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;

constexpr std::uint32_t kInterfaceBlock = 1;
constexpr std::uint32_t kOldPacketBlock = 2;
constexpr std::uint32_t kSimplePacketBlock = 3;
constexpr std::uint32_t kEnhancedPacketBlock = 6;

constexpr std::uint16_t kOptionEnd = 0;
constexpr std::uint16_t kOptionComment = 1;
constexpr std::uint16_t kOptionPacketFlags = 2;
constexpr std::uint16_t kOptionDropCount = 4;
constexpr std::uint16_t kOptionTimeResolution = 9;
constexpr std::uint16_t kOptionTimeOffset = 14;

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

constexpr std::size_t padded(std::size_t n) {
  return (n + 3) & ~std::size_t{3};
}

/// Calls visit(code, value) for each well-formed option.
template <typename U16, typename Visitor>
void for_each_option(std::span<const std::uint8_t> options, U16 u16, Visitor visit) {
  while (options.size() >= 4) {
    const std::uint16_t code = u16(options.data());
    const std::size_t length = u16(options.data() + 2);
    if (code == kOptionEnd || padded(length) > options.size() - 4) return;
    visit(code, options.subspan(4, length));
    options = options.subspan(4 + padded(length));
  }
}

}  // namespace

bool CaptureReader::next(CapturedPacket& packet) {
  packet = CapturedPacket{};
  if (format_ == Format::kUnknown && !start()) format_ = Format::kEnd;
  bool got = false;
  if (format_ == Format::kPcap) got = next_pcap(packet);
  if (format_ == Format::kPcapng) got = next_pcapng(packet);
  if (!got) format_ = Format::kEnd;
  return got;
}

bool CaptureReader::fail(std::string why) {
  error_ = std::move(why);
  return false;
}

bool CaptureReader::read_exactly(std::span<std::uint8_t> out, bool* at_end) {
  const std::size_t n = source_.read(out);
  if (n == out.size()) return true;
  if (n == 0 && at_end != nullptr) {
    *at_end = true;
    return false;
  }
  return fail("the file ends in the middle of a packet or block");
}

bool CaptureReader::read_buffer(std::size_t n) {
  constexpr std::size_t kStep = 64 << 10;
  buffer_.clear();
  while (buffer_.size() < n) {
    const std::size_t had = buffer_.size();
    buffer_.resize(std::min(n, had + kStep));
    if (!read_exactly(std::span(buffer_).subspan(had))) return false;
  }
  return true;
}

std::uint16_t CaptureReader::u16(const std::uint8_t* p) const {
  const auto v = base::load_be<std::uint16_t>(p);
  return is_big_endian_ ? v : __builtin_bswap16(v);
}

std::uint32_t CaptureReader::u32(const std::uint8_t* p) const {
  const auto v = base::load_be<std::uint32_t>(p);
  return is_big_endian_ ? v : __builtin_bswap32(v);
}

std::uint64_t CaptureReader::u64(const std::uint8_t* p) const {
  const auto v = base::load_be<std::uint64_t>(p);
  return is_big_endian_ ? v : __builtin_bswap64(v);
}

std::uint64_t CaptureReader::to_ns(std::uint64_t ticks, const Interface& interface) {
  const std::uint64_t per_second = interface.ticks_per_second;
  const std::uint64_t seconds = ticks / per_second;
  const std::uint64_t rest = ticks % per_second;
  const std::uint64_t rest_ns =
      per_second <= kNsPerSecond
          ? rest * kNsPerSecond / per_second
          : static_cast<std::uint64_t>(static_cast<long double>(rest) * 1e9L /
                                       static_cast<long double>(per_second));
  return (seconds + static_cast<std::uint64_t>(interface.offset_seconds)) * kNsPerSecond + rest_ns;
}

bool CaptureReader::start() {
  std::array<std::uint8_t, 4> head;
  bool at_end = false;
  if (!read_exactly(head, &at_end)) return at_end ? fail("the file is empty") : false;
  const auto magic = base::load_be<std::uint32_t>(head.data());
  if (magic == kSectionHeader) {
    format_ = Format::kPcapng;
    return read_section();
  }
  return start_pcap(magic);
}

bool CaptureReader::start_pcap(std::uint32_t magic) {
  const std::uint32_t swapped = __builtin_bswap32(magic);
  if (magic == kPcapMicro || magic == kPcapNano)
    is_big_endian_ = true;
  else if (swapped == kPcapMicro || swapped == kPcapNano)
    is_big_endian_ = false;
  else
    return fail("neither a pcap nor a pcapng file");
  pcap_.ticks_per_second =
      (is_big_endian_ ? magic : swapped) == kPcapNano ? kNsPerSecond : 1'000'000;
  std::array<std::uint8_t, 20> rest;
  if (!read_exactly(rest)) return false;
  // The upper bits of the last word may hold the FCS length.
  pcap_.link = LinkType{u32(rest.data() + 16) & 0x0fffffff};
  format_ = Format::kPcap;
  return true;
}

bool CaptureReader::next_pcap(CapturedPacket& packet) {
  std::array<std::uint8_t, 16> head;
  bool at_end = false;
  if (!read_exactly(head, &at_end)) return false;
  const std::uint32_t captured = u32(head.data() + 8);
  if (captured > kBlockBytesMax) return fail("a packet of more than 16 MiB");
  if (!read_buffer(captured)) return false;
  packet.link = pcap_.link;
  packet.time_ns = std::uint64_t{u32(head.data())} * kNsPerSecond +
                   std::uint64_t{u32(head.data() + 4)} * (kNsPerSecond / pcap_.ticks_per_second);
  packet.data = buffer_;
  packet.wire_length = std::max<std::size_t>(u32(head.data() + 12), captured);
  return true;
}

/// Reads what follows the type of a section header block; a new section forgets the interfaces of
/// the old one.
bool CaptureReader::read_section() {
  std::array<std::uint8_t, 8> head;
  if (!read_exactly(head)) return false;
  const auto magic = base::load_be<std::uint32_t>(head.data() + 4);
  if (magic == kByteOrderMagic)
    is_big_endian_ = true;
  else if (__builtin_bswap32(magic) == kByteOrderMagic)
    is_big_endian_ = false;
  else
    return fail("a section without its byte-order magic");
  interfaces_.clear();
  const std::uint32_t total = u32(head.data());
  if (total < 28 || total % 4 != 0 || total > kBlockBytesMax) return fail("a block of bad length");
  if (!read_buffer(total - 12)) return false;
  constexpr std::size_t kBeforeOptions = 12, kBehindOptions = 4;  // versions and length; length
  section_comment_.clear();
  const auto u16_here = [this](const std::uint8_t* p) { return u16(p); };
  for_each_option(
      std::span<const std::uint8_t>(buffer_).subspan(
          kBeforeOptions, buffer_.size() - kBeforeOptions - kBehindOptions),
      u16_here, [this](std::uint16_t code, std::span<const std::uint8_t> value) {
        if (code == kOptionComment && section_comment_.size() + value.size() < kCommentBytesMax)
          section_comment_.append(value.begin(), value.end());
      });
  return true;
}

/// Reads the body and the trailing length of a block whose first eight bytes have been read.
bool CaptureReader::read_block_body(std::uint32_t total) {
  if (total < 12 || total % 4 != 0 || total > kBlockBytesMax) return fail("a block of bad length");
  if (!read_buffer(total - 8)) return false;
  if (u32(buffer_.data() + buffer_.size() - 4) != total) return fail("a block of two lengths");
  buffer_.resize(total - 12);
  return true;
}

bool CaptureReader::next_pcapng(CapturedPacket& packet) {
  for (;;) {  // ends with the file: every turn consumes at least 12 bytes
    std::array<std::uint8_t, 4> type_bytes;
    bool at_end = false;
    if (!read_exactly(type_bytes, &at_end)) return false;
    if (base::load_be<std::uint32_t>(type_bytes.data()) == kSectionHeader) {
      if (!read_section()) return false;
      continue;
    }
    std::array<std::uint8_t, 4> length_bytes;
    if (!read_exactly(length_bytes)) return false;
    if (!read_block_body(u32(length_bytes.data()))) return false;
    switch (u32(type_bytes.data())) {
      case kInterfaceBlock:
        if (interfaces_.size() == kInterfacesMax) return fail("too many interfaces");
        read_interface();
        break;
      case kOldPacketBlock:
        return read_enhanced_packet(packet, true);
      case kEnhancedPacketBlock:
        return read_enhanced_packet(packet, false);
      case kSimplePacketBlock:
        return read_simple_packet(packet);
      default:
        break;  // statistics, names, secrets
    }
  }
}

void CaptureReader::read_interface() {
  Interface interface;
  if (buffer_.size() >= 8) {
    interface.link = LinkType{u16(buffer_.data())};
    interface.snap_length = u32(buffer_.data() + 4);
    for_each_option(
        std::span<const std::uint8_t>(buffer_).subspan(8),
        [this](const std::uint8_t* p) { return u16(p); },
        [&](std::uint16_t code, std::span<const std::uint8_t> value) {
          if (code == kOptionTimeResolution && value.size() == 1) {
            const unsigned exponent = value[0] & 0x7f;
            std::uint64_t ticks = 1;
            if ((value[0] & 0x80) != 0)
              ticks = exponent < 64 ? std::uint64_t{1} << exponent : 0;
            else if (exponent > 19)
              ticks = 0;
            else
              for (unsigned i = 0; i < exponent; ++i) ticks *= 10;
            if (ticks != 0) interface.ticks_per_second = ticks;
          } else if (code == kOptionTimeOffset && value.size() == 8) {
            interface.offset_seconds = static_cast<std::int64_t>(u64(value.data()));
          }
        });
  }
  interfaces_.push_back(interface);
}

/// The enhanced packet block, and the obsolete one with a 16-bit interface and a drop count in the
/// same place.
bool CaptureReader::read_enhanced_packet(CapturedPacket& packet, bool is_old_form) {
  constexpr std::size_t kFixed = 20;
  if (buffer_.size() < kFixed) return fail("a packet block without its header");
  const std::uint8_t* p = buffer_.data();
  const std::uint32_t id = is_old_form ? u16(p) : u32(p);
  if (id >= interfaces_.size()) return fail("a packet of an interface that was never described");
  const Interface& interface = interfaces_[id];
  const std::uint32_t captured = u32(p + 12);
  if (captured > buffer_.size() - kFixed) return fail("a packet longer than its block");
  packet.link = interface.link;
  packet.time_ns = to_ns(std::uint64_t{u32(p + 4)} << 32 | u32(p + 8), interface);
  packet.data = std::span<const std::uint8_t>(buffer_).subspan(kFixed, captured);
  packet.wire_length = std::max<std::size_t>(u32(p + 16), captured);
  const std::size_t behind = kFixed + padded(captured);
  if (behind < buffer_.size())
    read_packet_options(std::span<const std::uint8_t>(buffer_).subspan(behind), packet);
  return true;
}

bool CaptureReader::read_simple_packet(CapturedPacket& packet) {
  if (buffer_.size() < 4) return fail("a packet block without its header");
  if (interfaces_.empty()) return fail("a packet of an interface that was never described");
  const std::uint32_t original = u32(buffer_.data());
  std::size_t captured = std::min<std::size_t>(original, buffer_.size() - 4);
  if (interfaces_[0].snap_length != 0)
    captured = std::min<std::size_t>(captured, interfaces_[0].snap_length);
  packet.link = interfaces_[0].link;
  packet.data = std::span<const std::uint8_t>(buffer_).subspan(4, captured);
  packet.wire_length = std::max<std::size_t>(original, captured);
  return true;
}

void CaptureReader::read_packet_options(std::span<const std::uint8_t> options,
                                        CapturedPacket& packet) const {
  for_each_option(
      options, [this](const std::uint8_t* p) { return u16(p); },
      [&](std::uint16_t code, std::span<const std::uint8_t> value) {
        if (code == kOptionComment && packet.comment.size() + value.size() < kCommentBytesMax) {
          if (!packet.comment.empty()) packet.comment += '\n';
          packet.comment.append(value.begin(), value.end());
        } else if (code == kOptionPacketFlags && value.size() == 4) {
          const std::uint32_t direction = u32(value.data()) & 3;
          packet.is_inbound = direction == 1;
          packet.is_outbound = direction == 2;
        } else if (code == kOptionDropCount && value.size() == 8) {
          packet.lost_before = u64(value.data());
        }
      });
}

}  // namespace uet::wire
