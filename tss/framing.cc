#include "tss/framing.h"

#include <cstring>

#include "lib/base/byte_cursor.h"
#include "lib/base/planted.h"
#include "lib/wire/codec.h"

namespace uet::tss {

std::optional<Header> parse_header(std::span<const std::uint8_t> packet) {
  if (packet.size() < wire::TssHeader::kSize) return std::nullopt;
  const auto shared = wire::decode<wire::TssHeader>(packet.data());
  Header h{.sp = shared.sp, .an = shared.an, .sdi = shared.sdi};
  if (packet.size() < h.size()) return std::nullopt;
  if (h.sp) h.ssi = base::load_be<std::uint32_t>(packet.data() + 4);
  h.tsc = base::load_be<std::uint64_t>(packet.data() + h.size() - 8);
  return h;
}

void emit_header(const Header& h, std::uint8_t* to) {
  constexpr std::uint64_t kCounter = (1ull << 48) - 1;
  if (h.sp) {
    wire::emit(
        wire::TssHeaderSsi{
            .an = h.an, .sdi = h.sdi, .ssi = h.ssi, .epoch = h.epoch(), .tsc = h.tsc & kCounter},
        to);
  } else {
    wire::emit(
        wire::TssHeader{.an = h.an, .sdi = h.sdi, .epoch = h.epoch(), .tsc = h.tsc & kCounter}, to);
  }
}

AdditionalData::AdditionalData(const Carrier& carrier, bool from_tss, const Route& route,
                               std::span<const std::uint8_t> packet, std::size_t header_and_clear) {
  if (!from_tss) {
    const bool is_v4 = route.source.is_v4();
    for (const net::FabricAddress* a : {&route.source, &route.destination})
      put(std::span(a->bytes()).subspan(is_v4 ? 12 : 0));
    std::uint8_t* to = bytes_.data() + size_;
    base::store_be<std::uint16_t>(to, route.entropy);
    if (carrier.is_udp) {
      base::store_be<std::uint16_t>(to + 2, carrier.udp_port);
      base::store_be<std::uint16_t>(to + 4, static_cast<std::uint16_t>(8 + packet.size()));
      base::store_be<std::uint16_t>(to + 6, 0);
      size_ += 8;
    } else {
      base::store_be<std::uint16_t>(to + 2, route.entropy_reserved);
      size_ += 4;
    }
  }
  put(packet.first(header_and_clear));
}

void AdditionalData::put(std::span<const std::uint8_t> bytes) {
  std::memcpy(bytes_.data() + size_, bytes.data(), bytes.size());
  size_ += bytes.size();
}

std::uint32_t iv_prefix(const Header& header, const net::FabricAddress& source) {
  if (header.sp) return header.ssi;
  return source.is_v4() ? source.v4() : header.sdi;
}

Iv make_iv(std::uint32_t prefix, std::uint64_t tsc, const Mask& mask) {
  Iv iv;
  base::store_be(iv.data(), prefix);
  constexpr std::uint64_t kCounter = ~std::uint64_t{0} >> 16;
  base::store_be(iv.data() + 4,
                 base::planted(base::PlantedBug::kIvWithoutEpoch) ? tsc & kCounter : tsc);
  for (std::size_t i = 0; i < iv.size(); ++i) iv[i] ^= mask.data()[i];
  return iv;
}

}  // namespace uet::tss
