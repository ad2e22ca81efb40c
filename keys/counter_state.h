/// Which packet counters of each key this host has given away, on disk. [TSS 7.6]
///
/// One file for each key in a folder of mode 0700 (made so; one that others can write in is refused), named after the key's fingerprint. Processes take
/// their reservations under a lock on it, so two that have the same key never share a counter,
/// whatever their addresses; a counter that was reserved is never given out again, also after a crash.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/result.h"
#include "tss/key_manager.h"

namespace uet::keys {

class CounterState {
 public:
  explicit CounterState(std::string folder) : folder_(std::move(folder)) {}

  /// Makes the folder if need be, and the state of a key that this host never had. True when it was
  /// made now; false when it is there, or with `error` set.
  bool create(const tss::Fingerprint& key, std::string& error);
  /// True when there is no state of the key; false also when that cannot be known.
  bool is_missing(const tss::Fingerprint& key) const;
  /// Marks the key as never to be used again on this host, also one whose state is missing. Empty, or what went wrong.
  std::string retire(const tss::Fingerprint& key);
  /// Goes on where the folder of `old`, another one, stands with a key, which gives no more counters of it from then on. Empty, or
  /// what went wrong.
  std::string take_over(const tss::Fingerprint& key, const CounterState& old);
  struct Reservation : tss::CounterRange {
    std::string note;  ///< what the owner has to be told although there are counters; mostly empty
  };
  /// `count` counters, or what is left of them. On disk when this returns. [TSS 7.6]
  ///
  /// When one of the two records of a key is damaged, it may have been the newer one: counters go on behind all that it can have said.
  base::Result<Reservation, std::string> reserve(const tss::Fingerprint& key, std::uint64_t count);
  /// Takes counters back that were reserved and never used, when they are the last ones that were given out; the very first stays given
  /// out. False when they are not, another process has the state just then, or it cannot be written; then they are lost. On disk when this returns.
  bool give_back(const tss::Fingerprint& key, tss::CounterRange unused);

  struct Status {
    std::uint64_t reserved = 0;  ///< counters below this were given away
    bool is_retired = false;
    std::string moved_to;  ///< the folder that has the counters now: retired in this one alone
    std::string note;      ///< as of a reservation
  };
  base::Result<Status, std::string> status(const tss::Fingerprint& key) const;

 private:
  std::string path_of(const tss::Fingerprint& key) const;
  bool make(const tss::Fingerprint& key, bool is_retired, std::string& error);
  base::Result<Reservation, std::string> change(const tss::Fingerprint& key, std::uint64_t count,
                                                bool retire);
  std::string why_closed(const tss::Fingerprint& key) const;
  std::string why_damaged(const tss::Fingerprint& key) const;
  std::string why_retired(const tss::Fingerprint& key, const std::string& moved_to) const;
  std::string note_of_damage(const tss::Fingerprint& key, std::uint64_t at) const;
  std::string folder_;
};

/// The first four bytes of a fingerprint: enough for people to compare. [TSS 13.2]
std::string short_name(const tss::Fingerprint& key);

}  // namespace uet::keys
