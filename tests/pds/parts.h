/// What parts of packet delivery need to be built alone: an environment, a SES that answers nothing, and a PDC in no table.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "lib/net/heap_packet_pool.h"
#include "pds/congestion.h"
#include "pds/environment.h"
#include "pds/scheduler.h"
#include "pds/send_window.h"

namespace uet::pds::test {

inline constexpr Instant kNow = Instant::from_ns(1'000'000'000);
inline net::FabricAddress address_of(std::uint32_t n) {
  return net::FabricAddress::from_v4(0x0a00'0000u + n);
}

/// Answers nothing, and remembers what it hears of the end of messages and PDCs.
class SilentSes final : public Upper {
 public:
  SegmentInfo emit_segment(MessageToken, std::uint32_t, PdcRef, Psn, net::Packet&) override {
    return {};
  }
  Answer on_request(Instant, const RxRequest&) override { return {}; }
  void on_response(Instant, MessageToken, std::uint32_t, std::uint8_t,
                   std::span<const std::uint8_t>) override {}
  void on_message_error(Instant, MessageToken token, PdsError error) override {
    failed.emplace_back(token, error);
  }
  void on_pdc_gone(Instant, PdcRef, net::FabricAddress, PdsError error) override {
    gone.push_back(error);
  }
  void on_pdc_closed(Instant, PdcRef, net::FabricAddress) override { ++closed; }
  void on_resume(Instant) override { ++resumes; }
  std::uint32_t yield_locks(Instant, PdcRef) override { return std::exchange(yields, 0); }
  std::vector<std::pair<MessageToken, PdsError>> failed;
  std::vector<PdsError> gone;
  std::uint32_t yields = 0;  ///< locks that it lets go of at the next call
  int closed = 0;
  int resumes = 0;
};

inline net::PortFacts facts_of_port() {
  net::PortFacts facts;
  facts.address = address_of(1);
  return facts;
}

struct Parts {
  explicit Parts(const PdsConfig& config = {}, const cc::CcConfig& cc_config = {})
      : env(config, cc_config, facts_of_port(), pool, rng, trace, ses),
        window(env),
        congestions(cc_config, 4, rng, trace, ses, env.hash_key) {
    pdc.tx.ring.further_of_peer = &further_blocks;
  }
  ~Parts() {
    if (Congestion* congestion = pdc.tx.cc.if_any()) {
      if (pdc.ready_hook.is_linked()) congestion->ready.erase(congestion->ready.iterator_to(pdc));
      scheduler.forget(*congestion);
      pdc.tx.cc.detach();
      congestions.detach(*congestion);
    }
    scheduler.forget(pdc);
  }

  /// An established PDC that sends from `start` on, with a CCC.
  void establish(bool is_initiator, Mode mode = Mode::kRud, Psn start = Psn(1000)) {
    pdc.peer = address_of(2);
    pdc.id = 7;
    pdc.peer_id = 9;
    pdc.mode = mode;
    pdc.is_initiator = is_initiator;
    pdc.is_proven = !is_initiator;
    pdc.state = PdcState::kEstablished;
    pdc.start = start;
    pdc.tx.next = pdc.tx.left_edge = pdc.tx.rtx_from = pdc.tx.in_flight_from = start;
    pdc.tx.ask_from = pdc.tx.ask_end = start;
    pdc.tx.cack = start - 1;
    pdc.tx.mp_range = 128;
    RxHalf& rx = pdc.rx;
    rx.edge = rx.cack = rx.cleared = rx.max_rcvd = rx.max_ar = rx.answered = rx.last_control =
        start - 1;
    rx.granted = env.limits.window;
    Congestion* congestion = congestions.attach(kNow, pdc.peer, 0, mode == Mode::kRud);
    ASSERT_NE(congestion, nullptr);
    pdc.tx.cc.attach(*congestion);
  }

  net::HeapPacketPool pool{64, 4200};
  base::Rng rng{1};
  base::Trace trace;
  SilentSes ses;
  Environment env;
  Scheduler scheduler;
  SendWindow window;
  CongestionTable congestions;
  std::uint32_t further_blocks = 0;
  Pdc pdc;
};

}  // namespace uet::pds::test
