/// A test tool: wraps any port and drops, delays, reorders, duplicates and corrupts packets by seed (FI_UET_IMPAIR).
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/trace.h"
#include "lib/net/port_wrapper.h"

namespace uet::net {

/// What happens to the packets of one direction. Probabilities are per packet, from 0 to 1.
struct Impairment {
  double loss = 0;
  double reorder = 0;  ///< held back until a few later ones have passed
  double duplicate = 0;
  double corrupt = 0;     ///< one bit is flipped
  base::Duration delay;   ///< of every packet
  base::Duration jitter;  ///< more delay, uniform from 0 to this
};

struct ImpairConfig {
  Impairment rx;
  Impairment tx;
  std::uint64_t seed = 1;

  /// "loss=0.01,reorder=0.05,duplicate=0.01,corrupt=0.001,delay=100us,jitter=50us,seed=7". Plain keys and dir=rx|tx|both
  /// decide for both directions or for one; rx_loss=, tx_delay= and so on for exactly one. False: `error` says what is
  /// wrong and what is known.
  static bool parse(const std::string& text, ImpairConfig& config, std::string& error);
  std::string to_string() const;
};

struct ImpairCounters {
  std::uint64_t lost = 0;
  std::uint64_t reordered = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t delayed = 0;
};

/// Is told of every packet that the tool loses, before it is gone.
class ImpairTap {
 public:
  virtual ~ImpairTap() = default;
  virtual void on_lost(base::Instant now, const RxPacket& packet) = 0;
  /// `packet` is an element of what was given to send().
  virtual void on_lost(base::Instant now, const TxPacket& packet) = 0;
};

/// One thread, like the port inside. Holds back at most max_held packets per direction; when so many wait, a packet is
/// neither delayed nor reordered.
class ImpairPort final : public PortWrapper {
 public:
  static constexpr std::size_t kMaxHeld = 1024;

  ImpairPort(std::unique_ptr<Port> inner, const ImpairConfig& config, base::Trace& trace);

  std::size_t receive(base::Instant now, std::span<RxPacket> out) override;
  std::size_t send(base::Instant now, std::span<TxPacket> in) override;
  base::Instant next_deadline() const override;
  void on_deadline(base::Instant now) override;

  /// `tap` must outlive the port, or be taken away with null.
  void set_tap(ImpairTap* tap) { tap_ = tap; }

  const ImpairCounters& rx_counters() const { return rx_.counters; }
  const ImpairCounters& tx_counters() const { return tx_.counters; }

 private:
  template <typename P>
  struct Held {
    base::Instant due;
    std::uint64_t order = 0;  ///< breaks ties, so that equal delays keep the order
    P packet;
  };
  /// One direction: its dice and the packets that wait, as a heap by time.
  template <typename P>
  struct Direction {
    Impairment what;
    base::Rng rng;
    ImpairCounters counters;
    std::vector<Held<P>> held;
    std::uint64_t order = 0;

    base::Instant next_due() const {
      return held.empty() ? base::Instant::never() : held.front().due;
    }
  };

  template <typename P>
  bool survives(base::Instant now, Direction<P>& direction, P& packet);
  template <typename P>
  base::Duration hold_time(Direction<P>& direction);
  template <typename P>
  void hold(base::Instant due, Direction<P>& direction, P packet);
  template <typename P>
  P take_due(Direction<P>& direction);
  template <typename P>
  P copy_of(const P& packet);

  void flush_tx(base::Instant now);

  base::Trace& trace_;
  ImpairTap* tap_ = nullptr;
  Direction<RxPacket> rx_;
  Direction<TxPacket> tx_;
};

/// The impairment of `port` itself or of a port that it wraps; null when there is none.
const ImpairPort* impairment_of(const Port& port);

/// What FI_UET_IMPAIR does to a port: nothing when `text` is empty, else the port is wrapped and a line on stderr says so,
/// because a forgotten test setting would look like a bad network. Null: `error` says what is wrong with `text`.
std::unique_ptr<Port> impair(std::unique_ptr<Port> port, const std::string& text,
                             base::Trace& trace, std::string& error);

}  // namespace uet::net
