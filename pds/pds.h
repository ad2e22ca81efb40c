/// Packet delivery sublayer: carries segments of messages between FEPs, exactly once (RUD, ROD), at
/// least once (RUDI) or best effort (UUD): lost, or where the network duplicates, more than once. [UET 3.5]
///
/// Knows: PDCs, PSNs, ACKs, NACKs, CLEAR, loss, windows. Knows nothing of tags, memory keys,
/// buffers, sockets, clocks. Pulls: SES only says that a message exists; a segment is cut (into a
/// packet of the port's pool) at the moment it may leave, and cut again when it must be sent again.
/// One thread; no allocation per packet after start-up.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "cc/cc_config.h"
#include "lib/base/rng.h"
#include "lib/base/serial.h"
#include "lib/base/trace.h"
#include "lib/base/units.h"
#include "lib/net/fabric_address.h"
#include "lib/net/port.h"
#include "pds/opening_guard.h"
#include "pds/pds_config.h"

namespace uet::cc {
class Ccc;
}

namespace uet::pds {

using base::Instant;
using base::Psn;

enum class Mode : std::uint8_t { kRud, kRod, kRudi, kUud };

/// SES's own name for a message; PDS only gives it back. Never 0.
using MessageToken = std::uint64_t;

/// Names a PDC as long as it lives: slot and generation, so a stale one is recognised.
struct PdcRef {
  std::uint32_t value = 0;
  constexpr bool operator==(const PdcRef&) const = default;
  explicit constexpr operator bool() const { return value != 0; }
};

enum class NackWay : std::uint8_t { kReceived, kSent };

/// One kind of NACK on one PDC.
struct NackCount {
  std::uint16_t count;  ///< stays at its maximum
  std::uint8_t code;
  NackWay way;
};

/// Names one received packet whose answer SES owes. Stale handles (PDC gone, answered twice) are
/// recognised.
struct RxHandle {
  PdcRef pdc;
  Psn psn;
  bool return_direction = false;  ///< the packet came in the return direction (read data)
};

/// A message to carry. All segments but the last carry `segment_payload` bytes.
struct TxMessage {
  MessageToken token = 0;
  net::FabricAddress destination;
  Mode mode = Mode::kRud;
  std::uint8_t traffic_class = 0;
  std::uint32_t rod_context = 0;  ///< ROD: messages of one context to one peer keep their order
  std::uint32_t segments = 1;
  std::uint32_t ses_header_bytes = 0;  ///< SES header and extension in each segment
  std::uint64_t payload_bytes = 0;     ///< carried in all segments together (0 for READ requests)
  std::uint32_t segment_payload = 0;   ///< payload of a full segment
  bool lock = false;                   ///< keep the PDC open until Pds::unlock(token's PDC) (reads)
  /// No user waits for its success: the ACK of a later message may tell of it, or that of a Probe after Tail_Loss_Time. [decision 167]
  bool ack_may_wait = false;
};

/// What SES says about a segment it has just cut.
struct SegmentInfo {
  std::uint8_t next_hdr = 0;  ///< wire value: which SES header the segment begins with
};

/// Why a message can no longer be delivered. [PDS 16.5]
enum class PdsError : std::uint8_t {
  kRtoExhausted,
  kNackExhausted,
  kPeerLost,
  kPeerClosing,
  kPeerSilent,
  kResponseLost,
  kPeerFailed,
  kAborted,
  kNoPdc,
  kInDoubt,  ///< the PDC is lost as with kPeerLost, but some packet of this message may have been delivered
};
/// The target cannot have delivered any packet of the message, whatever happened to the clock of either side: the message may be
/// sent again as it is. See docs/decisions/0051.
constexpr bool was_not_delivered(PdsError e) {
  return e == PdsError::kPeerLost || e == PdsError::kPeerClosing || e == PdsError::kNoPdc;
}
/// Another PDC may carry it, where a second execution does no harm.
constexpr bool is_retryable(PdsError e) {
  return was_not_delivered(e) || e == PdsError::kInDoubt;
}

/// A SES response as PDS sees it: bytes to carry. `header` is a complete SES response header.
struct SesResponse {
  std::uint8_t next_hdr = 0;  ///< 0 none, 4, 5 or 6
  std::uint8_t header_bytes = 0;
  std::array<std::uint8_t, 20> header{};
  std::span<const std::uint8_t>
      data{};  ///< read data that rides on the ACK; PDS copies it before returning
};

/// SES's answer to a received request.
struct Answer {
  enum class Kind : std::uint8_t {
    kRespond,  ///< `response` now; guaranteed if it is not just the default
    /// Accepted; the layer above will call Pds::respond(). Ours answers at once. [PDS 9.3] has peers told meanwhile that it is busy, and
    /// the scripts of uet-drill for PDS play that.
    kLater,
    /// No room for it now, nothing consumed: the source sends it again later. The layer above keeps nothing of it either: a PDC that
    /// has accepted nothing is dropped without an upcall.
    kRefuse,
    kNone,  ///< UUD, or RUDI that is dropped
  };
  Kind kind = Kind::kRespond;
  bool guaranteed = false;
  /// What the request took room from, when that can run out: a name for Upper::fill_of(). 0: from nothing.
  std::uint32_t resource = 0;
  SesResponse response;
};

/// A request (or return data) handed up. `packet` begins with the SES header; SES may read and keep
/// nothing of it.
struct RxRequest {
  RxHandle handle;
  Mode mode = Mode::kRud;
  std::uint8_t next_hdr = 0;
  net::FabricAddress source;
  /// The source has shown that it hears what goes to its address. Else the packet may be forged: what it takes of a pool comes from a
  /// small common share, and it closes nothing for others.
  bool is_proven = false;
  std::span<const std::uint8_t> bytes;  ///< SES header, extension, payload; trailer removed
};

/// Implemented by SES. Every call comes from within a Pds call on the same thread.
class Upper {
 public:
  virtual ~Upper() = default;

  /// Append segment `segment` (0-based) of `token` to `packet`: SES header and payload. Called at
  /// every transmission. The bytes must be the same each time. `psn` is the packet's PSN; `pdc` the
  /// PDC that carries the message (null for RUDI, UUD).
  virtual SegmentInfo emit_segment(MessageToken token, std::uint32_t segment, PdcRef pdc, Psn psn,
                                   net::Packet& packet) = 0;
  /// Deliver a request exactly once (RUD, ROD) and say how to answer. [rx_req, rx_ret]
  virtual Answer on_request(Instant now, const RxRequest& request) = 0;
  /// Segment delivered. `response` holds the SES response header and data, empty for the default
  /// response. Once per segment. [rx_rsp]
  virtual void on_response(Instant now, MessageToken token, std::uint32_t segment,
                           std::uint8_t next_hdr, std::span<const std::uint8_t> response) = 0;
  /// An ACK names a packet of ours that was answered before and carries a response: the verdict that a target promised with
  /// NO_RESPONSE, or a copy of what was said. Which message it is about the response says itself. [SES 11.2 row 9]
  virtual void on_further_response(Instant now, PdcRef pdc, std::uint8_t next_hdr,
                                   std::span<const std::uint8_t> response) {
    (void)now, (void)pdc, (void)next_hdr, (void)response;
  }
  /// The message failed: no more calls for this token. Exactly once per message.
  virtual void on_message_error(Instant now, MessageToken token, PdsError error) = 0;
  /// The PDC is gone: messages being received on it will not continue, reads on it get no more
  /// data.
  virtual void on_pdc_gone(Instant now, PdcRef pdc, net::FabricAddress peer, PdsError error) = 0;
  /// A PDC has ended as its initiator wished: nothing that it carried is left, and what the target still owed on it (messages
  /// not wholly received, read data not yet queued, responses after the first one to a packet) will never be carried.
  virtual void on_pdc_closed(Instant now, PdcRef pdc, net::FabricAddress peer) {
    (void)now, (void)pdc, (void)peer;
  }
  /// What an ACK of a data packet carries when its own response is not kept any more. Without a header: nothing. [PDS 10.1]
  virtual SesResponse default_response() const { return {}; }
  /// The PDC is to close, and nothing but its locks keeps it. Returns how many of them are released: those of operations that wait
  /// for an event which may be far away, and can ask for it on another PDC later. The others end soon. Called again after what
  /// comes on the PDC. [decision 142]
  virtual std::uint32_t yield_locks(Instant now, PdcRef pdc) {
    (void)now, (void)pdc;
    return 0;
  }
  /// Room again after submit() or submit_return() returned kAgain.
  virtual void on_resume(Instant now) = 0;
  /// The peer is a process of this host: no network is between. [decision 128]
  virtual bool stays_on_host(Instant now, const net::FabricAddress& peer) {
    (void)now;
    (void)peer;
    return false;
  }
  /// How full Answer::resource is now, in thousandths: senders that fill it are slowed down before they are refused. [CC 4.8]
  virtual std::uint32_t fill_of(std::uint32_t resource) {
    (void)resource;
    return 0;
  }
};

enum class SubmitResult : std::uint8_t {
  kQueued,
  kAgain,  ///< no room now: Upper::on_resume() follows
  kNever,  ///< submit_return() only: that PDC is gone, or its target is the other side
};

/// What SES asks of the layer that carries its messages. A Pds is one; tests put a scripted one in its place. [SES 20]
class Carrier {
 public:
  virtual ~Carrier() = default;
  /// Queue a message. kAgain has no side effect; Upper::on_resume() follows. [tx_req]
  virtual SubmitResult submit(Instant now, const TxMessage& message) = 0;
  /// Queue read data towards the sender of `request`, on the return direction of its PDC. Not queued has no side effect. [tx_ret]
  virtual SubmitResult submit_return(Instant now, RxHandle request, const TxMessage& message) = 0;
  /// Release one lock taken by a message with `lock`.
  virtual void unlock(Instant now, PdcRef pdc) = 0;
  /// Stop carrying a message. Unsent and unacknowledged: forgotten; otherwise its PDC fails. No
  /// on_message_error follows. [PDS 16.5]
  virtual void abort(Instant now, MessageToken token) = 0;
  /// No further segments than those already sent; the message ends there (SES closes it with
  /// MSG_ERROR or a closing packet as its last segment, so `segments` becomes the new count).
  /// Returns the number of segments already sent.
  virtual std::uint32_t truncate(Instant now, MessageToken token, std::uint32_t extra_segments) = 0;
  /// The user waits for a message with `ack_may_wait` after all. Nothing, if it is over.
  virtual void hurry(Instant now, MessageToken token) { (void)now, (void)token; }
};

class Pds final : public Carrier {
 public:
  /// `facts` describes the port the packets go through. References must outlive the Pds.
  Pds(const PdsConfig& config, const cc::CcConfig& cc_config, const net::PortFacts& facts,
      net::PacketPool& pool, base::Rng& rng, base::Trace& trace, Upper& upper);
  ~Pds() override;
  Pds(const Pds&) = delete;
  Pds& operator=(const Pds&) = delete;

  /// Openings are secured from now on; to be called before the first packet. `guard` must outlive the
  /// Pds. [PDS 6.5]
  void set_opening_guard(OpeningGuard& guard);

  // --- From SES
  // ------------------------------------------------------------------------------------------------------
  SubmitResult submit(Instant now, const TxMessage& message) override;
  SubmitResult submit_return(Instant now, RxHandle request, const TxMessage& message) override;
  void unlock(Instant now, PdcRef pdc) override;
  void abort(Instant now, MessageToken token) override;
  std::uint32_t truncate(Instant now, MessageToken token, std::uint32_t extra_segments) override;
  void hurry(Instant now, MessageToken token) override;
  /// The answer to a request that was answered kLater. Ignored (counted) when the handle is stale.
  /// [tx_rsp]
  void respond(Instant now, RxHandle handle, const SesResponse& response, bool guaranteed);

  // --- From and to the loop
  // -------------------------------------------------------------------------------------------
  /// `rx.packet` begins with the PDS header; integrity trailer checked and removed. Nothing of
  /// the packet is left in `rx` afterwards.
  void on_packet(Instant now, net::RxPacket&& rx);
  /// The next packet to send, if any, with every field of `out`; begins with the PDS header, without trailer. Control packets
  /// first.
  /// `free_planes`: bit set of ports (fabric planes) that can take data now, never 0. Control packets ask for the plane on
  /// which the peer was heard, or for any.
  bool poll_transmit(Instant now, net::TxPacket& out, std::uint8_t free_planes = 1) {
    return poll_transmit(now, std::span(&out, 1), free_planes) != 0;
  }
  /// The same for several packets, in the order in which they would come one by one: how many of `out`, which is not empty, are
  /// filled from its front on. 0 means that there is nothing to send.
  std::size_t poll_transmit(Instant now, std::span<net::TxPacket> out,
                            std::uint8_t free_planes = 1);
  /// False when poll_transmit() would find nothing, which is so in most turns of an endpoint. True promises no packet.
  bool may_have_packets() const;
  /// Nothing waits to be sent but ACKs of one PDC, and at least one does.
  bool has_only_acks() const;
  /// SES asked for something since poll_transmit() was called: the loop is to be turned now, and not at next_deadline().
  bool has_unpolled_packets() const;
  /// A port lost its link or has it again: bit set of those that have one.
  void on_planes_changed(Instant now, std::uint8_t up);
  void on_deadline(Instant now);
  Instant next_deadline() const;

  /// Closes all PDCs gracefully (idle ones at once); is_idle() tells when nothing is left to do.
  void close_all(Instant now);
  bool is_idle() const;

  struct Gauges {
    std::size_t pdcs_open, pdcs_half_open, outstanding_packets, queued_messages, stored_responses,
        tombstones, rudi_outstanding, ccc_count;
    std::size_t half_open_reaped;  ///< PENDING PDCs that New_PDC_Time ended
    std::size_t stored_unproven;   ///< of stored_responses, for unproven peers
    std::size_t clear_breaks;      ///< PDCs that were ended because their source did not clear
    /// Target PDCs whose peer has not proved that it hears us; of those, how many made place for others; and openings that
    /// are remembered because of that.
    std::size_t pdcs_unproven, unproven_evicted, openings_remembered;
  };
  Gauges gauges() const;

  /// A congestion context as tools see it: windows, RTTs and the state of each path are methods of `ccc`.
  struct CongestionView {
    net::FabricAddress peer;
    std::uint8_t traffic_class;
    bool sprayed;
    const cc::Ccc& ccc;
  };
  /// NACKs of the endpoint since its start, by code, also those that belong to no PDC.
  std::uint64_t nacks(NackWay way, std::uint8_t code) const;

  /// One PDC as tools see it.
  struct PdcView {
    net::FabricAddress peer;
    std::uint16_t id, peer_id;  ///< peer_id is 0 until learnt
    Mode mode;
    std::string_view state;
    bool is_initiator;
    std::uint8_t traffic_class;
    std::uint32_t unacked;      ///< packets sent and not acknowledged
    std::uint32_t to_resend;    ///< of those, packets to be sent again
    std::uint32_t resent;       ///< packets sent again so far
    std::uint32_t queued;       ///< messages that wait
    std::uint32_t peer_window;  ///< packets that the peer takes (MP_RANGE)
    std::uint32_t beyond_gap;   ///< packets received beyond a gap
    std::uint32_t stored;       ///< responses kept until they are cleared
    std::uint32_t owed;         ///< requests that SES has yet to answer
    std::uint32_t locks;        ///< operations of SES that hold it open
    base::ByteCount inflight;   ///< bytes of ours in the network
    Psn next, cack, received_up_to;
    Instant heard_at;  ///< latest valid packet from the peer
    Instant active_at;
    Instant probed_at;  ///< latest Probe of ours
    bool is_probe_answered;
    std::span<const NackCount> nacks;  ///< in the order in which they first came
  };
  /// Calls `visit` for each PDC, longest idle first (approximately), until it returns false.
  void for_each_pdc(const std::function<bool(const PdcView&)>& visit) const;

  /// Calls `visit` for each context, in no particular order.
  void for_each_congestion(const std::function<void(const CongestionView&)>& visit) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uet::pds
