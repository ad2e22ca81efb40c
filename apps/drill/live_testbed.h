/// The live harness: an endpoint at an address, in real time.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "apps/drill/initiate.h"
#include "apps/drill/live_link.h"
#include "apps/drill/pdc_ledger.h"
#include "apps/drill/peer.h"
#include "apps/drill/testbed.h"
#include "lib/base/rng.h"

namespace uet::drill {

/// A packet of a script's run, for the report.
struct WireLine {
  base::Instant at;
  bool is_ours = false;
  std::string text;
};

/// Runs one script after the other. Each gets identifiers and PSNs of its own; what an earlier one left behind is answered
/// without its notice.
class LiveTestbed final : public Testbed {
 public:
  LiveTestbed(LiveLink& link, const Peer& peer, const Timing& timing, std::uint64_t seed);

  std::string lacks(const Script& script) override;
  void begin(const Script& script, Variables& variables, Definitions& definitions) override;
  void end() override;
  base::Instant now() const override { return clock_now(); }
  base::Duration patience() const override { return patience_; }
  base::Duration quiet() const override { return timing_.quiet; }
  void arrive(std::span<const std::uint8_t> bytes, const Travel& travel) override;
  std::optional<SeenPacket> next(base::Instant until) override;
  void pass(base::Duration span) override;
  StepResult step(Words words) override;
  std::string trouble() override { return std::exchange(trouble_, {}); }

  /// True when the endpoint answers an opening, in whichever way, before the time to reach it is over.
  bool reach(base::Duration patience);
  /// How the endpoint refused the request that it was reached with; empty when it did not.
  const std::string& refusal() const { return refusal_; }
  /// What was wrong with the commands of --initiate since the last begin(); empty when nothing was.
  const std::string& initiate_trouble() const { return initiate_trouble_; }
  /// The last that went over the wire since the last begin().
  const std::deque<WireLine>& lines() const { return lines_; }

 private:
  std::uint16_t new_id();
  bool send(std::span<const std::uint8_t> bytes, const Travel& travel);
  std::optional<SeenPacket> receive(base::Instant until);
  void say_farewell(base::Instant until);
  std::string initiate(Words words);
  std::string seal(Words words);
  void reset_sealing();
  std::uint32_t new_start();
  bool learn_start(const SeenPacket& packet);
  std::optional<SeenPacket> knock(const Variables& variables, const Definitions& definitions,
                                  bool is_ordered, base::Instant until);
  void take_up_challenge(const Script& script, Variables& variables,
                         const Definitions& definitions);
  void note(bool is_ours, std::span<const std::uint8_t> bytes);

  LiveLink& link_;
  const Peer& peer_;
  Timing timing_;
  base::Rng rng_;
  PdcLedger ledger_;
  Variables* variables_ = nullptr;
  InitiateCommand command_;
  std::uint16_t next_id_ = 0;
  std::uint16_t next_message_ = 1;
  base::Duration patience_;
  LiveLink::Manner manner_;
  std::uint32_t next_start_ = 0;  ///< secured: every PDC starts behind the ones before
  bool challenges_ = false;       ///< the endpoint wants each PDC to start at a PSN of its choice
  std::vector<SeenPacket> kept_;  ///< came while time passed
  std::deque<WireLine> lines_;
  std::string trouble_, refusal_, initiate_trouble_;
};

}  // namespace uet::drill
