/// Delivery complete for messages that met no receive: their sender asks, and hears when one has taken them. [SES 14.1, decision 105]
#pragma once

#include <array>

#include "ses/core.h"
#include "ses/delivery_index.h"
#include "ses/gates.h"
#include "ses/request_context.h"
#include "ses/responses.h"
#include "ses/sender_table.h"

namespace uet::ses {

/// Knows the unexpected messages whose senders may ask, and tells those that did what became of them.
class DeliveryReports {
 public:
  DeliveryReports(Core& core, UnexpectedStore& store, SenderTable& senders, Gates& gates)
      : core_(core), store_(store), senders_(senders), gates_(gates), awaited_(core.hash_key) {}
  ~DeliveryReports() {
    turns_.clear();
    at_share_.clear();
  }
  DeliveryReports(const DeliveryReports&) = delete;
  DeliveryReports& operator=(const DeliveryReports&) = delete;

  /// The message of the packet is unexpected; its sender may ask about it, if the request says so.
  void remember(const RequestContext& c, UnexpectedMessage& message);
  /// The sender of a message wants to know when a receive has it. What is not known here has been taken already, perhaps by an
  /// endpoint that was closed since: then the request has none.
  pds::Answer on_await(RequestContext& c);
  /// The message is in no list of its endpoint any more, and its payload is gone: tells its sender, if that has asked. Frees the
  /// descriptor, at the latest when that has heard.
  void report(Instant now, UnexpectedMessage& message, ReturnCode code);

  // --- From the carrier
  pds::SegmentInfo emit(pds::MessageToken token, net::Packet& packet);
  void end(Instant now, pds::MessageToken token);  ///< acknowledged, or undeliverable
  void on_pdc_gone(pds::PdcRef pdc, const net::FabricAddress& peer);
  /// Hands over what waits for room.
  void submit(Instant now);

 private:
  /// A message that no receive took, and whose sender had not asked when its endpoint was closed.
  struct Discarded {
    Incoming sender;
    std::uint16_t message_id = 0;
  };
  static constexpr std::size_t kDiscarded = 64;

  std::uint32_t most_carried() const {
    return std::max<std::uint32_t>(1, core_.config.max_returns_carried / 8);
  }
  bool may_carry(const Sender& sender) const;
  void wait(UnexpectedMessage& message);
  void end_wait(UnexpectedMessage& message);
  void drop(UnexpectedMessage& message);
  void drop_waiting(ReportTurnList& senders, pds::PdcRef pdc, const net::FabricAddress& peer);
  UnexpectedMessage* find(pds::MessageToken token);
  bool was_discarded(const Incoming& sender, std::uint16_t message_id);

  Core& core_;
  UnexpectedStore& store_;
  SenderTable& senders_;
  Gates& gates_;
  DeliveryIndex awaited_;
  ReportTurnList turns_;  ///< sources with reports that wait
  ReportTurnList
      at_share_;  ///< those that have their share of the places: until one of theirs ends
  std::uint32_t carried_ = 0;                      ///< reports that the carrier has
  std::array<Discarded, kDiscarded> discarded_{};  ///< the latest; 0 is no message id
  std::size_t next_discarded_ = 0;
};

}  // namespace uet::ses
