#include "lib/wire/dissect_frame.h"

#include <algorithm>
#include <array>

#include "lib/wire/uet_crc.h"

namespace uet::wire {

std::uint16_t ipv4_checksum(std::span<const std::uint8_t> header) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < header.size(); i += 2) {
    if (i == 10) continue;  // the field itself
    sum += static_cast<std::uint32_t>(header[i] << 8 | header[i + 1]);
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

namespace {

class FrameDissector {
 public:
  using Bytes = std::span<const std::uint8_t>;

  FrameDissector(Bytes frame, std::size_t wire_length, const DissectOptions& options,
                 DissectVisitor& visitor)
      : bytes_(frame),
        wire_end_(std::max(wire_length, frame.size())),
        is_cut_(frame.size() < wire_length),
        options_(options),
        visitor_(visitor) {}

  void run(LinkType link) {
    switch (link) {
      case LinkType::kEthernet:
        if (const auto h = take<EthernetHeader>("ETHERNET", Problem::kLinkTruncated))
          ether_type(h->type, 0);
        break;
      case LinkType::kLinuxSll:
        if (const auto h = take<SllHeader>("SLL", Problem::kLinkTruncated))
          ether_type(h->protocol, 0);
        break;
      case LinkType::kLinuxSll2:
        if (const auto h = take<Sll2Header>("SLL2", Problem::kLinkTruncated))
          ether_type(h->protocol, 0);
        break;
      case LinkType::kRaw:
      case LinkType::kRawOld:
      case LinkType::kIpv4:
      case LinkType::kIpv6:
        ip_by_version();
        break;
      case LinkType::kUet: {
        UetContext context{.wire_length = wire_end_, .payload_mtu = options_.payload_mtu};
        problem_if(is_cut_, Problem::kCaptureCut, wire_end_, bytes_.size());
        dissect_uet(bytes_, context, visitor_);
        break;
      }
      default:
        problem(Problem::kLinkType, static_cast<std::uint64_t>(link));
        undecoded();
        break;
    }
  }

 private:
  std::size_t left() const { return bytes_.size() - at_; }
  std::size_t wire_left() const { return wire_end_ - at_; }

  void problem(Problem p, std::uint64_t a = 0, std::uint64_t b = 0) {
    visitor_.on_problem(p, at_, a, b);
  }
  void problem_if(bool wrong, Problem p, std::uint64_t a = 0, std::uint64_t b = 0) {
    if (wrong) problem(p, a, b);
  }
  void give(BytesKind kind, std::size_t n) {
    visitor_.on_bytes(kind, at_, bytes_.subspan(at_, n));
    at_ += n;
  }
  void undecoded() {
    if (left() > 0) give(BytesKind::kUndecoded, left());
  }

  template <typename H>
  std::optional<H> take(std::string_view name, Problem truncated) {
    if (left() < H::kSize) {
      problem(truncated, H::kSize, left());
      undecoded();
      return std::nullopt;
    }
    const Bytes raw = bytes_.subspan(at_, H::kSize);
    const HeaderType& type = type_of<H>();
    problem_if(has_reserved_bits_set(type, raw), Problem::kReservedBits);
    visitor_.on_header(type, name, at_, raw);
    at_ += H::kSize;
    return decode_out_of_line<H>(raw.data());
  }

  void ether_type(EtherType type, int tags) {
    constexpr int kTagsMax = 2;  // [WIRE 2.2]
    switch (type) {
      case EtherType::kIpv4:
      case EtherType::kIpv6:
        ip_by_version();
        break;
      case EtherType::kVlan:
      case EtherType::kQinQ:
        if (tags == kTagsMax) {
          problem(Problem::kTooManyTags);
          undecoded();
        } else if (const auto h = take<VlanTag>("VLAN", Problem::kLinkTruncated)) {
          ether_type(h->type, tags + 1);
        }
        break;
      default:
        problem(Problem::kNotIp, static_cast<std::uint64_t>(type));
        undecoded();
        break;
    }
  }

  void ip_by_version() {
    if (left() == 0) {
      problem(Problem::kIpTruncated, Ipv4Header::kSize, 0);
      return;
    }
    switch (const std::uint8_t version = bytes_[at_] >> 4; version) {
      case 4:
        ipv4();
        break;
      case 6:
        ipv6();
        break;
      default:
        problem(Problem::kIpVersion, version);
        undecoded();
        break;
    }
  }

  void ipv4() {
    const std::size_t start = at_;
    const auto h = take<Ipv4Header>("IPV4", Problem::kIpTruncated);
    if (!h) return;
    is_trimmed_ = is_trimmed(h->dscp);
    const std::size_t header_bytes = std::size_t{h->ihl} * 4;
    if (header_bytes < Ipv4Header::kSize) {
      problem(Problem::kIpHeaderLength, header_bytes);
      undecoded();
      return;
    }
    if (const std::size_t options = header_bytes - Ipv4Header::kSize; options > 0) {
      problem(Problem::kIpOptions, options);
      if (left() < options) {
        problem(Problem::kIpTruncated, options, left());
        undecoded();
        return;
      }
      give(BytesKind::kIpOptions, options);
    }
    const std::uint16_t checksum = ipv4_checksum(bytes_.subspan(start, header_bytes));
    problem_if(checksum != h->checksum, Problem::kIpChecksum, h->checksum, checksum);
    context_.source = bytes_.subspan(start + 12, 4);
    context_.destination = bytes_.subspan(start + 16, 4);
    if (h->mf || h->fragment_offset != 0) {
      problem(Problem::kIpFragment, std::uint64_t{h->fragment_offset} * 8);
      undecoded();
      return;
    }
    set_ip_end(h->total_length < header_bytes ? 0 : h->total_length - header_bytes,
               h->total_length >= header_bytes);
    transport(h->protocol);
  }

  void ipv6() {
    const std::size_t start = at_;
    const auto h = take<Ipv6Header>("IPV6", Problem::kIpTruncated);
    if (!h) return;
    is_trimmed_ = is_trimmed(h->dscp);
    context_.source = bytes_.subspan(start + 8, 16);
    context_.destination = bytes_.subspan(start + 24, 16);
    set_ip_end(h->payload_length, true);
    IpProtocol next = h->next_header;
    constexpr int kExtensionsMax = 8;
    for (int i = 0; i < kExtensionsMax && is_extension(next); ++i) {
      problem(Problem::kIpExtension, static_cast<std::uint64_t>(next));
      constexpr std::size_t kSmallest = 8;
      const std::size_t here = bytes_.size() - at_;
      const bool is_fragment = next == IpProtocol::kFragment;
      const std::size_t n = here < 2                              ? kSmallest
                            : is_fragment                         ? kSmallest
                            : next == IpProtocol::kAuthentication ? (bytes_[at_ + 1] + 2U) * 4
                                                                  : (bytes_[at_ + 1] + 1U) * 8;
      if (here < n) {
        problem(Problem::kIpTruncated, n, here);
        undecoded();
        return;
      }
      if (is_fragment) {
        const auto word = base::load_be<std::uint16_t>(bytes_.data() + at_ + 2);
        if ((word & 0xfff9) != 0) {  // an offset, or more fragments to come
          problem(Problem::kIpFragment, word & 0xfff8);
          undecoded();
          return;
        }
      }
      next = IpProtocol{bytes_[at_]};
      give(BytesKind::kIpExtension, n);
    }
    transport(next);
  }

  static constexpr bool is_extension(IpProtocol p) {
    return p == IpProtocol::kHopByHop || p == IpProtocol::kRouting || p == IpProtocol::kFragment ||
           p == IpProtocol::kAuthentication || p == IpProtocol::kDestinationOptions;
  }
  bool is_trimmed(std::uint8_t dscp) const {
    return dscp == options_.dscp_trimmed || dscp == options_.dscp_trimmed_lasthop;
  }

  /// Cuts what lies behind the IP packet off; `length` is what the IP header says about the bytes
  /// from here on.
  void set_ip_end(std::size_t length, bool is_sane) {
    // [WIRE 2.7] The lengths of a trimmed packet may be stale.
    if (!is_sane || length > wire_left()) {
      problem_if(!is_trimmed_, Problem::kIpLength, length, wire_left());
      length = std::min(is_sane ? length : wire_left(), wire_left());
    }
    wire_end_ = at_ + length;
    if (bytes_.size() > wire_end_) {
      visitor_.on_bytes(BytesKind::kPadding, wire_end_, bytes_.subspan(wire_end_));
      bytes_ = bytes_.first(wire_end_);
    } else if (is_cut_ && bytes_.size() < wire_end_) {
      problem(Problem::kCaptureCut, wire_end_, bytes_.size());
    }
  }

  void transport(IpProtocol protocol) {
    if (protocol == IpProtocol::kUdp) {
      udp();
    } else if (static_cast<std::uint8_t>(protocol) == options_.native_protocol) {
      const std::size_t start = at_;
      if (!take<EntropyHeader>("ENTROPY", Problem::kEntropyTruncated)) return;
      context_.encapsulation = bytes_.subspan(start, EntropyHeader::kSize);
      uet();
    } else {
      problem(Problem::kNotUet, static_cast<std::uint64_t>(protocol));
      undecoded();
    }
  }

  void udp() {
    const std::size_t start = at_;
    const auto h = take<UdpHeader>("UDP", Problem::kUdpTruncated);
    if (!h) return;
    context_.encapsulation = bytes_.subspan(start, UdpHeader::kSize);
    const std::size_t ip_has = wire_left() + UdpHeader::kSize;
    if (h->length != ip_has && !is_trimmed_) problem(Problem::kUdpLength, h->length, ip_has);
    if (h->dst_port != options_.udp_port && !ReturnPort::is_one(h->dst_port)) {
      problem(Problem::kNotUet, static_cast<std::uint64_t>(IpProtocol::kUdp), h->dst_port);
      undecoded();
      return;
    }
    if (h->length >= UdpHeader::kSize && h->length < ip_has) {
      wire_end_ = start + h->length;
      if (bytes_.size() > wire_end_) {
        visitor_.on_bytes(BytesKind::kPadding, wire_end_, bytes_.subspan(wire_end_));
        bytes_ = bytes_.first(wire_end_);
      }
    }
    uet();
  }

  /// The CRC over the packet as it lies here, the last four bytes being the CRC itself. [WIRE 2.8]
  std::uint32_t crc_here() const {
    std::array<std::uint8_t, UdpHeader::kSize> header{};
    const Bytes wire_header = context_.encapsulation;
    std::copy(wire_header.begin(), wire_header.end(), header.begin());
    if (wire_header.size() == UdpHeader::kSize) header[6] = header[7] = 0;
    std::uint32_t crc = crc32c(context_.destination, crc32c(context_.source));
    crc = crc32c(Bytes(header).first(wire_header.size()), crc);
    return crc32c(bytes_.subspan(at_, left() - kUetCrcBytes), crc);
  }

  void uet() {
    context_.is_trimmed = is_trimmed_;
    context_.payload_mtu = options_.payload_mtu;
    const bool is_sealed = left() > 0 && bytes_[at_] >> 3 == static_cast<int>(PdsType::kTss);
    const bool is_whole = left() == wire_left() && !is_trimmed_;
    std::size_t trailer = 0;
    Bytes cut_crc;
    if (options_.crc != CrcPolicy::kNever && !is_sealed && is_whole) {
      if (left() >= PdsUud::kSize + kUetCrcBytes) {
        const std::uint32_t expected = crc_here();
        const auto found =
            base::load_be<std::uint32_t>(bytes_.data() + bytes_.size() - kUetCrcBytes);
        if (found == expected || options_.crc == CrcPolicy::kAlways)
          trailer = kUetCrcBytes;
        else
          context_.crc_expected = expected;
        problem_if(trailer != 0 && found != expected, Problem::kBadCrc, found, expected);
      } else {
        problem_if(options_.crc == CrcPolicy::kAlways, Problem::kCrcMissing, left());
      }
    } else if (options_.crc == CrcPolicy::kAlways && !is_sealed && !is_trimmed_ &&
               wire_left() >= kUetCrcBytes) {
      wire_end_ -=
          kUetCrcBytes;  // the capture was cut: of the CRC there are some bytes here, or none
      if (bytes_.size() > wire_end_) {
        cut_crc = bytes_.subspan(wire_end_);
        bytes_ = bytes_.first(wire_end_);
      }
    }
    if (ReturnPort::is_here(bytes_.subspan(at_)))
      take<ReturnPort>("RETURN PORT", Problem::kUdpTruncated);
    context_.offset = at_;
    context_.wire_length = wire_left() - trailer;
    dissect_uet(bytes_.subspan(at_, left() - trailer), context_, visitor_);
    if (trailer != 0) {
      at_ = bytes_.size() - trailer;
      give(BytesKind::kCrc, trailer);
    } else if (!cut_crc.empty()) {
      visitor_.on_bytes(BytesKind::kCrc, wire_end_, cut_crc);
    }
  }

  Bytes bytes_;
  std::size_t at_ = 0;
  std::size_t wire_end_;  ///< where the current layer ends on the wire, captured or not
  bool is_cut_;
  bool is_trimmed_ = false;
  const DissectOptions& options_;
  DissectVisitor& visitor_;
  UetContext context_;
};

}  // namespace

void dissect_frame(LinkType link, std::span<const std::uint8_t> frame, std::size_t wire_length,
                   const DissectOptions& options, DissectVisitor& visitor) {
  FrameDissector(frame, wire_length, options, visitor).run(link);
}

}  // namespace uet::wire
