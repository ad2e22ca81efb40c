/// The store of responses at a destination: who may keep how many, and what is done about a source that does not clear.
/// See docs/decisions/0042 and 0101. [PDS 9.4, 11]
#pragma once

#include "pds/environment.h"
#include "pds/peer_shares.h"
#include "pds/response_store.h"
#include "pds/scheduler.h"

namespace uet::pds {

class KeptResponses : Part {
 public:
  KeptResponses(Environment& env, Scheduler& scheduler)
      : Part(env),
        scheduler_(scheduler),
        store_(config_.gtd_store_max, config_.ack_queue_max, config_.max_ack_data_size,
               env.hash_key),
        peers_(limits_.max_pdc, env.hash_key) {}

  ResponseStore& store() { return store_; }
  const ResponseStore& store() const { return store_; }
  PeerShares& peers() { return peers_; }
  AnswerShare share_of(const Pdc& pdc);

  /// The PDC keeps nothing, and all PDCs together keep less than the smallest share of the store: every PDC has room for one more.
  bool is_plenty(const Pdc& pdc) const {
    return pdc.rx.kept == 0 && store_.kept() < config_.gtd_store_max / 4;
  }
  /// SES may answer `psn` with something to keep: true when there is room for it.
  bool has_room(const Pdc& pdc, Psn psn);
  /// Unproven peers hold all that they may hold together.
  bool is_share_of_unproven_used(const Pdc& pdc) {
    const AnswerShare share = share_of(pdc);
    return share.of_unproven >= share.unproven_share();
  }
  /// One more or one less of this PDC is kept.
  void count(Pdc& pdc, std::int32_t change);
  /// The peer has proved itself; to be called while the PDC still counts as unproven.
  void on_proven(Pdc& pdc);
  /// PDCs of unproven peers for which something is kept, in the order in which that began.
  PdcKeeperList& unproven_keepers() { return unproven_keepers_; }
  std::uint32_t of_unproven() const { return of_unproven_; }

  /// Room is short for this PDC, and it holds responses: its source is asked to clear them.
  void ask_for_clear(Instant now, Pdc& pdc);
  /// False when the source hears us and clears nothing of what it can: the PDC has to end.
  [[nodiscard]] bool on_clear_request_timer(Instant now, Pdc& pdc);

 private:
  AnswerShare share_before(const Pdc& pdc);
  bool may_use_reserve(const Pdc& pdc, Psn psn) const;
  static bool can_clear_something(const Pdc& pdc);
  bool leaves_gap_open(Instant now, const Pdc& pdc) const;
  Duration clear_patience(unsigned asks) const;

  Scheduler& scheduler_;
  ResponseStore store_;
  PeerShares peers_;
  std::uint32_t of_unproven_ = 0;
  PdcKeeperList unproven_keepers_;
};

}  // namespace uet::pds
