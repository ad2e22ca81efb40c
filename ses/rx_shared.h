/// What the parts of the target work on together: each message that is on its way in or waits for its receive.
#pragma once

#include <algorithm>

#include "ses/gates.h"
#include "ses/header_entries.h"
#include "ses/message_shares.h"
#include "ses/rx_delivery.h"
#include "ses/rx_receives.h"
#include "ses/rx_unexpected.h"

namespace uet::ses {

struct RxShared {
  explicit RxShared(Core& c)
      : core(c),
        receives(c),
        messages(c.config.max_messages, c.hash_key),
        store(c.config),
        // One that was quiet for a minute makes place for others, for however long messages are waited for.
        senders(c.config.max_senders, c.config.max_streams,
                std::min(c.config.message_idle, base::Duration::from_seconds(60)), c.hash_key),
        shares(messages, senders, clock),
        gates(c.config, senders, clock),
        headers(c.config, store, senders, clock),
        reports(c, store, senders, gates),
        unexpected(store, senders, gates) {}

  Core& core;
  LoopClock clock;
  Receives receives;
  RxMessageTable messages;
  UnexpectedStore store;
  SenderTable senders;
  MessageShares shares;
  Gates gates;
  HeaderEntries headers;
  DeliveryReports reports;
  UnexpectedLists unexpected;
};

}  // namespace uet::ses
