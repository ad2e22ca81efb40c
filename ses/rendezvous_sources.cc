#include "ses/rendezvous_sources.h"

#include <algorithm>

namespace uet::ses {

/// Where writes or atomics are in order with sends, the bytes of a send may not come behind those of a later write.
bool RendezvousSources::may_begin(const TxOp& op) const {
  const bool is_send = op.opcode == SesOpcode::kSend || op.opcode == SesOpcode::kTaggedSend;
  const std::uint16_t fetches = kFetchesRendezvous | kHpc;
  if (!core_.config.rendezvous || op.endpoint == nullptr) return false;
  const EndpointConfig& endpoint = op.endpoint->config;
  // What a target asked for by a token it waits for as it is. [SES 8.2]
  return is_send && op.target_token == 0 && !endpoint.rma_ordered && !endpoint.atomics_ordered &&
         op.length > 0 && !op.fills_gap && !op.peer->refuses_rendezvous &&
         (op.peer->address.fep_cap & fetches) != 0;
}

/// [SES 9 step 2]
bool RendezvousSources::begin(TxOp& op, std::uint32_t eager) {
  if (!may_begin(op)) return false;
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

void RendezvousSources::withdraw(const TxOp& op) {
  if (const MemoryRegion* region = core_.memory.find_source(op.source_key))
    core_.memory.remove(op.source_key, region->space);
}

/// [decision 142]
bool RendezvousSources::shrink(TxOp& op) {
  const bool had_no_room = op.code == ReturnCode::kNoMatch || op.code == ReturnCode::kDisabled ||
                           op.code == ReturnCode::kDisabledGen;
  if (!had_no_room || op.awaits_delivery) return false;
  if (op.is_rendezvous) {
    if (op.eager == 0) return false;
    op.eager = 0;  // there was no room for that either
    op.wanted = op.length;
  } else if (!begin(op, 0)) {
    return false;
  }
  op.peer->lacks_room = true;
  return true;
}

/// [SES 9 step 4] What the target says of an unexpected message is how much of that came with it; what a receive will want is not
/// known then.
void RendezvousSources::note_wanted(TxOp& op, const ResponseView& response) {
  if (response.opcode != ResponseOpcode::kResponse) return;
  if (response.list == ResponseList::kExpected) {
    const std::uint64_t taken = std::min<std::uint64_t>(response.modified_length, op.length);
    op.wanted = taken - std::min<std::uint64_t>(taken, op.eager);
    op.peer->lacks_room = false;
  }
  op.was_read = op.read_bytes >= op.wanted;
}

void RendezvousSources::note_read(TxOp& op, std::uint64_t length) {
  op.read_bytes += length;
  op.was_read = op.read_bytes >= op.wanted;
}

}  // namespace uet::ses
