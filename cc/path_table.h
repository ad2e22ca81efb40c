/// The set of entropy values of one CCC: what is known of each path, and which may be used now.
/// [CC 7.1, 7.7, 7.8]
///
/// Knows nothing of the order in which paths are taken; that is a PathSelector. Index i names the
/// entropy value `base | i` and, with several source ports, plane i mod planes, for the life of the
/// CCC.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include "cc/cc_config.h"
#include "lib/base/rng.h"
#include "lib/base/trace.h"
#include "lib/base/units.h"

namespace uet::cc {

using base::Duration;
using base::Instant;

enum class PathFeedback : std::uint8_t { kGood, kEcn, kNacked, kTimeout };

/// What a selector must respect for one packet.
struct PathRequest {
  Instant now;
  std::uint8_t free_planes = 1;  ///< ports that can take a packet
  std::optional<std::uint16_t>
      avoid_entropy;  ///< the path on which this packet was lost by timeout
  std::uint32_t open_packets = 0;
  Duration base_rtt;
  std::int64_t window_packets = 0;
};

enum class PathState : std::uint8_t {
  kGood,
  kEvicted,    ///< lost something, or its port lost the link: not used for a while
  kReturning,  ///< one packet may try, or is trying, whether it works again
};
/// "good", "evicted", "returning".
std::string_view name_of(PathState state);

class PathTable {
 public:
  struct Entry {
    Instant evicted_until;  ///< meaningful while evictions > 0
    Instant first_timeout;  ///< start of the current run of timeouts
    Instant arrived_sent;   ///< when the youngest packet that is known to have arrived was sent
    Instant answered_sent;  ///< when the youngest packet was sent whose own answer has come back
    Instant asked_since;    ///< an answer was asked for then, and none has come since; zero: no
    Instant rtt_at;         ///< when `rtt_ns` was sampled
    std::uint32_t rtt_ns = 0;
    std::uint32_t sent = 0, marks = 0, trims = 0, losses = 0;
    std::uint8_t penalty = 0;
    std::uint8_t evictions = 0;   ///< in a row; 0: in use
    std::uint8_t timeouts = 0;    ///< in a row, without anything delivered between
    std::uint8_t silent = 0;      ///< packets delivered in a row without an answer of their own
    bool on_probation = false;    ///< one packet is out to see whether the path works again
    bool is_return_dead = false;  ///< delivers, but its answers do not come back
  };

  /// `size` is a power of two. `evicts` is false where an entropy value does not name a path, or
  /// feedback is ignored.
  PathTable(const CcConfig& config, std::uint32_t size, bool evicts, base::Rng& rng,
            base::Trace& trace);

  std::uint32_t size() const { return size_; }
  Entry& entry(std::uint32_t index) { return entries_[index]; }
  const Entry& entry(std::uint32_t index) const { return entries_[index]; }
  std::uint16_t entropy(std::uint32_t index) const {
    return static_cast<std::uint16_t>(base_ | index);
  }
  std::uint8_t plane(std::uint32_t index) const {
    return planes_ == 1 ? std::uint8_t{0}
                        : static_cast<std::uint8_t>((index + plane_shift_) % planes_);
  }
  /// Index of an entropy value of this set, nothing for another's.
  std::optional<std::uint32_t> find(std::uint16_t entropy) const {
    const std::uint32_t mask = size_ - 1;
    if ((entropy & ~mask) != base_) return std::nullopt;
    return entropy & mask;
  }

  /// May this path carry the packet? Its port is free, it is not evicted, and the packet was not
  /// lost on it.
  bool usable(std::uint32_t index, const PathRequest& request) const {
    if (!port_is_free(index, request)) return false;
    if (request.avoid_entropy && entropy(index) == *request.avoid_entropy) return false;
    return !is_evicted(index, request.now) && is_trusted(index, request.now);
  }
  /// For some time after a loss only paths are used on which a packet sent after the lost one has been acknowledged by
  /// name: path failures are correlated, and each path tried in vain costs a packet. ACKs return by the path of the same
  /// entropy value, which may fail alone; without them a full window waits for a timeout. So a path of which only
  /// deliveries are known gets one packet, which asks for an ACK.
  bool is_trusted(std::uint32_t index, Instant now) const {
    if (now >= cautious_until_) return true;
    const Entry& e = entries_[index];
    if (e.answered_sent >= broken_since_) return true;
    return e.arrived_sent >= broken_since_ && e.asked_since == Instant();
  }
  /// The packet that takes this path shall be acknowledged by name.
  bool wants_answer(std::uint32_t index, Instant now) const;
  /// How many of the first `size` paths may be used now.
  std::uint32_t usable_among(std::uint32_t size, const PathRequest& request) const;
  bool port_is_free(std::uint32_t index, const PathRequest& request) const {
    return ((request.free_planes >> plane(index)) & 1) != 0;
  }
  PathState state(std::uint32_t index, Instant now) const {
    const Entry& e = entries_[index];
    if (e.evictions == 0) return PathState::kGood;
    const bool may_try = ((planes_up_ >> plane(index)) & 1) != 0 && now >= e.evicted_until;
    return e.on_probation || may_try ? PathState::kReturning : PathState::kEvicted;
  }
  bool is_evicted(std::uint32_t index, Instant now) const {
    const Entry& e = entries_[index];
    return e.evictions > 0 && now < e.evicted_until;
  }

  /// The next path from `start` on that fits the request; failing that the one with the latest good
  /// sample among those that a fresh loss makes doubtful, then among the evicted ones, then any whose port is free.
  std::uint32_t best_from(std::uint32_t start, const PathRequest& request) const;

  /// A packet takes this path, and asks to be acknowledged by name or not.
  void on_sent(Instant now, std::uint32_t index, bool asks = false) {
    Entry& e = entries_[index];
    count(e.sent);
    if (asks || is_cautious_ || e.is_return_dead || e.evictions != 0) watch_sent(now, index, asks);
  }
  /// `sent_at` of a lost packet, zero when it is not known.
  void on_feedback(Instant now, std::uint32_t index, PathFeedback kind, Duration base_rtt,
                   Instant sent_at = {});
  void note_rtt(Instant now, std::uint32_t index, Duration rtt);
  /// Of the paths that may be used and were sampled since then, the one with the shortest round trip.
  std::optional<std::uint32_t> fastest_since(Instant since, Instant now) const;
  /// Some packet is known to have arrived over this path.
  void on_delivered(std::uint32_t index, Instant sent_at, Duration base_rtt) {
    Entry& e = entries_[index];
    e.arrived_sent = std::max(e.arrived_sent, sent_at);
    // What left before the timeouts began says nothing about the path since.
    if (e.timeouts > 0 && sent_at > e.first_timeout) e.timeouts = 0;
    if (evicts_ && size_ > 1) watch_delivered(e, sent_at, base_rtt);
  }
  /// The answer to a packet has come back over this path: it works in both directions.
  void on_answered(Instant now, std::uint32_t index, Instant sent_at);

  /// Paths of a plane that lost its link are evicted; when it is back they return with one packet
  /// each.
  void on_planes_changed(Instant now, std::uint8_t up);

  /// Planes with a link on which a path is neither evicted nor, while a loss is fresh, untrusted.
  std::uint8_t healthy_planes(Instant now) const;

  /// Single path: moves the whole set (of one) to another random entropy value, and to the next
  /// port out of `free_planes`.
  void rebase(base::Rng& rng, std::uint8_t free_planes);

  std::uint32_t evicted() const { return evicted_; }

 private:
  static void count(std::uint32_t& counter) {
    if (counter != std::numeric_limits<std::uint32_t>::max()) ++counter;
  }
  void watch_sent(Instant now, std::uint32_t index, bool asks);
  static void watch_delivered(Entry& e, Instant sent_at, Duration base_rtt);
  void on_timeout(Instant now, std::uint32_t index, Duration base_rtt, Instant sent_at);
  void be_cautious(Instant now, Instant sent_at);
  void end_caution(Instant now);
  void evict(Instant now, std::uint32_t index);
  void restore(Instant now, std::uint32_t index);
  void release_oldest(Instant now);
  /// Not more than three quarters of the set may be evicted, or, with several planes, of
  /// the best plane: a whole plane may die. [CC 7.7, 7.8]
  bool too_many_evicted(std::uint32_t more) const;
  std::uint8_t best_plane() const;
  std::uint32_t paths_of(std::uint8_t plane) const {
    return size_ / planes_ + (plane < size_ % planes_ ? 1 : 0);
  }
  void count_evicted(std::uint32_t index, int by) {
    evicted_ += static_cast<std::uint32_t>(by);
    evicted_of_[plane(index)] += static_cast<std::uint32_t>(by);
  }
  bool is_up(std::uint32_t index) const { return ((planes_up_ >> plane(index)) & 1) != 0; }

  const CcConfig& config_;
  base::Trace& trace_;
  std::unique_ptr<Entry[]> entries_;
  std::uint32_t size_;
  std::uint32_t evicted_ = 0;
  Instant broken_since_;    ///< a packet sent then was lost with its path
  Instant cautious_until_;  ///< so long, only paths that delivered since are trusted
  bool is_cautious_ = false;
  std::uint16_t base_ = 0;
  std::uint8_t planes_;
  std::uint8_t planes_up_ = 0xff;
  std::array<std::uint32_t, 8> evicted_of_{};  ///< by plane
  std::uint8_t plane_shift_ = 0;               ///< only a set of one moves between planes
  bool evicts_;
};

}  // namespace uet::cc
