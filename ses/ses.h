/// Semantic sublayer: messages, matching, memory keys, RMA. [UET 3.4]
///
/// Knows: endpoints (resource indices), receives, memory regions, messages and their segments.
/// Knows nothing of PSNs, windows, sockets, libfabric. One thread. Data is placed straight into
/// user buffers, and cut straight out of them.
///
/// Users post operations and get exactly one completion for each, through the CompletionSink of the
/// endpoint.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/rng.h"
#include "lib/base/trace.h"
#include "lib/base/units.h"
#include "lib/net/fabric_address.h"
#include "lib/wire/enums.h"
#include "pds/pds.h"
#include "ses/device_memory.h"
#include "ses/ses_config.h"

namespace uet::ses {

using base::Instant;
using wire::AmoDatatype;
using wire::AmoOpcode;

using pds::Carrier;
class Ways;

/// SES return codes: those of the wire [UET table 3-19], and the ways in which an operation ends here without a word of its peer. A type
/// of its own beside wire::ReturnCode, so that what is local gets into no header without a cast.
#define UET_X_RETURN_CODE(enumerator, value, name) enumerator = value,
enum class ReturnCode : std::uint8_t {
  UET_RETURN_CODES(UET_X_RETURN_CODE)
  // Local, and beyond the six bits of the wire:
  kTruncated = 0x40,       ///< receive completed, message longer than the buffer
  kPeerSilent = 0x41,      ///< nothing heard from the peer for its timeout
  kMessageTimeout = 0x42,  ///< the rest of a message never came
  kNoMessage = 0x43,       ///< peek found nothing
};
#undef UET_X_RETURN_CODE

/// Bits of Address::fep_cap: the profiles whose features an endpoint has. None of them: it does not say. [SES 2.4, 18]
inline constexpr std::uint16_t kAiBase = 0b001, kAiFull = 0b010, kHpc = 0b100;
inline constexpr std::uint16_t kProfiles = kAiBase | kAiFull | kHpc;

/// The address of a process's endpoint as exchanged out of band. [UET table 2-10]
struct Address {
  net::FabricAddress fabric_address;
  std::uint16_t pid_on_fep = 0;      ///< 12 bits
  std::uint16_t resource_index = 0;  ///< 12 bits; 0 is reserved
  std::uint16_t num_indices = 1;
  std::uint32_t initiator_id = 0;
  bool has_initiator_id = true;
  bool relative = true;
  std::uint16_t fep_cap = 0;
  bool one_packet_messages = false;  ///< the largest message is one payload MTU
  /// Plain sends to it have one packet; what is longer has to be deferrable. [SES 6.4]
  constexpr bool limits_sends() const {
    return one_packet_messages || ((fep_cap & kProfiles) != 0 && (fep_cap & kHpc) == 0);
  }
  constexpr bool operator==(const Address&) const = default;
};

using EndpointId = std::uint32_t;  ///< never 0
using PeerId = std::uint32_t;      ///< never 0; one per distinct Address and job, reference counted
inline constexpr PeerId kAnyPeer = 0;

inline constexpr std::uint32_t kLargestJob = 0xff'ffff;
inline constexpr std::size_t kMaxJobs = 16;  ///< of one endpoint

struct EndpointConfig {
  std::uint32_t job_id = 1;  ///< 24 bits
  /// Further jobs that it belongs to: it is addressed in each of them alike, and may send to peers in them. At most kMaxJobs in all.
  std::vector<std::uint32_t> further_jobs;
  bool relative = true;
  std::uint16_t pid_on_fep = 0;
  std::uint16_t resource_index = 0;           ///< 0: SES chooses
  std::optional<std::uint32_t> initiator_id;  ///< default (pid_on_fep << 12) | resource_index
  /// FI_ORDER_SAS: sends of this endpoint go over ROD, or numbered over RUD to targets that restore their order
  bool sends_ordered = false;
  bool rma_ordered = false;      ///< RMA shares that ROD context, and sends stay in it
  bool atomics_ordered = false;  ///< atomics do
  // FI_ORDER_WAS, FI_ORDER_RAS: those that share it wait for the answers of sends before them, which may be refused and come again.
  bool writes_follow_sends = false;  ///< writes and atomics
  bool reads_follow_sends = false;   ///< reads, and atomics that fetch
  std::size_t min_multi_recv = 64;
  bool has_untagged = true;        ///< the RI exists in the SEND space
  bool has_tagged = true;          ///< ... in the TAGGED space
  bool has_rma = true;             ///< ... in the RMA space
  bool has_datagrams = true;       ///< receives take datagrams (UUD)
  std::uint32_t memory_space = 0;  ///< which regions peers reach through it: those of the same one
  bool accept_any_job = true;      ///< absolute mode: sends of other jobs may match
  bool accept_remote_data = true;  ///< false: a WRITE with header data is refused (no receive CQ)
  /// Of open_receive_context(): its messages take the receives that are posted there, and none can be posted to the endpoint.
  std::uint32_t receive_context = 0;

  bool belongs_to(std::uint32_t job) const {
    return job == job_id || std::ranges::find(further_jobs, job) != further_jobs.end();
  }
  /// Absolute mode: authorization is all that a job is for.
  bool accepts_job(std::uint32_t job) const { return accept_any_job || belongs_to(job); }
};

enum class OpKind : std::uint8_t {
  kSend,
  kTaggedSend,
  kWrite,
  kRead,  ///< initiator side
  kReceive,
  kTaggedReceive,
  kRemoteWrite,
  kRemoteRead,  ///< target side
  kPeek,
  kTaggedPeek,
  kAtomic,
  kFetchingAtomic,  ///< initiator side
  kRemoteAtomic,
  kRemoteFetchingAtomic,  ///< target side
};

/// Who sent a message, as far as the wire tells. [SES 2.1]
struct Source {
  net::FabricAddress fabric_address;
  std::uint32_t job_id = 0;
  std::uint32_t initiator_id = 0;
};

/// The end of one operation.
struct Completion {
  OpKind kind{};
  ReturnCode code = ReturnCode::kOk;
  std::uint64_t context = 0;        ///< as posted; 0 for what peers do to memory (kRemote...)
  std::size_t length = 0;           ///< bytes transferred or placed
  std::size_t overflow_length = 0;  ///< with kTruncated: bytes that did not fit
  void* buffer = nullptr;           ///< multi-receive: where this message lies
  std::uint64_t tag = 0;
  std::uint64_t data = 0;  ///< header data (libfabric remote CQ data)
  bool has_data = false;
  bool multi_recv_released = false;  ///< the multi-receive buffer is no longer used
  std::uint8_t user_flags = 0;       ///< as posted
  Source source;                     ///< receives, peeks and what peers do to memory
  std::uint64_t mr_key = 0;          ///< what peers do to memory
};

/// Where completions of an endpoint go. Called from within Ses calls, on the FEP's thread. It may post operations, but
/// must not close an endpoint.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  virtual void on_completion(EndpointId endpoint, const Completion& completion) = 0;
};

/// What is promised about the packets of one operation. Everything but kReliable is a single packet, so at most the payload
/// MTU long, and knows no order: endpoints that promise order for such operations refuse it. [SES 17, PDS 3]
enum class Delivery : std::uint8_t {
  kReliable,  ///< exactly once: RUD, or ROD where the endpoint asks for order
  /// RUDI, writes and reads: at least once. The target may execute it again, even after it is complete, so its memory must be
  /// registered as idempotent_safe and the target's user is not told. No header data.
  kIdempotent,
  /// UUD, untagged sends: sent once and complete when it has left. It may be lost, or come more than once where the network
  /// makes copies; it is taken by a posted receive or lost.
  kDatagram,
};

/// A send. iovec memory must stay valid until completion, unless `inject`.
struct SendRequest {
  PeerId peer = 0;
  Delivery delivery = Delivery::kReliable;  ///< or kDatagram
  bool tagged = false;
  std::uint64_t tag = 0;
  std::span<const iovec> iov;
  DeviceMemory* device = nullptr;     ///< whose memory that is; null for the CPU's
  std::optional<std::uint64_t> data;  ///< header data
  bool inject = false;  ///< bytes are copied before return; at most SesConfig::inject_size
  bool delivery_complete = false;
  bool fence = false;  ///< starts only when everything earlier to that peer is complete
  /// The user does not wait for its completion, which may come a Tail_Loss_Time later than else. [decision 167]
  bool completion_may_wait = false;
  std::uint8_t user_flags = 0;
  std::uint64_t context = 0;
};

struct RmaRequest {
  PeerId peer = 0;
  Delivery delivery = Delivery::kReliable;  ///< or kIdempotent
  bool read = false;
  std::span<const iovec> iov;       ///< local source (write) or destination (read)
  DeviceMemory* device = nullptr;   ///< whose memory that is; null for the CPU's
  std::uint64_t remote_offset = 0;  ///< from the MR's base, or a virtual address
  std::uint64_t key = 0;
  std::optional<std::uint64_t> data;  ///< write only
  bool inject = false;
  bool delivery_complete = false;
  bool fence = false;
  bool completion_may_wait = false;
  std::uint8_t user_flags = 0;
  std::uint64_t context = 0;
};

/// Executed exactly once at the target, on elements in its memory. [SES 16]
///
/// Without `result` as many elements as a packet carries beside the extension; no order among them, each is atomic for itself. With it one
/// element, whose old value is put there. Operands of one element are copied before the call returns; memory of `operand`
/// otherwise, and of `result`, must stay valid until completion.
struct AtomicRequest {
  PeerId peer = 0;
  bool tagged = false;    ///< the target is a posted tagged receive, not a region: `key` is the tag
  bool fetching = false;  ///< compare-and-swap, MSWAP and READ always are
  AmoOpcode op{};
  AmoDatatype type{};
  std::size_t count = 1;           ///< elements; what the spans hold must agree
  std::span<const iovec> operand;  ///< READ and INVAL have none
  std::span<const iovec>
      compare;  ///< compare-and-swap family: the value to compare, or MSWAP's mask
  std::span<const iovec> result;  ///< fetching
  DeviceMemory *operand_device = nullptr, *compare_device = nullptr, *result_device = nullptr;
  std::uint64_t remote_offset =
      0;  ///< from the MR's base, or a virtual address; from the start of the receive
  std::uint64_t key = 0;
  std::optional<std::uint64_t> data;  ///< not when fetching
  bool inject = false;
  bool delivery_complete = false;
  bool fence = false;
  bool completion_may_wait = false;
  std::uint8_t user_flags = 0;
  std::uint64_t context = 0;
};

struct ReceiveRequest {
  bool tagged = false;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  PeerId source = kAnyPeer;  ///< directed receive
  std::span<const iovec> iov;
  DeviceMemory* device = nullptr;       ///< whose memory that is; null for the CPU's
  bool multi_recv = false;              ///< one iovec, many messages
  std::optional<std::uint32_t> job_id;  ///< only messages of this job
  std::uint8_t user_flags = 0;
  std::uint64_t context = 0;
};

enum class PeekAction : std::uint8_t { kPeek, kClaim, kDiscard };
/// Looks at the unexpected messages; answers with one completion (kNoMessage when nothing matches).
/// kClaim reserves the message for claim_receive() with the same context.
struct PeekRequest {
  bool tagged = true;
  PeekAction action = PeekAction::kPeek;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  PeerId source = kAnyPeer;
  std::optional<std::uint32_t> job_id;  ///< only messages of this job
  std::uint8_t user_flags = 0;
  std::uint64_t context = 0;
};

/// A part of a region that is registered under `key` in the same space. [SES 15]
struct PartOfRegion {
  std::uint64_t key = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

struct MemoryRequest {
  std::span<const iovec> iov;
  DeviceMemory* device = nullptr;  ///< whose memory that is; null for the CPU's
  bool remote_read = false;
  bool remote_write = false;
  bool virtual_addressing = true;       ///< false: offsets from 0
  std::optional<std::uint64_t> key;     ///< user key (48 bits); absent: SES chooses
  bool check_unique = true;             ///< refuse a user key that is in use
  std::optional<std::uint32_t> job_id;  ///< only this job may use it
  EndpointId endpoint = 0;              ///< only through this endpoint; 0: any of its space
  std::uint32_t space = 0;              ///< user keys are unique in one, and mean nothing in others
  bool enabled = true;
  bool idempotent_safe = false;  ///< may be reached by Delivery::kIdempotent (key bit 63)
  bool optimized =
      false;  ///< may be reached by small requests (key bit 62); key of 12 bits, unique in all spaces
  /// Derived: in the place of `iov`. It has no right that the other one lacks, the same restrictions and more, and is reached as long as that is.
  std::optional<PartOfRegion> part_of;
};

/// Why a post was refused; nothing was queued.
enum class PostError : std::uint8_t {
  kAgain,  ///< out of descriptors, message ids or peer queue space: turn the loop and try again
  kBadPeer,
  kBadJob,  ///< the peer is in a job that the endpoint does not belong to
  kBadEndpoint,
  kTooLong,  ///< for this Ses, or for one packet where the delivery mode allows no more
  kInjectTooLong,
  kModeForbids,  ///< this operation, or something it asks for, does not exist in its delivery mode
  kBadKey,  ///< also: a key that does not say that its region is idempotent_safe, for kIdempotent
  kKeyInUse,
  kAddressInUse,
  kAddressRests,  ///< an endpoint had it a moment ago; free after SesConfig::ri_reuse
  kNoResources,
  kBadArgument,
  kNotFound,
};
template <typename T>
using PostResult = base::Result<T, PostError>;
struct Posted {};

class Ses final : public pds::Upper {
 public:
  /// `payload_mtu`: 1024, 1280, 2048, 4096 or 8192, the most that we put into one packet; peers may use
  /// another. References must outlive the Ses. attach() must be called before use.
  Ses(const SesConfig& config, std::uint32_t payload_mtu, net::FabricAddress own_address,
      base::Rng& rng, base::Trace& trace);
  ~Ses() override;
  /// To a pds::Pds, or to what plays one in a test; not owned.
  void attach(Carrier& carrier);
  /// Messages are cut to what the way to their destination carries; without, all to `payload_mtu`. Not owned.
  void set_ways(Ways& ways);

  // --- Objects
  // -------------------------------------------------------------------------------------------------------
  PostResult<EndpointId> open_endpoint(Instant now, const EndpointConfig& config,
                                       CompletionSink& sink);
  /// Cancels everything of the endpoint without completions; late packets are answered kCancelled
  /// or kBadIndex.
  void close_endpoint(Instant now, EndpointId endpoint);
  /// The user waits for what the endpoint has sent, whatever was said when it was posted.
  void hurry(Instant now, EndpointId endpoint);
  /// A queue of receives for the messages of several endpoints, those opened with it as their `receive_context`. Receives are
  /// posted, cancelled and closed by its id as by that of an endpoint. A message completes the receive it took at the endpoint that
  /// it came to; `sink` is told what no message has to do with: that a receive was cancelled, or that a multi-receive buffer comes
  /// back because the next message does not fit. To be closed after its endpoints.
  PostResult<EndpointId> open_receive_context(std::size_t min_multi_recv, CompletionSink& sink);
  Address address_of(EndpointId endpoint) const;
  void set_min_multi_recv(EndpointId endpoint, std::size_t bytes);

  /// What is sent to it goes in `job`, which its endpoint must belong to; or, without one, in the job_id of the endpoint that sends.
  PostResult<PeerId> add_peer(const Address& address, std::optional<std::uint32_t> job = {});
  void remove_peer(PeerId peer);
  /// The peer that sent a message, if it is known; else kAnyPeer.
  PeerId find_source(const Source& source) const;

  PostResult<std::uint64_t> register_memory(const MemoryRequest& request);  ///< the key
  void enable_memory(std::uint64_t key, EndpointId endpoint, std::uint32_t space = 0);
  /// False when the key is unknown. Running messages on it fail with kCancelled.
  bool deregister_memory(std::uint64_t key, std::uint32_t space = 0);

  // --- Operations
  // ----------------------------------------------------------------------------------------------------
  PostResult<Posted> send(Instant now, EndpointId endpoint, const SendRequest& request);
  PostResult<Posted> rma(Instant now, EndpointId endpoint, const RmaRequest& request);
  PostResult<Posted> atomic(Instant now, EndpointId endpoint, const AtomicRequest& request);
  PostResult<Posted> receive(Instant now, EndpointId endpoint, const ReceiveRequest& request);
  PostResult<Posted> peek(Instant now, EndpointId endpoint, const PeekRequest& request);
  /// Takes a claimed message into a buffer (or discards it).
  PostResult<Posted> claim_receive(Instant now, EndpointId endpoint, const ReceiveRequest& request,
                                   bool discard);
  /// Cancels the receive (or the not yet started send) posted with `context`: a completion with
  /// kCancelled follows. False when it is unknown or already matched.
  bool cancel(Instant now, EndpointId endpoint, std::uint64_t context);
  /// Free descriptors, of all endpoints together.
  std::size_t free_sends() const;
  std::size_t free_receives() const;

  // --- Loop
  // ------------------------------------------------------------------------------------------------------------
  void on_deadline(Instant now);
  Instant next_deadline() const;

  struct Gauges {
    std::size_t endpoints, peers, memory_regions, sends_active, receives_posted, messages_receiving,
        unexpected_messages, unexpected_bytes;
    std::size_t header_only_messages;  ///< unexpected ones for which there was no room
    std::size_t messages_fetching;     ///< a receive has them, and their rest is being read
    std::size_t messages_held;    ///< came before their turn among the ordered ones of their sender
    std::size_t senders;          ///< peers that hold any of the receiver's pools, or did lately
    std::size_t reads_returning;  ///< READs whose data is on its way back
    std::size_t returns_open;     ///< packets of read data waiting to leave or to be acknowledged
    std::size_t returns_waiting;  ///< of those, the ones that wait for a place with the carrier
    std::uint64_t
        refused_shares;  ///< since the start: messages and reads beyond the share of a source or PDC
  };
  Gauges gauges() const;

  // --- pds::Upper
  // ------------------------------------------------------------------------------------------------------
  pds::SegmentInfo emit_segment(pds::MessageToken token, std::uint32_t segment, pds::PdcRef pdc,
                                base::Psn psn, net::Packet& packet) override;
  pds::Answer on_request(Instant now, const pds::RxRequest& request) override;
  void on_response(Instant now, pds::MessageToken token, std::uint32_t segment,
                   std::uint8_t next_hdr, std::span<const std::uint8_t> response) override;
  void on_further_response(Instant now, pds::PdcRef pdc, std::uint8_t next_hdr,
                           std::span<const std::uint8_t> response) override;
  void on_message_error(Instant now, pds::MessageToken token, pds::PdsError error) override;
  pds::SesResponse default_response() const override;
  void on_pdc_gone(Instant now, pds::PdcRef pdc, net::FabricAddress peer,
                   pds::PdsError error) override;
  void on_pdc_closed(Instant now, pds::PdcRef pdc, net::FabricAddress peer) override;
  std::uint32_t yield_locks(Instant now, pds::PdcRef pdc) override;
  void on_resume(Instant now) override;
  std::uint32_t fill_of(std::uint32_t resource) override;
  bool stays_on_host(Instant now, const net::FabricAddress& peer) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace uet::ses
