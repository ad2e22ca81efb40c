#include "pds/ack_in.h"

#include <bit>

#include "lib/base/planted.h"
#include "lib/wire/codec.h"
#include "pds/pool_sizes.h"

namespace uet::pds {

using base::DropReason;
using base::planted;
using base::PlantedBug;
using wire::NextHdr;

namespace {

template <typename H>
void take_common(AckIn& in, const H& h) {
  wire::PdsAck& c = in.common;
  c.type = h.type;
  c.next_hdr = h.next_hdr;
  c.m = h.m;
  c.retx = h.retx;
  c.p = h.p;
  c.req = h.req;
  c.ack_psn_offset = h.ack_psn_offset;
  c.cack_psn = h.cack_psn;
  c.spdcid = h.spdcid;
  c.dpdcid = h.dpdcid;
}

template <typename H>
void take_sack(AckIn& in, const H& h) {
  in.has_sack = true;
  in.mpr = h.mpr;
  in.sack_base = h.cack_psn + h.sack_psn_offset;
  in.sack_bitmap = h.sack_bitmap;
}

}  // namespace

bool parse_ack(Instant now, const net::RxPacket& rx, base::Trace& trace, AckIn& in) {
  using wire::PdsType;
  const auto bytes = rx.packet.bytes();
  const auto type = static_cast<PdsType>(bytes[0] >> 3);
  const std::size_t size = type == PdsType::kAck     ? wire::PdsAck::kSize
                           : type == PdsType::kAckCc ? wire::PdsAckCcNscc::kSize
                                                     : wire::PdsAckCcx::kSize;
  if (bytes.size() < size) {
    trace.drop(now, DropReason::kTruncated, bytes.size());
    return false;
  }
  in.signal.arrived_at = now;
  if (type == PdsType::kAck) {
    in.common = wire::decode<wire::PdsAck>(bytes.data());
  } else if (type == PdsType::kAckCcx) {
    const auto h = wire::decode<wire::PdsAckCcx>(bytes.data());
    take_common(in, h);
    take_sack(in, h);
  } else {
    const auto h = wire::decode<wire::PdsAckCcNscc>(bytes.data());
    take_common(in, h);
    take_sack(in, h);
    in.signal.ooo_count = h.ooo_count;
    if (h.cc_type == wire::CcType::kNscc) {
      in.signal.has_nscc_state = true;
      in.signal.rcvd_units = h.rcvd_bytes;
      in.signal.service_time_units = h.service_time;
      in.signal.penalty = h.rcv_cwnd_pend;
      in.signal.restore_window = h.restore_cwnd;
    } else if (h.cc_type == wire::CcType::kCredit) {
      in.signal.has_credit_state = true;
      in.signal.credit_units = wire::decode<wire::PdsAckCcCredit>(bytes.data()).credit;
    } else {
      in.signal.ooo_count = 0xffff;
      trace.drop(now, DropReason::kUnknownCcType, 0, h.dpdcid);  // the rest of the ACK counts
    }
  }
  const NextHdr next = in.common.next_hdr;
  const bool possible = next == NextHdr::kNone || next == NextHdr::kResponse ||
                        next == NextHdr::kResponseData || next == NextHdr::kResponseDataSmall;
  if (!possible) {
    trace.drop(now, DropReason::kBadNextHeader, bytes.size(), in.common.dpdcid);
    return false;
  }
  if (next != NextHdr::kNone) {
    in.body = bytes.subspan(size);
  } else if (type == PdsType::kAck && in.common.flag_epsn &&
             bytes.size() >= size + wire::PdsExpectedPsn::kSize) {  // [WIRE 4.7]
    in.expected_psn = wire::decode<wire::PdsExpectedPsn>(bytes.data() + size).expected_psn;
  }
  in.signal.ecn = in.common.m;
  in.signal.retx_echo = in.common.retx;
  in.signal.entropy = rx.entropy;
  return true;
}

// An ACK that is late may be behind, but an offset of 16 bits must reach what is outstanding: further back it says nothing, and half
// of all numbers would be believed. [PDS 19 R5, R6]
bool speaks_of_what_was_sent(const Pdc& pdc, const AckIn& in) {
  const Psn last = pdc.tx.next - 1;
  const Psn before_start = pdc.start - 1;
  const std::uint32_t used = pdc.tx.cack.value() - before_start.value();
  const Psn oldest = used < kMaxWindow ? before_start : pdc.tx.cack - kMaxWindow;
  const auto is_possible = [&](Psn psn, Psn from) {
    return (psn.is_at_or_after(from) || planted(PlantedBug::kAckBelowStart)) &&
           psn.is_at_or_before(last);
  };
  if (!is_possible(in.common.cack_psn, oldest)) return false;
  if (!in.ack_names_psn()) return true;
  return is_possible(in.ack_psn(), used < kMaxWindow ? before_start : oldest - kMaxWindow);
}

bool shows_an_arrival(const Pdc& pdc, const AckIn& in) {
  if (pdc.tx.is_outstanding(in.common.cack_psn)) return true;
  if (in.ack_names_psn() && pdc.tx.is_outstanding(in.ack_psn())) return true;
  if (!in.has_sack) return false;
  for (std::uint64_t bits = in.sack_bitmap; bits != 0; bits &= bits - 1)
    if (pdc.tx.is_outstanding(in.sack_base + std::countr_zero(bits))) return true;
  return false;
}

bool is_gap_open(const Pdc& pdc, const AckIn& in) {
  const TxHalf& tx = pdc.tx;
  if (in.ack_names_psn() && in.ack_psn().is_after(tx.left_edge) &&
      pdc.tx.is_outstanding(in.ack_psn()))
    return true;
  if (!in.has_sack || in.sack_bitmap == 0) return false;
  const Psn top = in.sack_base + (63 - std::countl_zero(in.sack_bitmap));
  return top.is_after(tx.left_edge) && pdc.tx.is_outstanding(top);
}

bool find_newest_arrival(const Pdc& pdc, const AckIn& in, Psn& newest) {
  bool is_shown = in.ack_names_psn() && pdc.tx.is_outstanding(in.ack_psn());
  if (is_shown) newest = in.ack_psn();
  if (in.has_sack && in.sack_bitmap != 0) {
    const Psn top = in.sack_base + (63 - std::countl_zero(in.sack_bitmap));
    if (pdc.tx.is_outstanding(top) && (!is_shown || top.is_after(newest))) {
      newest = top;
      is_shown = true;
    }
  }
  return is_shown;
}

}  // namespace uet::pds
