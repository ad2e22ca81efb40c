/// What carries UET: Ethernet, 802.1Q, IPv4, IPv6, UDP, the entropy header and the TSS header.
/// [WIRE 2, 3]
#pragma once

#include "lib/wire/enums.h"
#include "lib/wire/field.h"

namespace uet::wire {

inline constexpr std::uint16_t kUdpPort = 4793;       ///< [WIRE 2.4]
inline constexpr std::uint8_t kNativeProtocol = 253;  ///< [WIRE 2.5] our default
inline constexpr std::size_t kUetCrcBytes = 4;
inline constexpr std::size_t kTssIcvBytes = 16;

struct EthernetHeader {
  static constexpr std::size_t kSize = 14;
  static constexpr std::string_view kLayer = "eth", kName = "ethernet";

  std::array<std::uint8_t, 6> dst{};
  std::array<std::uint8_t, 6> src{};
  EtherType type{};

  template <typename H = EthernetHeader>
  static constexpr auto fields() {
    return list_of(field("dst", &H::dst, 48, "destination MAC address"),
                   field("src", &H::src, 48, "source MAC address"),
                   field("type", &H::type, 16, "what follows"));
  }
};

/// What follows a tag's EtherType: the tag control information and the next EtherType.
struct VlanTag {
  static constexpr std::size_t kSize = 4;
  static constexpr std::string_view kLayer = "vlan", kName = "vlan";

  std::uint8_t pcp = 0;
  bool dei = false;
  std::uint16_t vid = 0;
  EtherType type{};

  template <typename H = VlanTag>
  static constexpr auto fields() {
    return list_of(field("pcp", &H::pcp, 3, "priority"), field("dei", &H::dei, 1, "drop eligible"),
                   field("vid", &H::vid, 12, "VLAN identifier"),
                   field("type", &H::type, 16, "what follows"));
  }
};

/// Linux cooked capture, version 1: what `tcpdump -i any` writes instead of Ethernet.
struct SllHeader {
  static constexpr std::size_t kSize = 16;
  static constexpr std::string_view kLayer = "sll", kName = "sll";

  std::uint16_t packet_type = 0;
  std::uint16_t arphrd_type = 1;
  std::uint16_t address_length = 6;
  std::array<std::uint8_t, 8> address{};
  EtherType protocol{};

  template <typename H = SllHeader>
  static constexpr auto fields() {
    return list_of(field("packet_type", &H::packet_type, 16, "0 to us .. 4 from us"),
                   field("arphrd_type", &H::arphrd_type, 16, "kind of device"),
                   field("address_length", &H::address_length, 16, "bytes of address"),
                   field("address", &H::address, 64, "link-layer address of the sender"),
                   field("protocol", &H::protocol, 16, "what follows"));
  }
};

/// Linux cooked capture, version 2.
struct Sll2Header {
  static constexpr std::size_t kSize = 20;
  static constexpr std::string_view kLayer = "sll", kName = "sll2";

  EtherType protocol{};
  std::uint32_t interface_index = 0;
  std::uint16_t arphrd_type = 1;
  std::uint8_t packet_type = 0;
  std::uint8_t address_length = 6;
  std::array<std::uint8_t, 8> address{};

  template <typename H = Sll2Header>
  static constexpr auto fields() {
    return list_of(field("protocol", &H::protocol, 16, "what follows"), reserved("reserved", 16),
                   field("interface_index", &H::interface_index, 32, "interface"),
                   field("arphrd_type", &H::arphrd_type, 16, "kind of device"),
                   field("packet_type", &H::packet_type, 8, "0 to us .. 4 from us"),
                   field("address_length", &H::address_length, 8, "bytes of address"),
                   field("address", &H::address, 64, "link-layer address of the sender"));
  }
};

/// The 20 bytes without options.
struct Ipv4Header {
  static constexpr std::size_t kSize = 20;
  static constexpr std::string_view kLayer = "ipv4", kName = "ipv4";

  std::uint8_t version = 4;
  std::uint8_t ihl = 5;
  std::uint8_t dscp = 0;
  std::uint8_t ecn = 0;
  std::uint16_t total_length = 0;
  std::uint16_t identification = 0;
  bool df = true;
  bool mf = false;
  std::uint16_t fragment_offset = 0;
  std::uint8_t ttl = 64;
  IpProtocol protocol = IpProtocol::kUdp;
  std::uint16_t checksum = 0;
  std::array<std::uint8_t, 4> src{};
  std::array<std::uint8_t, 4> dst{};

  template <typename H = Ipv4Header>
  static constexpr auto fields() {
    return list_of(
        field("version", &H::version, 4, "4"), field("ihl", &H::ihl, 4, "header length in words"),
        field("dscp", &H::dscp, 6, "code point"), field("ecn", &H::ecn, 2, "congestion mark"),
        field("total_length", &H::total_length, 16, "header and everything behind it, in bytes"),
        field("identification", &H::identification, 16, "0"), reserved("flag_rsvd", 1),
        field("df", &H::df, 1, "do not fragment"), field("mf", &H::mf, 1, "more fragments"),
        field("fragment_offset", &H::fragment_offset, 13, "0"),
        field("ttl", &H::ttl, 8, "time to live"),
        field("protocol", &H::protocol, 8, "what follows"),
        field("checksum", &H::checksum, 16, "header checksum"),
        field("src", &H::src, 32, "source address"),
        field("dst", &H::dst, 32, "destination address"));
  }
};

struct Ipv6Header {
  static constexpr std::size_t kSize = 40;
  static constexpr std::string_view kLayer = "ipv6", kName = "ipv6";

  std::uint8_t version = 6;
  std::uint8_t dscp = 0;
  std::uint8_t ecn = 0;
  std::uint32_t flow_label = 0;
  std::uint16_t payload_length = 0;
  IpProtocol next_header = IpProtocol::kUdp;
  std::uint8_t hop_limit = 64;
  std::array<std::uint8_t, 16> src{};
  std::array<std::uint8_t, 16> dst{};

  template <typename H = Ipv6Header>
  static constexpr auto fields() {
    return list_of(
        field("version", &H::version, 4, "6"), field("dscp", &H::dscp, 6, "code point"),
        field("ecn", &H::ecn, 2, "congestion mark"), field("flow_label", &H::flow_label, 20, "0"),
        field("payload_length", &H::payload_length, 16, "everything behind this header, in bytes"),
        field("next_header", &H::next_header, 8, "what follows"),
        field("hop_limit", &H::hop_limit, 8, "hops left"),
        field("src", &H::src, 128, "source address"),
        field("dst", &H::dst, 128, "destination address"));
  }
};

/// [WIRE 2.4]
struct UdpHeader {
  static constexpr std::size_t kSize = 8;
  static constexpr std::string_view kLayer = "udp", kName = "udp";

  std::uint16_t src_port = 0;
  std::uint16_t dst_port = kUdpPort;
  std::uint16_t length = 0;
  std::uint16_t checksum = 0;

  template <typename H = UdpHeader>
  static constexpr auto fields() {
    return list_of(field("src_port", &H::src_port, 16, "entropy chosen by the sender"),
                   field("dst_port", &H::dst_port, 16, "4793"),
                   field("length", &H::length, 16, "header and everything behind it, in bytes"),
                   field("checksum", &H::checksum, 16, "sent as 0, ignored"));
  }
};

/// Native IP only. [WIRE 2.5]
struct EntropyHeader {
  static constexpr std::size_t kSize = 4;
  static constexpr std::string_view kLayer = "entropy", kName = "entropy";

  std::uint16_t entropy = 0;

  template <typename H = EntropyHeader>
  static constexpr auto fields() {
    return list_of(field("entropy", &H::entropy, 16, "path selection value"),
                   reserved("reserved", 16));
  }
};

/// Ours, not the specification's: what a process says in front of each packet when it shares the IP address of its host. The source
/// port of UET is an entropy value and names no process; this says at which UDP port answers reach it. The type is one of those that
/// the specification reserves: other endpoints drop what they could not answer. [decision 168]
struct ReturnPort {
  static constexpr std::size_t kSize = 4;
  static constexpr std::string_view kLayer = "return_port", kName = "return_port";
  static constexpr std::uint8_t kType = 31;
  /// Where they are: neither the kernel nor a usual service takes any of these by itself.
  static constexpr std::uint16_t kFirst = 0x5000, kCount = 256;
  static constexpr bool is_one(std::uint16_t udp_port) {
    return udp_port >= kFirst && udp_port - kFirst < kCount;
  }
  static constexpr bool is_here(std::span<const std::uint8_t> packet) {
    return packet.size() >= kSize && packet[0] >> 3 == kType;
  }

  std::uint8_t type = kType;
  std::uint16_t udp_port = 0;

  template <typename H = ReturnPort>
  static constexpr auto fields() {
    return list_of(field("type", &H::type, 5, "31"), reserved("reserved", 11),
                   field("udp_port", &H::udp_port, 16, "where the sender is reached"));
  }
};

/// TSS header without SSI, sp=0. [WIRE 3.1]
struct TssHeader {
  static constexpr std::size_t kSize = 12;
  static constexpr std::string_view kLayer = "tss", kName = "tss";

  PdsType type = PdsType::kTss;
  bool sp = false;
  bool an = false;
  std::uint32_t sdi = 0;
  std::uint16_t epoch = 0;
  std::uint64_t tsc = 0;

  template <typename H = TssHeader>
  static constexpr auto fields() {
    return list_of(field("type", &H::type, 5, "1"), field("sp", &H::sp, 1, "SSI word present"),
                   reserved("reserved", 1), field("an", &H::an, 1, "association number"),
                   field("sdi", &H::sdi, 24, "secure domain identifier"),
                   field("epoch", &H::epoch, 16, "upper part of the counter"),
                   field("tsc", &H::tsc, 48, "packet counter"));
  }
};

/// TSS header with SSI, sp=1. [WIRE 3.2]
struct TssHeaderSsi {
  static constexpr std::size_t kSize = 16;
  static constexpr std::string_view kLayer = "tss", kName = "tss_ssi";

  PdsType type = PdsType::kTss;
  bool sp = true;
  bool an = false;
  std::uint32_t sdi = 0;
  std::uint32_t ssi = 0;
  std::uint16_t epoch = 0;
  std::uint64_t tsc = 0;

  template <typename H = TssHeaderSsi>
  static constexpr auto fields() {
    return list_of(field("type", &H::type, 5, "1"), field("sp", &H::sp, 1, "SSI word present"),
                   reserved("reserved", 1), field("an", &H::an, 1, "association number"),
                   field("sdi", &H::sdi, 24, "secure domain identifier"),
                   field("ssi", &H::ssi, 32, "secure source identifier"),
                   field("epoch", &H::epoch, 16, "upper part of the counter"),
                   field("tsc", &H::tsc, 48, "packet counter"));
  }
};

}  // namespace uet::wire
