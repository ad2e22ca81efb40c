/// What a script runs in: an endpoint and the network between it and the script. The virtual harness of the tests and the live
/// one of uet-drill are the two.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/drill/packet_text.h"
#include "apps/drill/script.h"
#include "lib/base/units.h"
#include "lib/net/port.h"

namespace uet::drill {

/// How the packets of the script travel to the endpoint.
struct Travel {
  std::uint64_t from = 2;  ///< number of the host that sends; 2 is the script
  net::TosByte tos = net::TosByte::of(0, 2);
  std::uint16_t entropy = 0x1234;
};

/// Words that scripts write as `@NAME`.
using Definitions = std::map<std::string, std::vector<std::string>, std::less<>>;

/// What a step of the testbed's own came to.
struct StepResult {
  bool is_known = true;  ///< the word begins a step here
  std::string why;       ///< empty: it went well
};

class Testbed {
 public:
  virtual ~Testbed() = default;

  /// Why this script cannot run here; empty when it can.
  virtual std::string lacks(const Script& script) = 0;
  /// Before the first step. What the testbed knows becomes variables and definitions.
  virtual void begin(const Script& script, Variables& variables, Definitions& definitions) = 0;
  /// After the last step, or the one that failed.
  virtual void end() {}

  virtual base::Instant now() const = 0;
  /// How long an expected packet may take, and how long nothing must come where nothing is expected.
  virtual base::Duration patience() const = 0;
  virtual base::Duration quiet() const = 0;

  /// A packet of the script arrives at the endpoint.
  virtual void arrive(std::span<const std::uint8_t> bytes, const Travel& travel) = 0;
  /// The next packet of the endpoint, awaited until `until` at the latest.
  virtual std::optional<SeenPacket> next(base::Instant until) = 0;
  virtual void pass(base::Duration span) = 0;
  /// Any step that is not about packets, time and variables.
  virtual StepResult step(Words words) = 0;
  /// Trouble of the testbed itself since the last call; empty when there was none.
  virtual std::string trouble() = 0;
};

}  // namespace uet::drill
