/// Two packet deliveries without a network: packets go from one Pds straight into the other.
#pragma once

#include <cstring>
#include <optional>

#include "lib/net/packet.h"
#include "pds/pds.h"

namespace uet::pds {

/// Cuts segments without payload copies, so that what is measured is the PDS.
class NullSes final : public Upper {
 public:
  SegmentInfo emit_segment(MessageToken, std::uint32_t, PdcRef, Psn, net::Packet& packet) override {
    std::memset(packet.append(44), 0, 44);
    packet.append(4096);
    return SegmentInfo{3};
  }
  Answer on_request(Instant, const RxRequest&) override {
    Answer a;
    a.response.next_hdr = 4;
    a.response.header_bytes = 12;
    return a;
  }
  void on_response(Instant, MessageToken, std::uint32_t, std::uint8_t,
                   std::span<const std::uint8_t>) override {
    ++answered;
  }
  void on_message_error(Instant, MessageToken, PdsError) override {}
  void on_pdc_gone(Instant, PdcRef, net::FabricAddress, PdsError) override {}
  void on_resume(Instant) override {}
  std::uint64_t answered = 0;
};

struct End {
  End(std::uint32_t address, net::PacketPool& pool) : rng(address), trace(1024) {
    facts.address = net::FabricAddress::from_v4(address);
    PdsConfig config;
    config.pdc_idle_time = base::Duration{};
    config.pdcid_quarantine = base::Duration{};
    config.max_pdc = 65535;
    cc::CcConfig cc;
    cc.link_rate = base::BitRate::from_gbps(100);
    cc.config_base_rtt = base::Duration::from_us(100);
    pds.emplace(config, cc, facts, pool, rng, trace, ses);
  }
  base::Rng rng;
  base::Trace trace;
  net::PortFacts facts;
  NullSes ses;
  std::optional<Pds> pds;
};

inline std::size_t move_all(Instant now, End& from, End& to) {
  std::size_t n = 0;
  net::TxPacket tx;
  while (from.pds->poll_transmit(now, tx)) {
    net::RxPacket rx;
    rx.packet = std::move(tx.packet);
    rx.source = from.facts.address;
    rx.destination = to.facts.address;
    rx.entropy = tx.entropy;
    rx.tos = tx.tos;
    to.pds->on_packet(now, std::move(rx));
    ++n;
  }
  return n;
}

/// Messages from one end to the other, each until it is answered.
class Exchange {
 public:
  Exchange(End& from, End& to) : a_(from), b_(to) {}

  void deliver(std::uint32_t segments) {
    TxMessage m;
    m.token = ++token_;
    m.destination = b_.facts.address;
    m.segments = segments;
    m.ses_header_bytes = 44;
    m.segment_payload = 4096;
    m.payload_bytes = std::uint64_t{segments} * 4096;
    (void)a_.pds->submit(now_, m);
    const std::uint64_t goal = a_.ses.answered + segments;
    while (a_.ses.answered < goal) {
      now_ = now_ + base::Duration::from_us(5);
      packets_ += move_all(now_, a_, b_);
      now_ = now_ + base::Duration::from_us(5);
      move_all(now_, b_, a_);
      if (a_.pds->next_deadline() <= now_) a_.pds->on_deadline(now_);
      if (b_.pds->next_deadline() <= now_) b_.pds->on_deadline(now_);
    }
  }
  std::uint64_t packets() const { return packets_; }

 private:
  End &a_, &b_;
  Instant now_ = Instant::from_ns(1'000'000'000);
  MessageToken token_ = 0;
  std::uint64_t packets_ = 0;
};

}  // namespace uet::pds
