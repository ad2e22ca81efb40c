/// One fabric endpoint: puts port, security, PDS and SES together and turns the loop.
///
/// Everything that users of the library (the provider, the tools, the simulator) need starts here.
/// One thread.
#pragma once

#include <cstdint>
#include <memory>

#include "cc/cc_config.h"
#include "lib/base/rng.h"
#include "lib/base/trace.h"
#include "lib/base/units.h"
#include "lib/net/port.h"
#include "lib/wire/pds_headers.h"
#include "lib/wire/ses_headers.h"
#include "pds/pds.h"
#include "ses/ses.h"

namespace uet::fep {

using base::Duration;
using base::Instant;

enum class DataProtection : std::uint8_t { kNone, kCrc, kTss };

class Security;

struct FepConfig {
  DataProtection protection = DataProtection::kCrc;
  std::shared_ptr<Security> security;  ///< there with kTss, and only then; for one Fep
  std::uint32_t payload_mtu = 0;       ///< 0: that of payload_mtu_for() the port
  std::uint32_t burst = 32;
  pds::PdsConfig pds;
  cc::CcConfig cc;  ///< zero rates and RTTs are derived from the port
  ses::SesConfig ses;
};

class Fep {
 public:
  /// `port` and `rng` must outlive the Fep. The seed of `rng` decides every random choice.
  Fep(const FepConfig& config, net::Port& port, base::Rng& rng, base::Trace& trace, Instant now);
  ~Fep();

  /// One turn: receive a burst, timers, send what may leave. Returns true when something happened.
  bool turn(Instant now);
  /// A turn but for its last part, for a caller that goes on with transmit() or hold_acks().
  bool take_in(Instant now);
  /// When nothing waits to be sent but ACKs of one PDC, they wait for the next turn or transmit(), and leave behind the Requests
  /// that are there by then. False: there is something else, or nothing.
  bool hold_acks();
  bool holds_acks() const;
  /// Only the last part of a turn: sends what may leave. For a caller that has just posted something and
  /// wants it on its way without paying for a look at the port.
  bool transmit(Instant now);
  /// When turn() has something to do even if no packet arrives.
  Instant next_deadline() const;
  /// True when nothing is queued, outstanding or due.
  bool is_idle() const;

  ses::Ses& ses();
  pds::Pds& pds();
  base::Trace& trace();
  net::Port& port();
  std::uint32_t payload_mtu() const;
  /// The same on the way to a destination.
  std::uint32_t payload_towards(Instant now, const net::FabricAddress& destination);
  /// Null unless the endpoint is secured.
  Security* security();
  const FepConfig& config() const;
  /// Who sent the last packet with a wrong CRC; unspecified when there was none.
  net::FabricAddress last_bad_crc_from() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Headers of the forms in use: a standard one of SES in a plain request. [WIRE 7.2]
inline constexpr std::uint32_t kRequestHeaderBytes =
    wire::PdsRequest::kSize + wire::SesStandardFirst::kSize;

/// The largest payload MTU whose worst-case packet fits `ip_mtu`; 1024 when none does. [WIRE 7.2, decision 169]
std::uint32_t payload_mtu_for(std::size_t ip_mtu);

}  // namespace uet::fep
