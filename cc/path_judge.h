/// Estimator of the paths of one CCC: turns ACK, NACK and loss signals into samples of the path that each packet took. [CC 3.5, 7]
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "cc/path_selector.h"
#include "cc/path_table.h"
#include "cc/signals.h"

namespace uet::cc {

/// Owns the paths and the way they are chosen. Does not know windows or credit.
class PathJudge {
 public:
  PathJudge(const CcConfig& config, bool sprayed, base::Rng& rng, base::Trace& trace);

  PathTable& table() { return table_; }
  const PathTable& table() const { return table_; }
  /// The path of the next packet: it is that of the one before, while that is well and the bytes of the run have not passed.
  /// `complete` fills in what only a choice asks for.
  template <typename Complete>
  std::uint32_t next(PathRequest& request, ByteCount bytes, Complete&& complete) {
    const bool is_new_turn = std::exchange(turn_, request.now) != request.now;
    const bool is_worn = is_new_turn && run_left_ - bytes < worn_below_;
    if (run_left_ < bytes || is_worn || !table_.usable(run_path_, request)) {
      complete(request);
      run_left_ = clean_answers_ == kCalmAfter ? calm_run_bytes_ : run_bytes_;
      worn_below_ = run_left_ - worn_by_;
      run_path_ = selector_->next(request);
    }
    run_left_ -= bytes;
    return run_path_;
  }
  void on_sent(Instant now, std::uint16_t entropy, bool asks) {
    if (const auto index = table_.find(entropy)) table_.on_sent(now, *index, asks);
  }

  /// Before the ACK that tells of it: this packet is acknowledged for the first time, and may be the one that the ACK names.
  void on_first_ack(Instant now, Transmission& t, Duration base_rtt) {
    if (!note_delivery(t, base_rtt)) return;
    // Marked packets are acknowledged at once and by name [CC 9], so one that an ACK covers without naming it was not
    // marked: a good sample of its path. This gives one sample per packet with coalesced ACKs, too.
    if (maybe_named_)
      feed_good(now, t.entropy);
    else
      maybe_named_ = t.entropy;
  }
  /// The packet is known to have arrived, and no ACK names it.
  void on_arrived(Instant now, Transmission& t, Duration base_rtt);
  /// `rtt` of the packet that the ACK answers, if there is no doubt which copy; `slow_above`: a round trip that is worth leaving the
  /// path for; `usual_rtt` stands for one that is not known.
  void on_ack(Instant now, const AckSignal& ack, std::optional<Duration> rtt, Duration slow_above,
              Duration base_rtt, Duration usual_rtt);
  void on_nack(Instant now, const Transmission& t, const NackSignal& nack, Duration base_rtt);
  void on_loss(Instant now, const Transmission& t, Duration base_rtt);

 private:
  void feed_good(Instant now, std::uint16_t entropy) {
    if (uses_good_news_) tell_good(now, entropy);
  }
  void tell_good(Instant now, std::uint16_t entropy);
  void feed(Instant now, std::uint16_t entropy, PathFeedback kind, Duration base_rtt,
            Instant sent_at = {});
  /// False when it says nothing more of its path.
  bool note_delivery(Transmission& t, Duration base_rtt);
  void note_answer(Instant now, std::uint16_t entropy, Instant sent_at);

  /// ACKs without a mark, with no NACK of a trimmed packet and no loss between them, after which runs are long: about a megabyte where there
  /// is an ACK for each 16 KiB. [decision 127]
  static constexpr std::uint32_t kCalmAfter = 64;

  PathTable table_;
  std::unique_ptr<PathSelector> selector_;
  const bool uses_good_news_;
  const ByteCount worn_by_;  ///< a run that has carried so much is not gone on with in a later turn
  const ByteCount run_bytes_;
  const ByteCount calm_run_bytes_;
  std::uint32_t clean_answers_ = 0;  ///< up to kCalmAfter
  ByteCount run_left_ = 0;           ///< that may still follow the last packet on its path
  std::uint32_t run_path_ = 0;
  ByteCount worn_below_ = -1;  ///< with less than this left, a later turn begins another
  Instant turn_;               ///< of the latest packet
  /// Entropy value of the first PSN acknowledged since the last ACK: the ACK may name it, and say whether it was marked.
  std::optional<std::uint16_t> maybe_named_;
};

// A packet sent twice does not say which path was the good one.
inline bool PathJudge::note_delivery(Transmission& t, Duration base_rtt) {
  if (t.is_delivery_known) return false;
  t.is_delivery_known = true;
  const auto index = table_.find(t.entropy);
  if (!index) return false;
  table_.on_delivered(*index, t.sent_at, base_rtt);
  return t.resent == 0;
}

}  // namespace uet::cc
