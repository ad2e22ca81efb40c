/// Messages without room of which only the header is kept. [SES 7.2, decision 107]
#pragma once

#include "ses/loop_clock.h"
#include "ses/request_context.h"
#include "ses/sender_table.h"

namespace uet::ses {

/// Header-only entries: a peek sees such a message and its place among the others; its sender was refused, and sends it again. They
/// stand in the lists of their endpoint and of their sender; here by the time of their last attempt.
class HeaderEntries {
 public:
  HeaderEntries(const SesConfig& config, UnexpectedStore& store, SenderTable& senders,
                const LoopClock& clock)
      : config_(config), store_(store), senders_(senders), clock_(clock) {}
  ~HeaderEntries() { by_age_.clear(); }
  HeaderEntries(const HeaderEntries&) = delete;
  HeaderEntries& operator=(const HeaderEntries&) = delete;

  /// What was kept of an earlier attempt of the packet's message, as far as the wire tells messages of one sender apart.
  UnexpectedMessage* find(const RequestContext& c, Sender& sender);
  /// Keeps the header of the packet's message. Null when there are too many of the sender, or of the endpoint.
  UnexpectedMessage* note(const RequestContext& c, RiSpace& space, Sender& sender);
  /// The message has come again.
  void touch(UnexpectedMessage& header);
  /// It is no header-only entry any more, and stays in the list of its endpoint.
  void unlist(UnexpectedMessage& header);
  void forget(UnexpectedMessage& header);
  /// The longest without an attempt, if its sender has given up or is gone.
  UnexpectedMessage* find_idle();

  std::size_t size() const { return by_age_.size(); }

 private:
  const SesConfig& config_;
  UnexpectedStore& store_;
  SenderTable& senders_;
  const LoopClock& clock_;
  HeaderAgeList by_age_;  ///< by last attempt
};

}  // namespace uet::ses
