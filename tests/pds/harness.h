/// Two or more Pds on one virtual clock, a link that can do everything to a packet, and a SES that does as it is told.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "lib/net/heap_packet_pool.h"
#include "lib/wire/codec.h"
#include "lib/wire/pds_headers.h"
#include "pds/pds.h"
#include "tests/pds/software_profile.h"

namespace uet::pds::test {

using base::DropReason;
using base::Duration;
using base::EventId;
using wire::ControlType;
using wire::NackCode;
using wire::NextHdr;
using wire::PdsType;

inline Duration us(std::int64_t n) {
  return Duration::from_us(n);
}
inline Duration ms(std::int64_t n) {
  return Duration::from_ms(n);
}

/// One packet as it was on the wire, decoded as far as its type goes.
struct Seen {
  Instant at;
  int from = 0;
  net::FabricAddress destination;
  PdsType type{};
  std::uint8_t next_hdr = 0;
  bool syn = false, retx = false, ar = false, m = false, p = false, nt = false, isrod = false;
  std::uint16_t spdcid = 0, dpdcid = 0, psn_offset = 0, opaque = 0;
  Psn psn, clear;      // requests and control packets
  wire::AckReq req{};  // ACKs
  Psn cack, ack_psn, sack_base;
  std::uint8_t mpr = 0;
  std::uint64_t sack = 0;
  std::uint32_t rcvd = 0;
  NackCode code{};  // NACKs
  std::uint32_t payload = 0;
  ControlType control{};
  std::size_t body = 0;  // bytes behind the PDS header
  std::size_t size = 0;  // of the whole packet
  std::uint16_t entropy = 0;
  std::uint8_t tos = 0;
  bool is_request() const {
    return type == PdsType::kRudReq || type == PdsType::kRodReq || type == PdsType::kRudCcReq ||
           type == PdsType::kRodCcReq;
  }
  bool is_ack() const {
    return type == PdsType::kAck || type == PdsType::kAckCc || type == PdsType::kAckCcx;
  }
  bool is_nack() const { return type == PdsType::kNack; }
  bool is_control(ControlType t) const { return type == PdsType::kControl && control == t; }
};
Seen decode(const net::TxPacket& packet, Instant at, int from);

/// What SES got: one segment of one message.
struct Delivery {
  MessageToken token = 0;
  std::uint32_t segment = 0;
  std::size_t size = 0;
  RxHandle handle;
  Mode mode{};
};
struct Response {
  MessageToken token = 0;
  std::uint32_t segment = 0;
  std::uint8_t next_hdr = 0;
  std::vector<std::uint8_t> bytes;
};
struct Failure {
  MessageToken token = 0;
  PdsError error{};
};

/// A SES whose segments say what they are: token, segment number, and a pattern that is checked on arrival.
class ScriptedSes final : public Upper {
 public:
  static constexpr std::size_t kHeader = 20;

  std::function<Answer(const RxRequest&, const Delivery&)>
      answer;  // empty: default response at once
  std::vector<Delivery> delivered;
  std::vector<Response> responses;
  std::vector<Response> further;  // to packets that were answered before; they name no message
  std::vector<PdcRef> further_pdcs;
  std::vector<Failure> failures;
  std::vector<PdsError> gone;
  std::vector<net::FabricAddress> closed;  // peers of PDCs that ended gracefully
  std::vector<PdcRef> sent_on;             // PDC of each emitted segment
  int resumes = 0;
  std::map<std::uint32_t, std::uint32_t> fills;  // of resources, in thousandths
  std::map<MessageToken, TxMessage> messages;
  std::function<void()> on_resume_hook;
  std::function<void(MessageToken)> on_response_hook;

  static Answer respond(bool guaranteed = false, std::span<const std::uint8_t> data = {});
  static Answer later() { return Answer{.kind = Answer::Kind::kLater, .response = {}}; }
  static Answer refuse() { return Answer{.kind = Answer::Kind::kRefuse, .response = {}}; }

  std::uint32_t fill_of(std::uint32_t resource) override { return fills[resource]; }
  SegmentInfo emit_segment(MessageToken token, std::uint32_t segment, PdcRef pdc, Psn psn,
                           net::Packet& packet) override;
  Answer on_request(Instant now, const RxRequest& request) override;
  void on_response(Instant now, MessageToken token, std::uint32_t segment, std::uint8_t next_hdr,
                   std::span<const std::uint8_t> response) override;
  void on_further_response(Instant, PdcRef pdc, std::uint8_t next_hdr,
                           std::span<const std::uint8_t> response) override {
    further_pdcs.push_back(pdc);
    further.push_back({0, 0, next_hdr, {response.begin(), response.end()}});
  }
  void on_message_error(Instant now, MessageToken token, PdsError error) override {
    (void)now;
    failures.push_back({token, error});
  }
  void on_pdc_gone(Instant, PdcRef, net::FabricAddress, PdsError error) override {
    gone.push_back(error);
  }
  void on_pdc_closed(Instant, PdcRef, net::FabricAddress peer) override { closed.push_back(peer); }
  void on_resume(Instant) override {
    ++resumes;
    if (on_resume_hook) on_resume_hook();
  }

  std::vector<MessageToken> tokens_delivered() const {
    std::vector<MessageToken> out;
    for (const Delivery& d : delivered) out.push_back(d.token);
    return out;
  }
  std::size_t responses_of(MessageToken token) const {
    return static_cast<std::size_t>(std::count_if(responses.begin(), responses.end(),
                                                  [&](auto& r) { return r.token == token; }));
  }
};

struct Host {
  Host(int index, const PdsConfig& config, const cc::CcConfig& cc_config, std::uint64_t seed,
       std::size_t buffers);
  /// Another Pds takes the place of the one that it has.
  void restart(const PdsConfig& config, const cc::CcConfig& cc_config);
  int index;
  net::FabricAddress address;
  net::PortFacts facts;
  net::HeapPacketPool pool;
  base::Rng rng;
  base::Trace trace;
  ScriptedSes ses;
  std::unique_ptr<Pds> pds;
  bool is_stopped = false;
  std::uint64_t drops(DropReason r) const { return trace.drops(r); }
  std::uint64_t count(EventId id) const { return trace.count(id); }
};

/// What the link does to a packet. Changed by rules; the default is to deliver it once after the delay.
struct Fate {
  bool drop = false;
  int copies = 1;
  Duration extra_delay{};
  Duration copy_delay{};  ///< of each further copy
  bool trim = false, trim_last_hop = false, mark_ce = false;
  std::function<void(std::vector<std::uint8_t>&)> edit;
};

struct WorldOptions {
  PdsConfig pds;
  cc::CcConfig cc;
  std::vector<cc::Algorithm> algorithms;  ///< of each host; empty: that of `cc` at all
  int hosts = 2;
  std::uint64_t seed = 1;
  std::size_t buffers = 1024;
  std::size_t burst = 32;  ///< packets that are asked for at a time
  WorldOptions() {
    pds.pdc_idle_time = Duration{};  // tests that want idle close say so
    pds.pdcid_quarantine = ms(1);
    cc.config_base_rtt = us(20);
    cc.link_rate = base::BitRate::from_gbps(100);
  }
};
/// What real endpoints run with, idle close included.
inline WorldOptions software_world(std::function<void(WorldOptions&)> change = [](auto&) {}) {
  WorldOptions o;
  o.pds = software_profile();
  change(o);
  return o;
}

class World {
 public:
  explicit World(const WorldOptions& options = {});

  Host& host(int i) { return *hosts_[static_cast<std::size_t>(i)]; }
  Instant now() const { return now_; }
  Duration delay = us(5);

  /// Called for every packet put on the link, in order of rules; may change its fate.
  using Rule = std::function<void(const Seen&, Fate&)>;
  void add_rule(Rule rule) { rules_.push_back(std::move(rule)); }
  void clear_rules() { rules_.clear(); }
  /// Drops the n-th (from 1) packet from `from` that matches, once.
  void drop_nth(int from, int n, std::function<bool(const Seen&)> match);

  TxMessage message(int to, std::uint32_t segments = 1, std::uint32_t segment_payload = 1000,
                    Mode mode = Mode::kRud);
  MessageToken send(int from, const TxMessage& m, SubmitResult* result = nullptr);
  MessageToken send(int from, int to, std::uint32_t segments = 1, std::uint32_t payload = 1000,
                    Mode mode = Mode::kRud) {
    return send(from, message(to, segments, payload, mode));
  }

  void pump();               ///< everything that may leave now leaves
  void run_for(Duration d);  ///< virtual time passes
  void run_until_quiet(Duration at_most = Duration::from_seconds(20));
  void step();  ///< to the next event
  /// The process of this host is stopped: its clock goes on, packets wait in its port, nothing is done. Then it goes on.
  void stop_process(int i) { host(i).is_stopped = true; }
  void continue_process(int i);

  /// Puts a packet in front of host `to` as if it came from `source`.
  template <typename H>
  void inject(int to, const net::FabricAddress& source, const H& header,
              std::span<const std::uint8_t> body = {}, std::uint8_t tos = 0) {
    std::vector<std::uint8_t> bytes(H::kSize + body.size());
    wire::emit(header, bytes.data());
    if (!body.empty()) std::memcpy(bytes.data() + H::kSize, body.data(), body.size());
    inject_bytes(to, source, bytes, tos);
  }
  /// `is_overtaken`: as RxPacket has it.
  void inject_bytes(int to, const net::FabricAddress& source, std::span<const std::uint8_t> bytes,
                    std::uint8_t tos = 0, bool is_overtaken = false);

  std::vector<Seen> log;
  std::vector<Seen> sent(int from, std::function<bool(const Seen&)> match) const;
  std::vector<Seen> requests(int from) const {
    return sent(from, [](const Seen& s) { return s.is_request(); });
  }
  std::vector<Seen> acks(int from) const {
    return sent(from, [](const Seen& s) { return s.is_ack(); });
  }
  std::vector<Seen> nacks(int from) const {
    return sent(from, [](const Seen& s) { return s.is_nack(); });
  }
  std::vector<Seen> controls(int from, ControlType t) const {
    return sent(from, [t](const Seen& s) { return s.is_control(t); });
  }
  std::vector<std::uint8_t> segment_bytes(MessageToken token, std::uint32_t segment,
                                          std::size_t payload) const;

  std::function<void()> after_step;  ///< invariants
  MessageToken next_token = 1;

 private:
  struct InFlight {
    Instant at;
    std::uint64_t order;
    int to;
    int from;
    std::vector<std::uint8_t> bytes;
    std::uint16_t entropy;
    std::uint8_t tos;
    bool operator>(const InFlight& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  Instant next_event() const;
  std::vector<InFlight> waiting_;  // at hosts that are stopped
  void put_on_link(int from, net::TxPacket packet);
  void deliver(InFlight packet);

  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<net::TxPacket> leaving_;
  Instant now_ = Instant::from_ns(1'000'000'000);
  std::vector<Rule> rules_;
  std::vector<InFlight> in_flight_;  // heap, earliest on top
  std::uint64_t order_ = 0;
};

}  // namespace uet::pds::test
