/// A rough network around one CCC: several PDCs, loss, reordering, duplication, trimming, marks,
/// lost and plain ACKs, lost NACKs, credits and requests, spurious loss detection, aborted PDCs.
/// Keeps its own books and compares.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <vector>

#include "cc/ccc.h"
#include "cc/credit_pacer.h"
#include "cc/receiver.h"

namespace uet::cc::model {

struct Faults {
  double data_loss = 0, ack_loss = 0, credit_loss = 0;
  double trim = 0, last_hop = 0, mark = 0, duplicate = 0;
  double plain_ack = 0;      ///< ACKs without congestion state
  double spurious_loss = 0;  ///< per ACK: an open packet is declared lost for nothing
  double abort = 0;          ///< per ACK: a PDC dies with data open
  double penalty = 0;
};

struct Scenario {
  CcConfig config;
  bool sprayed = true;
  Faults faults;
  std::uint64_t seed = 1;
  int pdcs = 3;
  int messages = 30;  ///< each on some PDC, of 1 to 64 packets
  int psn_window = 48;
  std::uint64_t max_events = 3'000'000;
};

struct Outcome {
  std::uint64_t events = 0, sent = 0, resent = 0, digest = 0;
  bool finished = false;
};

class Run {
 public:
  explicit Run(const Scenario& scenario);
  Outcome play();

 private:
  enum class Kind : std::uint8_t { kData, kTrimmed, kAck, kNack, kCredit, kRequest, kTick };
  struct Event {
    Instant at;
    std::uint64_t order = 0;
    Kind kind{};
    std::uint32_t incarnation = 0;
    std::uint32_t psn = 0;
    std::uint64_t sack = 0;
    std::uint32_t cack = 0, units = 0;  ///< rcvd, credit or target
    bool ecn = false, retx = false, plain = false, last_hop = false, has_target = false;
    std::uint8_t penalty = 0;
    bool operator<(const Event& o) const { return at != o.at ? at > o.at : order > o.order; }
  };
  struct Pdc {
    std::uint32_t incarnation = 0;
    PdcShare share;
    std::deque<Transmission> records;  ///< [base, base + size)
    std::uint32_t base = 0;
    std::deque<ByteCount> waiting;  ///< sizes of packets not yet sent
    // Destination.
    std::vector<bool> received;
    std::uint32_t cumulative = 0;
    ByteCount received_bytes = 0;
    // Our own books.
    ByteCount seen_bytes = 0, acked_bytes = 0, best_known = 0;
    std::uint32_t seen_units = 0;
  };

  void push(Event e, double loss);
  Pdc* find(std::uint32_t incarnation);
  void offer_message();
  void send_all();
  bool send_one();
  void send_packet(Pdc& pdc, Transmission& t, std::uint32_t psn, ByteCount bytes, bool resend);
  void at_destination(const Event& e);
  void at_source(const Event& e);
  void on_ack(Pdc& pdc, const Event& e);
  void on_tick();
  void forget_acked(Pdc& pdc);
  void close_if_done(Pdc& pdc, bool abort);
  void check();
  void digest(std::uint64_t value) {
    outcome_.digest = (outcome_.digest ^ value) * 0x100000001b3ULL;
  }
  Duration delay() { return Duration::from_ns(4000 + rng_.below(9000)); }

  Scenario scenario_;
  base::Rng rng_, ccc_rng_;
  base::Trace trace_{64};
  Instant now_ = Instant::from_ns(1'000'000);
  std::unique_ptr<Ccc> ccc_;
  CreditPacer pacer_;
  std::deque<Pdc> pdcs_;
  std::priority_queue<Event> events_;
  std::uint64_t order_ = 0;
  std::uint32_t next_incarnation_ = 1;
  int messages_left_;
  std::size_t turn_ = 0;
  Duration last_base_rtt_;
  Outcome outcome_;
};

}  // namespace uet::cc::model
