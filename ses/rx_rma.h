/// WRITE and READ at the target: the memory that peers reach by key. [SES 6.2, 6.3]
#pragma once

#include "ses/message_shares.h"
#include "ses/responses.h"
#include "ses/rx_returns.h"

namespace uet::ses {

/// Where a request fails, `failure` of its context says why, and the answer is for others to make.
class RmaTarget {
 public:
  RmaTarget(Core& core, RxMessageTable& messages, MessageShares& shares, ReadReturns& returns)
      : core_(core),
        messages_(messages),
        shares_(shares),
        returns_(returns),
        ack_data_(core.largest_payload()) {}

  /// The first packet that came of a message, whose form and endpoint are in order.
  pds::Answer begin_write(RequestContext& c);
  pds::Answer begin_read(RequestContext& c);
  /// A further packet.
  pds::Answer proceed_write(RequestContext& c, RxMessage& m);
  pds::Answer proceed_read(RequestContext& c, RxMessage& m);

  /// The region that a request names, and where in it the request begins. Null: `code` says why it may not reach it.
  MemoryRegion* find_region(RequestContext& c, bool write, std::uint64_t& start, ReturnCode& code);
  /// The target of a rendezvous may reach its source through an endpoint that serves no other READ. Null for all else. [SES 9]
  Endpoint* find_source_endpoint(const RequestView& r) const;

  /// For data that rides on an ACK: the most that one packet asks for.
  std::span<std::uint8_t> ack_data() { return ack_data_; }
  /// What the request covers is in ack_data().
  pds::Answer answer_carrying(const RequestContext& c);

 private:
  pds::Answer complete_write(RequestContext& c, const MemoryRegion& region, bool has_data,
                             std::uint64_t header_data);
  pds::Answer return_part(RequestContext& c, RxMessage& m, const MemoryRegion& region,
                          ReadProgress* progress);
  void forget(Instant now, RxMessage& m);
  bool data_fits_ack(const RequestContext& c, const MemoryRegion& region) const;
  bool asks_too_much(const RequestContext& c) const;
  pds::Answer answer_with_data(RequestContext& c, const MemoryRegion& region, std::uint64_t at);

  Core& core_;
  RxMessageTable& messages_;
  MessageShares& shares_;
  ReadReturns& returns_;
  std::vector<std::uint8_t> ack_data_;  ///< read data put together for one answer
};

}  // namespace uet::ses
