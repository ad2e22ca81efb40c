// Rendezvous at the initiator, and the READs of a target. [SES 9, decision 142]
#include <algorithm>

#include "ses/transmitter.h"

namespace uet::ses {

/// Where writes or atomics are in order with sends, the bytes of a send may not come behind those of a later write.
bool Transmitter::may_begin_rendezvous(const TxOp& op) const {
  constexpr std::uint16_t kHpc = 0b100;
  const bool is_send = op.opcode == SesOpcode::kSend || op.opcode == SesOpcode::kTaggedSend;
  const std::uint16_t fetches = kFetchesRendezvous | kHpc;
  if (!core_.config.rendezvous || op.endpoint == nullptr) return false;
  const EndpointConfig& endpoint = op.endpoint->config;
  // What a target asked for by a token it waits for as it is. [SES 8.2]
  return is_send && op.target_token == 0 && !endpoint.rma_ordered && !endpoint.atomics_ordered &&
         op.length > 0 && !op.fills_gap && !op.peer->refuses_rendezvous &&
         (op.peer->address.fep_cap & fetches) != 0;
}

/// As a rendezvous if that can be, or as it is.
PostResult<Posted> Transmitter::send_long(Instant now, TxOp& op) {
  (void)begin_rendezvous(op, core_.config.rendezvous_eager);
  enqueue(now, op);
  return Posted{};
}

/// [SES 9 step 2] The user's buffer can be read by this target from now on. False when that is not for this target, or there is
/// no place for one more region.
bool Transmitter::begin_rendezvous(TxOp& op, std::uint32_t eager) {
  if (!may_begin_rendezvous(op)) return false;
  const Endpoint& endpoint = *op.endpoint;
  MemoryRequest request;
  request.iov = op.iov.as_span();
  request.device = op.iov.device();
  request.remote_read = true;
  request.virtual_addressing = false;
  request.job_id = op.job_id;
  request.endpoint = op.endpoint_id;
  request.space = endpoint.config.memory_space;
  const MemoryRegion* region =
      core_.memory.add_source(request, ref_of(op), op.peer->address.fabric_address, core_.rng);
  if (region == nullptr) return false;
  op.is_rendezvous = true;
  op.was_read = false;
  op.source_key = region->key;
  op.source_pid = endpoint.address.pid_on_fep;
  op.source_index = endpoint.address.resource_index;
  op.eager = static_cast<std::uint32_t>(std::min<std::uint64_t>(eager, op.length));
  op.read_bytes = 0;
  op.wanted = op.length - op.eager;
  return true;
}

/// The user's buffer is not read any more.
void Transmitter::withdraw_source(const TxOp& op) {
  if (const MemoryRegion* region = core_.memory.find_source(op.source_key))
    core_.memory.remove(op.source_key, region->space);
}

/// A target that had no room for the whole message may have some for its header. [decision 142]
bool Transmitter::becomes_rendezvous(TxOp& op) {
  const bool had_no_room = op.code == ReturnCode::kNoMatch || op.code == ReturnCode::kDisabled ||
                           op.code == ReturnCode::kDisabledGen;
  if (!had_no_room || op.awaits_delivery) return false;
  if (op.is_rendezvous) {
    if (op.eager == 0) return false;
    op.eager = 0;  // there was no room for that either
    op.wanted = op.length;
  } else if (!begin_rendezvous(op, 0)) {
    return false;
  }
  op.peer->lacks_room = true;
  return true;
}

/// Until one of them meets a receive: what would be refused for its length is not sent in vain. Behind messages that were sent as
/// they are it is: these may be refused, and a gate that was closed for one of them opens for a rendezvous that looks like it.
void Transmitter::prefer_rendezvous(TxOp& op) {
  const Lane& lane = lane_of(op);
  const bool may_pass = op.lane == kUnorderedLane || lane.carried == 0 || !lane.carries_plain;
  if (op.length > kSmallestPayload && !op.is_rendezvous && !op.awaits_delivery && may_pass)
    (void)begin_rendezvous(op, 0);
}

void Transmitter::size_rendezvous(TxOp& op, pds::TxMessage& message) {
  Lane& lane = lane_of(op);
  if (lane.carried == 0) lane.carries_plain = false;
  lane.must_empty = !op.peer->takes_rendezvous;
  op.medium = false;
  message.ses_header_bytes = wire::SesStandardFirst::kSize;
  if (op.awaits_delivery) return;
  op.segments = segments_for(op.eager, op.piece);
  message.segments = op.segments;
  message.ses_header_bytes += wire::ExtRendezvous::kSize;
  message.payload_bytes = op.eager;
}

/// [SES 9 step 4] How much the target will read. What it says of an unexpected message is how much of that came with it; what a
/// receive will want is not known then.
void Transmitter::note_wanted(TxOp& op, const ResponseView& response) {
  if (response.opcode != ResponseOpcode::kResponse) return;
  if (response.list == ResponseList::kExpected) {
    const std::uint64_t taken = std::min<std::uint64_t>(response.modified_length, op.length);
    op.wanted = taken - std::min<std::uint64_t>(taken, op.eager);
    op.peer->lacks_room = false;
  }
  op.was_read = op.read_bytes >= op.wanted;
}

/// A READ of the rest of a message is complete.
void Transmitter::on_region_read(Instant now, PoolRef operation, std::uint64_t length) {
  TxOp* op = ops_.find(operation);
  if (op == nullptr || !op->is_rendezvous) return;
  op->read_bytes += length;
  op->was_read = op->read_bytes >= op->wanted;
  if (!op->was_read || !op->awaits_delivery) return;
  if (op->state == OpState::kCarried) return advance(now, *op);
  unlink_waiting(*op);  // no need to ask again
  finish(now, *op, ReturnCode::kOk);
}

bool Transmitter::fetch(Instant now, Fetch& fetch, const FetchRequest& request) {
  if (kept_for_fetches_ == 0) return false;
  TxOp* op = ops_.acquire();
  if (op == nullptr) return false;
  const auto at = static_cast<std::size_t>(request.at);
  const auto length = static_cast<std::size_t>(request.length);
  const bool is_read = request.into != nullptr;
  Flow* flow = !is_read || op->iov.assign_part(*request.into, at, length, core_.iov_pool)
                   ? flow_for(*request.endpoint, fetch.peer)
                   : nullptr;
  if (flow == nullptr) {
    op->iov.clear(core_.iov_pool);
    ops_.release(op);
    return false;
  }
  --kept_for_fetches_;
  core_.peers.hold(fetch.peer);
  assign(*op, *request.endpoint, *flow, is_read ? SesOpcode::kRead : SesOpcode::kDeferrableRtr,
         request.length);
  op->fetch = &fetch;
  op->job_id = request.job_id;
  op->context = op->header_data = 0;
  op->inject_block = nullptr;
  op->inject_cost = 0;
  op->has_header_data = op->delivery_complete = op->fence = false;
  op->silent = true;
  op->user_flags = 0;
  op->mkey_match = request.key;
  op->buffer_offset = request.remote_offset;
  op->returns_data = is_read;
  op->lane = kUnorderedLane;
  op->mode = pds::Mode::kRud;
  fetch.operation = ref_of(*op);
  enqueue(now, *op);
  return true;
}

void Transmitter::give_up(Instant now, Fetch& fetch) {
  TxOp* op = ops_.find(fetch.operation);
  if (op == nullptr || op->fetch != &fetch || op->endpoint == nullptr) return;
  detach(now, *op);
}

}  // namespace uet::ses
