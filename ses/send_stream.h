/// Ordered sends that take all paths: their numbers, and what the target is known to have taken of them. [decision 141]
#pragma once

#include "lib/base/rng.h"
#include "ses/sequence.h"

namespace uet::ses {

struct TxOp;

/// Names of streams: 24 bits, never 0. Random, so they are unlike those of a process that had our address before, and the one that a
/// peer is shown says nothing of those that others are shown.
class StreamNames {
 public:
  explicit StreamNames(base::Rng& rng) : rng_(rng) {}
  std::uint32_t take();

 private:
  base::Rng& rng_;
};

/// The numbered messages to one space of a peer, of all local endpoints together.
class SendStream {
 public:
  /// The target knows no numbers, or has no place for this stream: ordered sends go by ROD.
  bool is_refused() const { return is_refused_; }
  /// The target has taken a number of it, so what it refuses is not the number.
  bool is_known() const { return newest_taken_ != kNoneTaken; }
  /// No message may join: the target need not know numbers that are further ahead of what it waits for.
  bool is_full() const;

  /// Gives the message its number, or leaves it the one it has, and writes into it how far the oldest message without an answer is
  /// behind. At each attempt: the number stays, the distance does not.
  void join(TxOp& op, StreamNames& names);
  /// The target has it, or will never wait for it again. True when others may join that could not.
  bool leave(TxOp& op);
  /// The target took it, perhaps before its turn. The same of leave().
  bool take(TxOp& op);
  /// The message ends without having been taken, as far as is known: may the target hold what came behind it, and wait? A newest
  /// message without older ones leaves no trace: the next one says that everything before it is over.
  bool leaves_gap(const TxOp& op) const;
  /// The target refused the number of a message. Once none is on its way, and none that was taken waits for one that was refused,
  /// the stream ends.
  void on_refused();

 private:
  static constexpr std::uint32_t kNoneTaken = kNumberMask;

  bool reaches_bound(const TxOp& oldest) const;

  std::uint32_t id_ = 0;  ///< 0: none yet
  std::uint32_t next_ = 0;
  std::uint32_t newest_taken_ = kNoneTaken;  ///< numbers up to here: the target may hold them
  TxOp* first_ = nullptr;                    ///< those without an answer, by number
  TxOp* last_ = nullptr;
  bool is_refused_ = false;
};

}  // namespace uet::ses
