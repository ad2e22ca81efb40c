#include "ses/address_bytes.h"

#include <algorithm>

#include "lib/base/byte_cursor.h"

namespace uet::ses {
namespace {

constexpr std::uint8_t kVersion = 0;

enum Flag : std::uint8_t {
  kCapsValid = 1 << 0,
  kFaValid = 1 << 1,
  kPidValid = 1 << 2,
  kRiValid = 1 << 3,
  kInitiatorValid = 1 << 4,
  kAbsolute = 1 << 5,
  kIpv6 = 1 << 6,
  kOnePacketMessages = 1 << 7,
};

}  // namespace

AddressBytes pack_address(const Address& address) {
  AddressBytes out{};
  base::Writer w(out);
  const bool v4 = address.fabric_address.is_v4();
  std::uint8_t flags = kCapsValid | kFaValid | kPidValid;
  if (address.resource_index != 0) flags |= kRiValid;
  if (address.has_initiator_id) flags |= kInitiatorValid;
  if (!address.relative) flags |= kAbsolute;
  if (!v4) flags |= kIpv6;
  if (address.one_packet_messages) flags |= kOnePacketMessages;
  w.u8(kVersion);
  w.u8(flags);
  w.u16(address.fep_cap);
  w.u16(address.pid_on_fep);
  w.u16(address.resource_index);
  w.u16(address.num_indices);
  w.u16(0);
  w.u32(address.initiator_id);
  if (v4) {
    w.u32(address.fabric_address.v4());
    w.u16(address.fabric_address.udp_port());
  } else {
    w.bytes(address.fabric_address.bytes());
  }
  return out;
}

std::optional<Address> unpack_address(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < kAddressBytes) return std::nullopt;
  base::Reader r(bytes.first(kAddressBytes));
  if (r.u8() != kVersion) return std::nullopt;
  const std::uint8_t flags = r.u8();
  if ((flags & kFaValid) == 0) return std::nullopt;
  Address a;
  a.fep_cap = (flags & kCapsValid) != 0 ? r.u16() : (r.skip(2), std::uint16_t{0});
  a.pid_on_fep = r.u16();
  a.resource_index = r.u16();
  a.num_indices = std::max<std::uint16_t>(r.u16(), 1);
  r.skip(2);
  a.initiator_id = r.u32();
  a.has_initiator_id = (flags & kInitiatorValid) != 0;
  a.relative = (flags & kAbsolute) == 0;
  a.one_packet_messages = (flags & kOnePacketMessages) != 0;
  if (a.pid_on_fep > 0xfff || a.resource_index > 0xfff) return std::nullopt;
  if ((flags & kIpv6) != 0) {
    std::array<std::uint8_t, 16> v6;
    std::ranges::copy(r.bytes(16), v6.begin());
    a.fabric_address = net::FabricAddress::from_v6(v6);
  } else {
    a.fabric_address = net::FabricAddress::from_v4(r.u32());
    a.fabric_address = a.fabric_address.with_udp_port(r.u16());
  }
  return a;
}

bool is_complete(std::span<const std::uint8_t> bytes) {
  constexpr std::uint8_t kNeeded = kFaValid | kPidValid | kRiValid;
  const auto address = unpack_address(bytes);
  return address && (bytes[1] & kNeeded) == kNeeded && address->resource_index != 0;
}

std::string format_address(const Address& a) {
  std::string out = "uet://" + a.fabric_address.to_string() + "/pid" +
                    std::to_string(a.pid_on_fep) + "/ri" + std::to_string(a.resource_index) + "+" +
                    std::to_string(a.num_indices);
  if (a.has_initiator_id) out += "/id" + std::to_string(a.initiator_id);
  return out + (a.relative ? "/rel" : "/abs");
}

}  // namespace uet::ses
