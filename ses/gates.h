/// Which ordered messages of which sources endpoints take now. [SES 2.5, decision 106]
#pragma once

#include "ses/loop_clock.h"
#include "ses/request_context.h"
#include "ses/sender_table.h"

namespace uet::ses {

/// Opens and closes the gates of sources: a message that was refused for lack of room closes the one of its source, so that later
/// messages of that source cannot overtake it. Other sources go on: order is promised within one source only.
class Gates {
 public:
  Gates(const SesConfig& config, SenderTable& senders, const LoopClock& clock)
      : config_(config), senders_(senders), clock_(clock) {}

  /// What the messages of a source have to be stamped with. Unknown ones are at generation 0; those of closed endpoints are told
  /// `otherwise`.
  std::uint8_t generation_for(const Endpoint* endpoint, const net::FabricAddress& source,
                              bool tagged, std::uint8_t otherwise);
  /// What a message is refused with at a closed gate.
  ReturnCode code_of_closed() const {
    return config_.use_generations ? ReturnCode::kDisabledGen : ReturnCode::kDisabled;
  }

  /// There is no room for the message of the packet, whose source is `sender`. Returns what it is refused with.
  ReturnCode close(const RequestContext& c, RiSpace& space, Sender& sender);
  /// The gate that the packet meets was closed for this very message, as far as the wire tells messages of one source apart.
  bool was_closed_for(const RequestContext& c, Sender& sender);
  /// The gate of one source.
  void open(RiSpace& space, Gate& gate);
  /// There are resources again: each sender that was refused may try.
  void open_all(RiSpace& space);
  /// A gate that was closed on this PDC by a source that had not proved itself; null when there is none.
  Gate* closed_on(pds::PdcRef pdc);
  /// That PDC has gone, and with it what the gate held up: the gate is as it was before.
  void undo_close(RiSpace& space, Gate& gate);

 private:
  void enable(Gate& gate);

  const SesConfig& config_;
  SenderTable& senders_;
  const LoopClock& clock_;
  UnprovenGateList unproven_;
};

}  // namespace uet::ses
