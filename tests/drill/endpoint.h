/// What a script talks to above the wire: a whole fabric endpoint, or packet delivery alone with a
/// layer above it that does as it is told.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "apps/drill/packet_text.h"
#include "fep/fep.h"
#include "tests/drill/drill_port.h"

namespace uet::drill {

class Endpoint {
 public:
  virtual ~Endpoint() = default;
  /// True when something happened.
  virtual bool turn(base::Instant now) = 0;
  virtual base::Instant next_deadline() const = 0;
  virtual const base::Trace& trace() const = 0;
  virtual pds::Pds& pds() = 0;
  /// A step of this kind of endpoint. Empty when it went well; nothing when it knows no such step.
  virtual std::optional<std::string> step(base::Instant now, Words words) = 0;
};

/// A whole endpoint: operations of the semantic sublayer.
std::unique_ptr<Endpoint> make_fep_endpoint(const fep::FepConfig& config, DrillPort& port,
                                            Variables& variables, base::Instant now);
/// Packet delivery with a scripted layer above.
std::unique_ptr<Endpoint> make_pds_endpoint(const fep::FepConfig& config, DrillPort& port,
                                            Variables& variables);

}  // namespace uet::drill
