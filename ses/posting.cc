#include "ses/posting.h"

#include <algorithm>

#include "ses/tx_atomics.h"

namespace uet::ses {

/// What operations of all kinds have in common.
struct Posting::Common {
  PeerId peer = 0;
  Delivery delivery{};
  std::span<const iovec> iov;
  DeviceMemory* device = nullptr;
  const std::optional<std::uint64_t>* data = nullptr;
  bool inject = false;
  bool delivery_complete = false;
  bool fence = false;
  bool completion_may_wait = false;
  std::uint8_t user_flags = 0;
  std::uint64_t context = 0;

  template <typename Request>
  explicit Common(const Request& r) : Common(r, r.iov, r.device, r.delivery) {}
  explicit Common(const AtomicRequest& r)
      : Common(r, r.operand, r.operand_device, Delivery::kReliable) {}

 private:
  template <typename Request>
  Common(const Request& r, std::span<const iovec> memory, DeviceMemory* whose, Delivery how)
      : peer(r.peer),
        delivery(how),
        iov(memory),
        device(whose),
        data(&r.data),
        inject(r.inject),
        delivery_complete(r.delivery_complete),
        fence(r.fence),
        completion_may_wait(r.completion_may_wait),
        user_flags(r.user_flags),
        context(r.context) {}
};

namespace {

/// [SES 2.4] Peers of the profile HPC do. Those that say nothing of their profile are asked; the key has already said that
/// its owner means it.
bool understands_rudi(const Address& peer) {
  return (peer.fep_cap & kProfiles) == 0 || (peer.fep_cap & kHpc) != 0;
}

/// [PDS 3.1] What UUD has no way to carry: order, tags, and the knowledge that something arrived.
bool may_be_datagram(const Endpoint& endpoint, const SendRequest& r) {
  return !r.tagged && !r.delivery_complete && !endpoint.config.sends_ordered;
}

/// [PDS 3.1] A notification cannot be repeated, and a packet that may come twice keeps no order.
bool may_be_idempotent(const Endpoint& endpoint, const RmaRequest& r) {
  return !r.data && !endpoint.config.rma_ordered;
}

SesOpcode opcode_of(const AtomicRequest& r) {
  if (r.tagged) return r.fetching ? SesOpcode::kTsendFetchAtomic : SesOpcode::kTsendAtomic;
  return r.fetching ? SesOpcode::kFetchingAtomic : SesOpcode::kAtomic;
}

/// What the user does not choose.
void assign(TxOp& op, Endpoint& endpoint, Flow& flow, SesOpcode opcode, std::uint64_t length) {
  op.endpoint = &endpoint;
  op.flow = &flow;
  op.peer = flow.peer;
  op.opcode = opcode;
  op.length = length;
  op.job_id = flow.peer->job.value_or(endpoint.config.job_id);
  op.initiator_id = endpoint.address.initiator_id;
  op.endpoint_id = endpoint.id;
  op.semantic = Semantic::kNone;  // an operation may end before its first attempt
  op.code = ReturnCode::kOk;
  op.retries = 0;
  op.awaits_delivery = op.peer_was_lost = op.reads_tell = false;
  op.keeper = op.times_asked = 0;
  op.is_deferrable = op.was_deferred = op.is_restart_due = op.is_withdrawn = false;
  op.own_token = op.target_token = 0;
  op.cancelled = op.memory_gone = op.returns_data = op.was_read = false;
  op.may_spray = op.is_sequenced = op.fills_gap = op.is_rendezvous = false;
  op.fetch = nullptr;
}

}  // namespace

PostResult<Posted> Posting::send(Instant now, Endpoint& endpoint, const SendRequest& request) {
  if (request.delivery == Delivery::kDatagram)
    return may_be_datagram(endpoint, request) ? send_datagram(now, endpoint, request)
                                              : PostError::kModeForbids;
  if (request.delivery != Delivery::kReliable) return PostError::kModeForbids;
  auto prepared = prepare(now, endpoint, Common(request),
                          request.tagged ? SesOpcode::kTaggedSend : SesOpcode::kSend);
  if (!prepared) return prepared.error();
  TxOp& op = **prepared;
  op.mkey_match = request.tagged ? request.tag : 0;
  op.buffer_offset = 0;
  const bool ordered = endpoint.config.sends_ordered;
  if (!ordered)
    op.lane = kUnorderedLane;
  else if (request.tagged && !endpoint.config.rma_ordered)
    op.lane = kOrderedTaggedLane;
  else
    op.lane = kOrderedLane;
  op.mode = op.lane == kUnorderedLane ? pds::Mode::kRud : pds::Mode::kRod;
  op.may_spray = core_.config.spray_ordered && ordered && !endpoint.config.rma_ordered &&
                 !endpoint.config.atomics_ordered &&
                 (op.peer->address.fep_cap & kRestoresOrder) != 0;
  if (op.length >= core_.config.rendezvous_from) [[unlikely]]
    (void)sources_.begin(op, core_.config.rendezvous_eager);  // else it goes as it is
  enqueue(now, op);
  return Posted{};
}

PostResult<Posted> Posting::send_datagram(Instant now, Endpoint& endpoint,
                                          const SendRequest& request) {
  auto prepared = prepare(now, endpoint, Common(request), SesOpcode::kDatagramSend);
  if (!prepared) return prepared.error();
  TxOp& op = **prepared;
  op.mkey_match = op.buffer_offset = 0;
  op.lane = kUnorderedLane;
  op.mode = pds::Mode::kUud;
  enqueue(now, op);
  return Posted{};
}

PostResult<Posted> Posting::rma(Instant now, Endpoint& endpoint, const RmaRequest& request) {
  if (request.read && (request.data || request.inject)) return PostError::kBadArgument;
  const bool idempotent = request.delivery == Delivery::kIdempotent;
  if (idempotent ? !may_be_idempotent(endpoint, request) : request.delivery != Delivery::kReliable)
    return PostError::kModeForbids;
  if (idempotent && (request.key & kKeyIdempotentSafe) == 0) return PostError::kBadKey;
  auto prepared =
      prepare(now, endpoint, Common(request), request.read ? SesOpcode::kRead : SesOpcode::kWrite);
  if (!prepared) return prepared.error();
  TxOp& op = **prepared;
  op.mkey_match = request.key;
  op.returns_data = request.read;
  op.buffer_offset = request.remote_offset;
  op.lane = endpoint.config.rma_ordered ? kOrderedLane : request.read ? kReadLane : kUnorderedLane;
  op.mode = idempotent                    ? pds::Mode::kRudi
            : endpoint.config.rma_ordered ? pds::Mode::kRod
                                          : pds::Mode::kRud;
  enqueue(now, op);
  return Posted{};
}

PostResult<Posted> Posting::atomic(Instant now, Endpoint& endpoint, const AtomicRequest& request) {
  auto part = describe_atomic(now, request);
  if (!part) return part.error();
  Common common(request);
  if (request.fetching) {  // its operand is in `part`
    common.iov = request.result;
    common.device = request.result_device;
    common.inject = false;
  }
  auto prepared = prepare(now, endpoint, common, opcode_of(request));
  if (!prepared) {
    operations_.give_back_atomic(**part);
    return prepared.error();
  }
  TxOp& op = **prepared;
  op.atomic = *part;
  op.returns_data = request.fetching;
  op.length = request.count * amo_bytes(request.type);  // INVAL carries nothing
  op.mkey_match = request.key;
  op.buffer_offset = request.remote_offset;
  const bool ordered = endpoint.config.atomics_ordered;
  op.lane = ordered ? kOrderedLane : kUnorderedLane;
  op.mode = ordered ? pds::Mode::kRod : pds::Mode::kRud;
  enqueue(now, op);
  return Posted{};
}

/// Checks the request as far as prepare() will not. It fills one packet at most; where the way carries less than our packets
/// hold it becomes several, if it may.
PostResult<AtomicPart*> Posting::describe_atomic(Instant now, const AtomicRequest& r) {
  if (!is_well_formed(r)) return PostError::kBadArgument;
  const std::size_t element = amo_bytes(r.type);
  const Peer* peer = core_.peers.find(r.peer);
  if (peer == nullptr) return PostError::kBadPeer;
  if (r.count > atomic_payload_of(core_.payload_mtu) / element) return PostError::kTooLong;
  const std::size_t bytes = r.count * element;
  const std::uint32_t payload = core_.payload_to(now, *peer, bytes);
  if (is_indivisible(r.tagged, r.data.has_value()) && bytes > atomic_payload_of(payload))
    return PostError::kTooLong;
  AtomicPart* part = operations_.acquire_atomic();
  if (part == nullptr) return PostError::kAgain;
  if (!fill_atomic(r, *part)) {
    operations_.give_back_atomic(*part);
    return PostError::kAgain;  // and then it is refused, since its user knows what the device is
  }
  return part;
}

/// Checks the request and fills a descriptor; nothing is left behind when it is refused.
PostResult<TxOp*> Posting::prepare(Instant now, Endpoint& endpoint, const Common& common,
                                   SesOpcode opcode) {
  Peer* peer = core_.peers.find(common.peer);
  if (peer == nullptr) return PostError::kBadPeer;
  // [SES 3] A process does not choose freely in whose name it speaks.
  if (peer->job && !endpoint.config.belongs_to(*peer->job)) return PostError::kBadJob;
  if (common.iov.size() > std::min<std::size_t>(core_.config.iov_limit, kMaxIov))
    return PostError::kBadArgument;
  std::uint64_t length = 0;
  for (const iovec& piece : common.iov)
    if (__builtin_add_overflow(length, piece.iov_len, &length)) return PostError::kTooLong;
  if (length > core_.config.max_message) return PostError::kTooLong;
  if (common.delivery != Delivery::kReliable) {
    if (common.delivery == Delivery::kIdempotent && !understands_rudi(peer->address))
      return PostError::kModeForbids;
    if (length > core_.payload_to(now, *peer, length)) return PostError::kTooLong;
  }
  if (common.inject && length > core_.config.inject_size) return PostError::kInjectTooLong;
  const bool is_send = opcode == SesOpcode::kSend || opcode == SesOpcode::kTaggedSend;
  if (is_send && peer->address.limits_sends() && !may_be_long(now, endpoint, *peer, length))
    return PostError::kTooLong;
  TxOp* op = operations_.acquire();
  if (op == nullptr) return PostError::kAgain;
  Flow* flow = queues_.flow_for(endpoint, *peer);
  op->inject_block = nullptr;
  op->inject_cost = 0;
  const bool has_buffer =
      flow != nullptr &&
      (common.inject && length > 0 ? operations_.copy_in(*op, common.iov, common.device)
                                   : op->iov.assign(common.iov, core_.iov_pool, common.device));
  if (!has_buffer) {
    if (flow != nullptr) queues_.release_if_idle(*flow);
    operations_.give_back(*op);
    return PostError::kAgain;
  }
  assign(*op, endpoint, *flow, opcode, length);
  op->has_header_data = common.data->has_value();
  op->header_data = common.data->value_or(0);
  op->context = common.context;
  op->delivery_complete = common.delivery_complete;
  op->fence = common.fence;
  op->completion_may_wait = common.completion_may_wait;
  op->user_flags = common.user_flags;
  return op;
}

/// [SES 6.4] To a peer that takes plain sends of one packet a longer one goes deferrable, which keeps no order.
bool Posting::may_be_long(Instant now, const Endpoint& endpoint, const Peer& peer,
                          std::uint64_t length) const {
  return !endpoint.config.sends_ordered || length <= core_.payload_to(now, peer, length);
}

void Posting::enqueue(Instant now, TxOp& op) {
  operations_.begin(op);
  ++op.endpoint->sends;
  queues_.enqueue(now, op);
}

bool Posting::fetch(Instant now, Fetch& fetch, const FetchRequest& request) {
  TxOp* op = operations_.acquire_for_fetch();
  if (op == nullptr) return false;
  const auto at = static_cast<std::size_t>(request.at);
  const auto length = static_cast<std::size_t>(request.length);
  const bool is_read = request.into != nullptr;
  Flow* flow = !is_read || op->iov.assign_part(*request.into, at, length, core_.iov_pool)
                   ? queues_.flow_for(*request.endpoint, fetch.peer)
                   : nullptr;
  if (flow == nullptr) {
    op->iov.clear(core_.iov_pool);
    operations_.give_back_for_fetch(*op);
    return false;
  }
  assign(*op, *request.endpoint, *flow, is_read ? SesOpcode::kRead : SesOpcode::kDeferrableRtr,
         request.length);
  op->fetch = &fetch;
  op->job_id = request.job_id;
  op->context = op->header_data = 0;
  op->inject_block = nullptr;
  op->inject_cost = 0;
  op->has_header_data = op->delivery_complete = op->fence = op->completion_may_wait = false;
  op->user_flags = 0;
  op->mkey_match = request.key;
  op->buffer_offset = request.remote_offset;
  op->returns_data = is_read;
  op->lane = is_read ? kReadLane : kUnorderedLane;
  op->mode = pds::Mode::kRud;
  fetch.operation = ref_of(*op);
  enqueue(now, *op);
  return true;
}

}  // namespace uet::ses
