/// What manages keys for an endpoint: a key file, a daemon of the site, a test. The endpoint asks;
/// it never learns where keys, counters and randomness come from. [TSS 13.1]
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tss/domain_config.h"
#include "tss/kdf.h"

namespace uet::tss {

/// Counters [first, end) that no other packet under the same key has had or will have, on this host.
struct CounterRange {
  std::uint64_t first = 0, end = 0;
};

/// What people must look at. [TSS 13.1, events]
enum class Alarm : std::uint8_t {
  kCounterLow,     ///< 7/8 of the counters of the key are spent: rotate
  kCounterSpent,   ///< nothing leaves under this key any more
  kNoReservation,  ///< the counter state cannot be read or written; packets will stop leaving
  kForgedPackets,  ///< another auth_fail_threshold packets did not verify
  kDomainStopped,  ///< and nothing is accepted until a key comes or the manager asks to go on
  kPendingFlood,   ///< many openings were challenged and never came back
  kSourcesFull,    ///< a sender was refused because max_sources are known
};
std::string_view name_of(Alarm alarm);

/// A key in use, for the key log. [decision 0134]
struct KeyInUse {
  std::uint32_t sdi = 0;
  bool an = false;
  bool is_for_all = false;  ///< direct mode: any sender
  Context context;
  const DerivedKey& key;
};

/// Called on the endpoint's thread, never while a packet is sealed or opened, except for on_key().
class KeyManager {
 public:
  virtual ~KeyManager() = default;

  /// The domain as it is at the start.
  virtual DomainConfig domain() = 0;
  /// Asked once a second, never to wait: the whole domain when it has changed since the last time. Keys that were
  /// not there are installed, then packets leave under `tx_an`, then keys that are missing are wiped.
  virtual std::optional<DomainConfig> changed_domain() { return std::nullopt; }
  /// Asked once a second: true once when a domain that auth_fail_action stopped is to accept packets again. A key that comes says so, too.
  virtual bool asks_to_go_on() { return false; }
  /// `count` counters for the key, or as many as are left. Must have been made durable on return: a
  /// counter that is given out twice reveals what was encrypted under it. Nothing when there is no
  /// state for the key, or it cannot be written. [TSS 7.6]
  virtual std::optional<CounterRange> reserve(const Fingerprint& key, std::uint64_t count) = 0;
  struct Reserving {
    std::optional<CounterRange> range;
    bool is_under_way = false;  ///< ask again: nothing else is reserved for the key meanwhile
  };
  /// The same for a loop that is at work and must not wait for a file, or a daemon.
  virtual Reserving reserve_without_waiting(const Fingerprint& key, std::uint64_t count) {
    return {.range = reserve(key, count)};
  }
  /// True while there is, or soon will be, an answer to what was asked without waiting, or by changed_domain().
  virtual bool is_busy() const { return false; }
  /// Counters of the latest reservation that were never used, and never will be: the domain that had them is gone. They may be given
  /// out again where none was reserved since. The first counter of a key stays given out, so the key is not taken for a fresh one.
  virtual void give_back(const Fingerprint& key, CounterRange unused) {
    (void)key;
    (void)unused;
  }
  /// Random bytes that an attacker cannot guess.
  virtual void fill_random(std::span<std::uint8_t> out) = 0;
  virtual void on_alarm(Alarm alarm, std::uint32_t sdi) {
    (void)alarm;
    (void)sdi;
  }
  /// True: on_key() is told every key that packets are sealed or opened with.
  virtual bool wants_keys() const { return false; }
  virtual void on_key(const KeyInUse& key) { (void)key; }
};

}  // namespace uet::tss
