#include "ses/transmitter.h"

#include <algorithm>

#include "ses/tx_segments.h"

namespace uet::ses {
namespace {

/// What this request of a READ asks for.
std::uint64_t bytes_of(const TxOp& op, std::uint32_t segment) {
  if (op.error_segment != 0 && segment + 1 >= op.error_segment) return 0;
  const std::uint64_t offset = std::uint64_t{segment} * op.piece;
  return std::min<std::uint64_t>(op.piece, op.length - std::min(op.length, offset));
}

}  // namespace

Transmitter::Transmitter(Core& core)
    : core_(core),
      sources_(core),
      operations_(core, sources_),
      responses_(operations_.max(), core.trace),
      queues_(core, operations_, sources_),
      outcomes_(core, operations_, sources_, responses_, queues_),
      posting_(core, operations_, sources_, queues_) {
  core.fetcher = this;
  core.region_reads = this;
  core.restarts = this;
}

bool Transmitter::cancel(Instant now, const Endpoint& endpoint, std::uint64_t context) {
  for (TxOp& op : operations_.by_age()) {
    const bool is_meant = op.endpoint == &endpoint && op.context == context && !op.cancelled;
    if (is_meant && op.fetch == nullptr && outcomes_.cancel(now, op)) return true;
  }
  return false;
}

/// What this endpoint has posted no longer waits to be sent together with more.
void Transmitter::hurry(Instant now, const Endpoint& endpoint) {
  for (TxOp& op : operations_.by_age())
    if (op.endpoint == &endpoint) queues_.hurry(now, *op.flow);
}

/// This endpoint's operations complete without an event from now on. What was injected still goes out, as it was
/// promised to.
void Transmitter::close_endpoint(Instant now, Endpoint& endpoint) {
  auto& all = operations_.by_age();
  for (auto it = all.begin(); it != all.end();) {
    TxOp& op = *it++;
    if (op.endpoint == &endpoint) outcomes_.detach(now, op);
  }
  for (TxOp& op : all)
    if (op.flow->endpoint == &endpoint) op.flow->endpoint = nullptr;
}

pds::SegmentInfo Transmitter::emit_segment(pds::MessageToken token, std::uint32_t segment,
                                           pds::PdcRef pdc, base::Psn psn, net::Packet& packet) {
  TxOp* op = operations_.find(token);
  UET_CHECK(op != nullptr);
  UET_CHECK(segment < op->segments);
  if (op->small) operations_.small_reads().remove(*op);
  op->pdc = pdc;
  if (op->small && op->returns_data) operations_.small_reads().put(*op, psn);
  op->emitted = std::max(op->emitted, segment + 1);
  return cut_segment(*op, segment, packet);
}

void Transmitter::on_response(Instant now, pds::MessageToken token, std::uint32_t segment,
                              std::uint8_t next_hdr, std::span<const std::uint8_t> response) {
  TxOp* op = operations_.find(token);
  if (op == nullptr || segment >= op->segments) {
    core_.trace.drop(now, base::DropReason::kSesUnknownResponse, response.size());
    return;
  }
  if (is_default_response(next_hdr, response) && outcomes_.finish_plain(now, *op)) [[likely]]
    return;
  if (op->answered < op->segments) ++op->answered;
  const bool is_accepted = responses_.read(now, *op, next_hdr, response);
  if (!is_accepted && op->returns_data) [[unlikely]]
    op->refused += bytes_of(*op, segment);
  outcomes_.advance(now, *op);
}

/// The verdict on a message whose packet was answered NO_RESPONSE. [SES 11.2 row 9] Copies of earlier answers come here too, so
/// only a RESPONSE counts, and only while no answer has decided anything: a PDS makes DEFAULT_RESPONSE for each duplicate of a
/// packet. A message without id cannot be named. See docs/decisions/0109.
void Transmitter::on_further_response(Instant now, pds::PdcRef pdc, std::uint8_t next_hdr,
                                      std::span<const std::uint8_t> bytes) {
  ResponseView response;
  if (!parse_response(next_hdr, bytes, response) || response.opcode != ResponseOpcode::kResponse)
    return;
  TxOp* op = operations_.find_carried(response.message_id);
  const bool waits = op != nullptr && op->pdc == pdc && op->job_id == response.job_id &&
                     !op->medium && !op->small && op->answered > 0 &&
                     op->semantic == Semantic::kNone && !op->awaits_delivery;
  if (!waits) return;
  responses_.read(now, *op, next_hdr, bytes);
  outcomes_.advance(now, *op);
}

/// Read data in the return direction of the read's PDC. [SES 6.3]
pds::Answer Transmitter::on_return_data(Instant now, const pds::RxRequest& request) {
  ResponseView response;
  if (!parse_response(request.next_hdr, request.bytes, response) || !response.has_data) {
    core_.trace.drop(now, base::DropReason::kSesMalformed, request.bytes.size());
    return answer_error({}, ReturnCode::kOpViolation, 0, true);
  }
  const pds::PdcRef pdc = request.handle.pdc;
  TxOp* op = response.is_small_data ? operations_.small_reads().find(pdc, response.request_psn)
                                    : operations_.find_returning(response.message_id);
  if (op == nullptr || op->pdc != pdc || op->job_id != response.job_id) {
    core_.trace.drop(now, base::DropReason::kSesUnknownResponse, request.bytes.size());
    return ResponseReader::refuse(response);
  }
  if (op->state == OpState::kEnded) [[unlikely]] {
    const pds::Answer answer = ResponseReader::refuse_late(*op, response);
    operations_.take_owed(*op, ResponseReader::worth(*op, response));
    return answer;
  }
  if (responses_.is_too_far(*op, response)) return answer_refuse();
  return take_data(now, *op, response);
}

pds::Answer Transmitter::take_data(Instant now, TxOp& op, const ResponseView& response) {
  const pds::Answer answer = responses_.take_data(op, response);
  queues_.end_asking(op, response.data.size());
  outcomes_.advance(now, op);
  return answer;
}

void Transmitter::on_message_error(Instant now, pds::MessageToken token, pds::PdsError error) {
  if (TxOp* op = operations_.find(token)) outcomes_.on_error(now, *op, error);
}

void Transmitter::on_pdc_gone(Instant now, pds::PdcRef pdc, pds::PdsError error) {
  outcomes_.on_pdc_gone(now, pdc, error);
}

void Transmitter::on_pdc_closed(Instant now, pds::PdcRef pdc) {
  outcomes_.on_pdc_closed(now, pdc);
}

std::uint32_t Transmitter::yield_locks(Instant now, pds::PdcRef pdc) {
  return outcomes_.yield_locks(now, pdc);
}

void Transmitter::on_resume(Instant now) {
  queues_.on_resume(now);
}

void Transmitter::on_deadline(Instant now) {
  outcomes_.truncate_wanted(now);
  while (TxOp* op = queues_.pop_expired(now)) outcomes_.expire(now, *op);
  queues_.pump_ready(now);
}

Instant Transmitter::next_deadline() const {
  return outcomes_.has_work() ? Instant() : queues_.next_deadline();
}

/// A READ of the rest of a message is complete.
void Transmitter::on_region_read(Instant now, PoolRef operation, std::uint64_t length) {
  TxOp* op = operations_.find(operation);
  if (op == nullptr || !op->is_rendezvous) return;
  RendezvousSources::note_read(*op, length);
  outcomes_.on_read(now, *op);
}

bool Transmitter::fetch(Instant now, Fetch& fetch, const FetchRequest& request) {
  return posting_.fetch(now, fetch, request);
}

void Transmitter::give_up(Instant now, Fetch& fetch) {
  TxOp* op = operations_.find(fetch.operation);
  if (op != nullptr && op->fetch == &fetch && op->endpoint != nullptr) outcomes_.detach(now, *op);
}

/// An older draft has the tokens the other way round. [SES 22.2]
TxOp* Transmitter::find_put_off(const net::FabricAddress& source, const RequestView& request) {
  TxOp* op = operations_.find_deferrable(request.initiator_token);
  if (op == nullptr) op = operations_.find_deferrable(request.target_token);
  const bool is_known = op != nullptr && op->endpoint != nullptr && !op->cancelled &&
                        op->peer->address.fabric_address == source && op->job_id == request.job_id;
  return is_known ? op : nullptr;
}

ReturnCode Transmitter::on_restart(Instant now, const Endpoint& endpoint,
                                   const net::FabricAddress& source, const RequestView& request) {
  TxOp* const op = find_put_off(source, request);
  if (op == nullptr || op->endpoint != &endpoint) return ReturnCode::kOpViolation;
  const bool is_old_order = op->own_token != request.initiator_token;
  return outcomes_.on_restart(now, *op,
                              is_old_order ? request.initiator_token : request.target_token);
}

void Transmitter::on_refused_restart(Instant now, const net::FabricAddress& source,
                                     const RequestView& request, ReturnCode code) {
  TxOp* const op = find_put_off(source, request);
  if (op != nullptr) outcomes_.on_refused_restart(now, *op, code);
}

}  // namespace uet::ses
