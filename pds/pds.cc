#include "pds/pds.h"

#include "pds/engine.h"

namespace uet::pds {

struct Pds::Impl : Engine {
  using Engine::Engine;
};

Pds::Pds(const PdsConfig& config, const cc::CcConfig& cc_config, const net::PortFacts& facts,
         net::PacketPool& pool, base::Rng& rng, base::Trace& trace, Upper& upper)
    : impl_(std::make_unique<Impl>(config, cc_config, facts, pool, rng, trace, upper)) {}
Pds::~Pds() = default;

void Pds::set_opening_guard(OpeningGuard& guard) {
  impl_->set_opening_guard(guard);
}

SubmitResult Pds::submit(Instant now, const TxMessage& message) {
  return impl_->submission().submit(now, message);
}
SubmitResult Pds::submit_return(Instant now, RxHandle request, const TxMessage& message) {
  return impl_->submission().submit_return(now, request, message);
}
void Pds::respond(Instant now, RxHandle handle, const SesResponse& response, bool guaranteed) {
  impl_->sequenced().respond(now, handle, response, guaranteed);
}
void Pds::unlock(Instant now, PdcRef pdc) {
  impl_->submission().unlock(now, pdc);
}
void Pds::abort(Instant now, MessageToken token) {
  impl_->submission().abort(now, token);
}
std::uint32_t Pds::truncate(Instant now, MessageToken token, std::uint32_t extra_segments) {
  return impl_->submission().truncate(now, token, extra_segments);
}
void Pds::hurry(Instant, MessageToken token) {
  impl_->submission().hurry(token);
}

void Pds::on_packet(Instant now, net::RxPacket&& rx) {
  impl_->on_packet(now, rx);
  rx.packet.reset();
}
std::size_t Pds::poll_transmit(Instant now, std::span<net::TxPacket> out,
                               std::uint8_t free_planes) {
  return impl_->poll_transmit(now, out, free_planes);
}
bool Pds::may_have_packets() const {
  return impl_->may_have_packets();
}
bool Pds::has_only_acks() const {
  return impl_->has_only_acks();
}
bool Pds::has_unpolled_packets() const {
  return impl_->has_unpolled_packets();
}
void Pds::on_planes_changed(Instant now, std::uint8_t up) {
  impl_->on_planes_changed(now, up);
}
void Pds::on_deadline(Instant now) {
  impl_->on_deadline(now);
}
Instant Pds::next_deadline() const {
  return impl_->next_deadline();
}

void Pds::close_all(Instant now) {
  impl_->close_all(now);
}
bool Pds::is_idle() const {
  return impl_->is_idle();
}
Pds::Gauges Pds::gauges() const {
  return impl_->gauges();
}
void Pds::for_each_pdc(const std::function<bool(const PdcView&)>& visit) const {
  for (const Pdc& pdc : impl_->pdcs().in_order()) {
    const bool goes_on = visit({.peer = pdc.peer,
                                .id = pdc.id,
                                .peer_id = pdc.peer_id,
                                .mode = pdc.mode,
                                .state = name_of(pdc.state),
                                .is_initiator = pdc.is_initiator,
                                .traffic_class = pdc.traffic_class,
                                .unacked = pdc.tx.unacked,
                                .to_resend = pdc.tx.rtx_count,
                                .resent = pdc.tx.resent,
                                .queued = pdc.tx.queued,
                                .peer_window = pdc.tx.mp_range,
                                .beyond_gap = pdc.rx.above_edge,
                                .stored = pdc.rx.stored,
                                .owed = pdc.rx.kept - pdc.rx.stored,
                                .locks = pdc.locks,
                                .inflight = pdc.tx.share.inflight,
                                .next = pdc.tx.next,
                                .cack = pdc.tx.cack,
                                .received_up_to = pdc.rx.edge,
                                .heard_at = pdc.heard_at,
                                .active_at = pdc.active_at,
                                .probed_at = pdc.tx.probe.sent_at,
                                .is_probe_answered = !pdc.tx.probe.is_open,
                                .nacks = impl_->nack_counts().of(pdc.ref())});
    if (!goes_on) return;
  }
}
std::uint64_t Pds::nacks(NackWay way, std::uint8_t code) const {
  return impl_->nack_counts().sum(way, code);
}
void Pds::for_each_congestion(const std::function<void(const CongestionView&)>& visit) const {
  impl_->congestions().for_each([&](const Congestion& c) {
    visit({.peer = c.peer, .traffic_class = c.traffic_class, .sprayed = c.sprayed, .ccc = *c.ccc});
  });
}

}  // namespace uet::pds
