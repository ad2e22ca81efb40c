/// An ACK of any type as the source reads it: what its bytes say, and what that shows of a PDC. [PDS 7.4, WIRE 4.7]
#pragma once

#include <optional>
#include <span>

#include "cc/signals.h"
#include "lib/base/trace.h"
#include "lib/net/port.h"
#include "lib/wire/pds_headers.h"
#include "pds/pdc.h"

namespace uet::pds {

struct AckIn {
  wire::PdsAck common;
  bool has_sack = false;
  std::uint8_t mpr = 0;
  Psn sack_base;
  std::uint64_t sack_bitmap = 0;
  std::span<const std::uint8_t> body;
  std::optional<Psn> expected_psn;
  cc::AckSignal signal;
  bool ack_names_psn() const { return !common.p; }
  Psn ack_psn() const { return common.cack_psn + common.ack_psn_offset; }
};

/// `in` must be newly constructed. False, and a drop, when the bytes are not those of an ACK; then its content means nothing.
bool parse_ack(Instant now, const net::RxPacket& rx, base::Trace& trace, AckIn& in);

/// The PSNs of an ACK lie between the start of the PDC and what was sent last. [PDS 19 R5, R6]
bool speaks_of_what_was_sent(const Pdc& pdc, const AckIn& in);
/// Some packet that is not acknowledged yet has arrived.
bool shows_an_arrival(const Pdc& pdc, const AckIn& in);
/// Something above the left edge has arrived.
bool is_gap_open(const Pdc& pdc, const AckIn& in);
/// False when this ACK shows no PSN to have arrived above the left edge; else `newest` is the last one.
bool find_newest_arrival(const Pdc& pdc, const AckIn& in, Psn& newest);

}  // namespace uet::pds
