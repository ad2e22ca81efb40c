/// Sequenced packets that came in, as the parts see them.
#pragma once

#include <cstdint>
#include <span>

#include "lib/net/packet.h"
#include "lib/wire/codec.h"
#include "lib/wire/pds_headers.h"
#include "pds/pds.h"
#include "pds/response_store.h"

namespace uet::pds {

using wire::ControlType;
using wire::NackCode;
using wire::NextHdr;

/// A sequenced packet that arrived: a RUD or ROD Request, or a control packet that consumes a PSN.
struct Arrival {
  net::FabricAddress source;
  Mode mode = Mode::kRud;
  bool is_control = false;
  ControlType control{};
  NextHdr next_hdr{};
  bool retx = false, ar = false, syn = false, trimmed = false, last_hop = false;
  bool overtaken = false;  ///< RxPacket::is_overtaken
  bool has_clear = false;
  std::int16_t clear_offset = 0;
  Psn psn;
  std::uint16_t spdcid = 0;
  std::uint16_t dpdcid = 0;      ///< syn = 0
  std::uint16_t psn_offset = 0;  ///< syn = 1
  std::uint16_t header_bytes = 0;
  std::span<const std::uint8_t> body;  ///< SES header and payload
  net::Packet* packet = nullptr;       ///< owner of `body`; the reorder buffer takes it
  RxMeta meta;
  Psn start() const { return Psn(psn.value() - psn_offset); }
};

}  // namespace uet::pds
