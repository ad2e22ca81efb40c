/// An open PDC between two hosts, and packets for it made by hand.
#pragma once

#include "tests/pds/harness.h"

namespace uet::pds::test {

inline WorldOptions with(std::function<void(WorldOptions&)> change) {
  WorldOptions o;
  o.pds.forced_start_psn = 1000;
  change(o);
  return o;
}
inline bool first_copy(const Seen& s) {
  return s.is_request() && !s.retx;
}

/// Opens a PDC from host 0 to host 1 with one finished message, and says which.
struct Open {
  explicit Open(const WorldOptions& o, Mode m = Mode::kRud) : mode(m), w(o) {
    w.send(0, 1, 1, 100, mode);
    w.run_until_quiet();
    id0 = w.requests(0).at(0).spdcid;
    id1 = w.acks(1).at(0).spdcid;
    next = w.requests(0).back().psn + 1;
    prove();
    w.log.clear();
  }
  Open() : Open(with([](auto&) {})) {}
  /// Host 0 uses the identifier that it has learnt: from now on host 1 knows that it is there.
  void prove() {
    inject_probe();
    w.run_until_quiet();
  }
  /// A Probe from host 0 that asks for the SACK from `base` on.
  void inject_probe(Psn base = Psn(0), std::uint16_t opaque = 0) {
    wire::PdsControl h;
    h.ctl_type = ControlType::kProbe;
    h.probe_opaque = opaque;
    h.spdcid = id0;
    h.dpdcid = id1;
    h.payload = base.value();
    w.inject(1, w.host(0).address, h);
  }
  wire::PdsRequest request(Psn psn) const {
    wire::PdsRequest h;
    h.next_hdr = NextHdr::kRequestStd;
    h.psn = psn;
    h.clear_psn_offset = static_cast<std::int16_t>(next.distance_from(psn) - 1);
    h.spdcid = id0;
    h.dpdcid = id1;
    return h;
  }
  wire::PdsAck ack(Psn cack) const {
    wire::PdsAck h;
    h.cack_psn = cack;
    h.spdcid = id1;
    h.dpdcid = id0;
    return h;
  }
  wire::PdsNack nack(NackCode code, Psn psn) const {
    wire::PdsNack h;
    h.nack_code = code;
    h.nack_psn = psn;
    h.spdcid = id1;
    h.dpdcid = id0;
    return h;
  }
  void arrive(const wire::PdsRequest& h) {
    w.inject(1, w.host(0).address, h, w.segment_bytes(77, h.psn.value(), 100));
    w.pump();
  }
  Mode mode;
  World w;
  std::uint16_t id0 = 0, id1 = 0;
  Psn next;
};

/// Nothing that `host` sends arrives from now on.
inline void silence(World& w, int host) {
  w.add_rule([host](const Seen& s, Fate& f) { f.drop = f.drop || s.from == host; });
}

/// Takes every buffer that is free, so that nothing can be built until they come back.
inline std::vector<net::Packet> hold_all(net::PacketPool& pool) {
  std::vector<net::Packet> held;
  for (net::Packet p = pool.allocate(); p; p = pool.allocate()) held.push_back(std::move(p));
  return held;
}

}  // namespace uet::pds::test
