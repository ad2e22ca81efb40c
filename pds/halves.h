/// What the two directions of PDCs need, each as one group in the order in which its parts know each other. A part that needs
/// several of them takes the group and picks.
#pragma once

#include "pds/clear.h"
#include "pds/credit_grants.h"
#include "pds/loss_evidence.h"
#include "pds/openings.h"
#include "pds/receiver.h"
#include "pds/renumbering.h"
#include "pds/reorder_buffer.h"

namespace uet::pds {

struct SendingHalf {
  SendingHalf(Environment& env, Scheduler& scheduler)
      : window(env),
        loss(env, window, scheduler),
        evidence(env, window, loss, scheduler),
        clear(env, window, scheduler),
        renumbering(env, window, loss, scheduler) {}

  SendWindow window;
  LossRecovery loss;
  LossEvidence evidence;
  ClearSender clear;
  Renumbering renumbering;
};

struct ReceivingHalf {
  ReceivingHalf(Environment& env, PdcTable& pdcs, Scheduler& scheduler, NackQueue& nacks,
                const cc::CcConfig& cc_config, const SendWindow& window)
      : proofs(window, scheduler),
        openings(env, pdcs.places_per_role()),
        kept(env, scheduler),
        receiver(env, pdcs, kept, scheduler, nacks, proofs),
        reorder(env, pdcs, kept.peers(), nacks, cc_config.config_base_rtt),
        credit(env, pdcs, scheduler, cc_config) {}

  ProofRequests proofs;
  Openings openings;
  KeptResponses kept;
  Receiver receiver;
  ReorderBuffer reorder;
  CreditGrants credit;
};

}  // namespace uet::pds
