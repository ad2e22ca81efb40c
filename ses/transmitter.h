/// The initiator: takes operations, has them carried, hears what became of them. [SES 4, 17]
#pragma once

#include "ses/outcomes.h"
#include "ses/posting.h"

namespace uet::ses {

/// Owns the parts of the initiator's half, and hands each input to one of them. They know those listed before them.
class Transmitter final : private Fetcher, private RegionReads, private Restarts {
 public:
  explicit Transmitter(Core& core);
  Transmitter(const Transmitter&) = delete;
  Transmitter& operator=(const Transmitter&) = delete;

  // --- From the user
  Posting& posting() { return posting_; }
  bool cancel(Instant now, const Endpoint& endpoint, std::uint64_t context);
  void close_endpoint(Instant now, Endpoint& endpoint);
  /// Its user waits for what it has sent.
  void hurry(Instant now, const Endpoint& endpoint);
  std::size_t free_operations() const { return operations_.free_for_users(); }
  std::size_t active_operations() const { return operations_.in_use(); }

  // --- From the carrier
  pds::SegmentInfo emit_segment(pds::MessageToken token, std::uint32_t segment, pds::PdcRef pdc,
                                base::Psn psn, net::Packet& packet);
  void on_response(Instant now, pds::MessageToken token, std::uint32_t segment,
                   std::uint8_t next_hdr, std::span<const std::uint8_t> response);
  void on_further_response(Instant now, pds::PdcRef pdc, std::uint8_t next_hdr,
                           std::span<const std::uint8_t> bytes);
  pds::Answer on_return_data(Instant now, const pds::RxRequest& request);
  void on_message_error(Instant now, pds::MessageToken token, pds::PdsError error);
  void on_pdc_gone(Instant now, pds::PdcRef pdc, pds::PdsError error);
  void on_pdc_closed(Instant now, pds::PdcRef pdc);
  std::uint32_t yield_locks(Instant now, pds::PdcRef pdc);
  void on_resume(Instant now);

  // --- Time
  void on_deadline(Instant now);
  Instant next_deadline() const;

 private:
  // --- From the target's half of SES
  void on_region_read(Instant now, PoolRef operation, std::uint64_t length) override;
  bool fetch(Instant now, Fetch& fetch, const FetchRequest& request) override;
  void give_up(Instant now, Fetch& fetch) override;
  ReturnCode on_restart(Instant now, const Endpoint& endpoint, const net::FabricAddress& source,
                        const RequestView& request) override;
  void on_refused_restart(Instant now, const net::FabricAddress& source, const RequestView& request,
                          ReturnCode code) override;
  TxOp* find_put_off(const net::FabricAddress& source, const RequestView& request);
  pds::Answer take_data(Instant now, TxOp& op, const ResponseView& response);

  Core& core_;
  RendezvousSources sources_;
  Operations operations_;
  ResponseReader responses_;
  SendQueues queues_;
  Outcomes outcomes_;
  Posting posting_;
};

}  // namespace uet::ses
