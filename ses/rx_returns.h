/// Read data on its way back: what READs asked for, until it is acknowledged. [SES 6.3]
///
/// It tells the user of a READ that is complete, and the Transmitter of one that was the source of a rendezvous; nothing here
/// calls the part that serves the READs.
#pragma once

#include "ses/core.h"
#include "ses/message_shares.h"
#include "ses/read_return.h"

namespace uet::ses {

class ReadReturns {
 public:
  ReadReturns(Core& core, SenderTable& senders, MessageShares& shares);
  ~ReadReturns();
  ReadReturns(const ReadReturns&) = delete;
  ReadReturns& operator=(const ReadReturns&) = delete;

  // --- A READ, and a fetching atomic
  /// Null when there is no place. settle() follows what was done with it.
  ReadProgress* begin_read(const RequestContext& c);
  ReadProgress* find_read(PoolRef read) { return reads_.find(read); }
  /// Queues what the packet asks for of `region`, from `at` on, and accepts it; or refuses it when there is no room.
  pds::Answer return_data(RequestContext& c, const MemoryRegion& region, std::uint64_t at,
                          ReadProgress& progress);
  /// The two steps of it. Null when there is no room.
  ReadReturn* make(RequestContext& c, PoolRef region, const IovList& memory, std::uint64_t at,
                   ReadProgress& progress);
  pds::SubmitResult begin(RequestContext& c, ReadReturn& r, ReadProgress& progress);
  void settle(Instant now, ReadProgress& progress);
  void end_requests(Instant now, ReadProgress& progress);  ///< all packets of the READ have come
  void fail(Instant now, PoolRef read);                    ///< others of it will not come
  /// The user of the endpoint is told of a READ.
  void complete(Instant now, EndpointId endpoint, const Source& source, std::uint64_t key,
                std::size_t length);

  // --- From the carrier
  pds::SegmentInfo emit(pds::MessageToken token, std::uint32_t segment, net::Packet& packet);
  void on_response(Instant now, pds::MessageToken token, std::uint8_t next_hdr,
                   std::span<const std::uint8_t> response);
  void on_error(Instant now, pds::MessageToken token);
  /// Of a reader: what waits goes, and what the carrier has ends by on_error().
  void on_pdc_gone(Instant now, pds::PdcRef pdc, Sender& reader);
  /// What waits that it has looked at in vain, since the start.
  std::uint64_t passed() const { return passed_; }
  void serve(Instant now);  ///< the carrier may have room

  std::size_t reads() const { return reads_.in_use(); }
  std::size_t open() const { return pool_.in_use(); }
  std::size_t waiting() const { return pool_.in_use() - carried_; }
  std::uint64_t refused() const { return refused_; }

 private:
  bool has_place(const Sender& owner, pds::PdcRef pdc);
  std::uint32_t piece_of(const RequestContext& c) const;
  bool copy(ReadReturn& r, const IovList& memory, std::uint64_t at, std::uint32_t length);
  /// The n bytes from `at` on of what goes back; or why not.
  wire::ReturnCode fetch(const ReadReturn& r, std::uint32_t at, std::uint8_t* out,
                         std::uint32_t n) const;
  pds::SubmitResult submit(Instant now, ReadReturn& r);
  bool may_carry(const Sender& sender) const;
  void wait_for_turn(ReadReturn& r);
  void end_wait(ReadReturn& r);
  void release(Instant now, ReadReturn& r, bool delivered);
  void drop(ReadReturn& r);
  ReadReturn* find(pds::MessageToken token);

  Core& core_;
  SenderTable& senders_;
  MessageShares& shares_;
  ChunkedPool<ReadReturn> pool_;
  PdcUse use_;
  ChunkedPool<ReadProgress> reads_;
  Slab copies_;
  TurnList turns_;  ///< senders whose read data waits for a place with the carrier
  std::size_t carried_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t passed_ = 0;
};

}  // namespace uet::ses
