#include "pds/submit.h"

#include "lib/base/planted.h"
#include "pds/nominal.h"

namespace uet::pds {

Submission::Submission(Shared& shared, SendWindow& window, ProofRequests& proofs, Life& life,
                       Rudi& rudi, Uud& uud)
    : Part(shared.env),
      table_(shared.pdcs),
      messages_(shared.messages),
      failed_(shared.failed),
      room_(shared.room),
      scheduler_(shared.scheduler),
      window_(window),
      proofs_(proofs),
      lifecycle_(life.lifecycle),
      closing_(life.closing),
      admission_(life.admission),
      liveness_(life.liveness),
      rudi_(rudi),
      uud_(uud) {}

SubmitResult Submission::submit(Instant now, const TxMessage& request) {
  UET_CHECK(request.token != 0 && request.segments > 0);
  UET_DCHECK(messages_.find(request.token) == nullptr);
  if (messages_.is_full_for(false)) return room_.again();
  switch (request.mode) {
    case Mode::kUud:
      return uud_.submit(now, request);
    case Mode::kRudi:
      return rudi_.submit(now, request);
    case Mode::kRud:
    case Mode::kRod:
      break;
  }
  bool must_wait = false;
  Pdc* pdc = choose_pdc(now, request, must_wait);
  if (must_wait) return room_.again();
  if (pdc == nullptr) pdc = lifecycle_.open_initiator(now, request);
  if (pdc == nullptr) {
    lifecycle_.wait_for_identifier(now);
    // And let SES come again. [PDS 5.2]
    if (lifecycle_.lacks_place(request)) admission_.make_room(now, Role::kInitiator);
    return room_.again();
  }
  append(now, *pdc, request);
  return SubmitResult::kQueued;
}

/// Whether its range of PSNs lasts for the message, too.
bool Submission::has_psns_for(const Pdc& pdc, const TxMessage& request) const {
  return pdc.tx.next == pdc.start ||
         window_.has_psns_for(pdc, std::uint64_t{pdc.tx.queued_segments} + request.segments);
}

// The least loaded PDC of the key. Another one is opened only when all have so much queued that the
// new message would wait long behind it: they share one congestion window, so more PDCs do not send
// faster. [PDS 5.1]
Pdc* Submission::choose_pdc(Instant now, const TxMessage& request, bool& must_wait) {
  const PdcKey key{request.destination, request.mode, request.traffic_class, request.rod_context};
  if (recent_.version == table_.initiators_version() && recent_.key == key) [[likely]] {
    Pdc& pdc = *recent_.pdc;
    const TxHalf& tx = pdc.tx;
    if (pdc.accepts_messages() && tx.queued < config_.max_messages_per_pdc &&
        (pdc.is_rod() || tx.backlog < config_.pdc_spread_bytes) && has_psns_for(pdc, request))
        [[likely]]
      return &pdc;
  }
  Pdc* best = nullptr;
  Pdc* spent = nullptr;
  std::uint32_t accepting = 0;
  std::uint32_t total = 0;
  table_.for_each_of(key, [&](Pdc& pdc) {
    ++total;
    if (!pdc.accepts_messages()) return;
    if (!has_psns_for(pdc, request)) {
      spent = &pdc;
      return;
    }
    ++accepting;
    if (best == nullptr || pdc.tx.backlog < best->tx.backlog) best = &pdc;
  });
  if (total == 1 && best != nullptr) recent_ = {key, best, table_.initiators_version()};
  if (spent != nullptr) closing_.begin(now, *spent);  // what it has is sent, a successor takes over
  if (request.mode == Mode::kRod) {
    // A successor could overtake what is still unacknowledged on its predecessor. [PDS 5.1]
    must_wait = total > 0 && best == nullptr;
  } else if (best != nullptr && best->tx.backlog >= config_.pdc_spread_bytes &&
             accepting < config_.max_pdc_per_key && !table_.is_full_for(Role::kInitiator)) {
    return nullptr;
  }
  if (best != nullptr && best->tx.queued >= config_.max_messages_per_pdc) must_wait = true;
  return best;
}

void Submission::append(Instant now, Pdc& pdc, const TxMessage& request) {
  Message& message = messages_.add(request, !pdc.is_initiator);
  message.pdc = &pdc;
  Congestion& congestion = pdc.tx.cc.of(message);
  trace_.emit(now, EventId::kMessageQueued, pdc.id, {}, request.segments, request.payload_bytes);
  if (!pdc.has_tx_work()) pdc.busy_since = now;
  pdc.active_at = now;
  table_.touch(pdc);
  if (request.lock) ++pdc.locks;
  pdc.tx.queue.push_back(message);
  ++pdc.tx.queued;
  pdc.tx.queued_segments += request.segments;
  const ByteCount per_segment =
      env_.nominal_bytes(congestion.request_header_bytes + request.ses_header_bytes);
  const ByteCount bytes =
      per_segment * request.segments + static_cast<ByteCount>(request.payload_bytes);
  pdc.tx.backlog += bytes;
  congestion.ccc->on_new_data(now, bytes);
  if (pdc.deadline(PdcTimer::kLiveness).is_never()) liveness_.look(now, pdc);
  scheduler_.wake(pdc);
  if (env_.sends_credit_state) scheduler_.on_congestion_timer(now, congestion);
}

SubmitResult Submission::submit_return(Instant now, RxHandle handle, const TxMessage& request) {
  Pdc* pdc = table_.by_ref(handle.pdc);
  if (pdc == nullptr && base::planted(base::PlantedBug::kCloseKeepsReads)) return room_.again();
  if (pdc == nullptr || pdc->is_initiator)
    return base::planted(base::PlantedBug::kReturnServed) ? room_.again() : SubmitResult::kNever;
  if (messages_.is_full_for(true)) return room_.again();
  if (!lifecycle_.attach_congestion(now, *pdc)) return room_.again();
  append(now, *pdc, request);
  proofs_.ask(now, *pdc);
  if (!window_.has_psns_for(*pdc, pdc->tx.queued_segments)) closing_.begin(now, *pdc);
  return SubmitResult::kQueued;
}

void Submission::abort(Instant now, MessageToken token) {
  Message* message = messages_.find(token);
  if (message == nullptr) return;
  if (message->request.mode == Mode::kUud) return uud_.abort(*message);
  if (message->rudi != nullptr) return rudi_.abort(*message);
  if (message->pdc == nullptr) {  // its PDC has failed and the error is about to be reported
    return failed_.drop(*message);
  }
  Pdc& pdc = *message->pdc;
  if (message->unanswered > 0) {
    // Its PSNs cannot be taken back, and holes would block the PDC for ever. [PDS 16.5]
    message->is_silent = true;
    return closing_.fail(now, pdc, PdsError::kAborted);
  }
  ByteCount left = 0;
  for (std::uint32_t s = message->next_segment; s < message->request.segments; ++s)
    left += nominal_of(env_, pdc, *message, s);
  pdc.tx.backlog -= left;
  pdc.tx.queued_segments -= message->request.segments - message->next_segment;
  pdc.tx.cc.of(*message).ccc->on_new_data(now, -left);
  if (message->hook.is_linked()) {
    pdc.tx.queue.erase(pdc.tx.queue.iterator_to(*message));
    --pdc.tx.queued;
  }
  if (message->request.lock && pdc.locks > 0) --pdc.locks;
  messages_.forget(*message);
  // What left before it may have counted on it to ask for the ACK.
  scheduler_.hurry(pdc);
  closing_.proceed(now, pdc);
}

std::uint32_t Submission::truncate(Instant now, MessageToken token, std::uint32_t extra_segments) {
  Message* message = messages_.find(token);
  if (message == nullptr) return 0;
  const std::uint32_t sent = message->next_segment;
  if (message->pdc == nullptr || message->is_fully_sent()) return sent;
  Pdc& pdc = *message->pdc;
  ByteCount change = 0;
  for (std::uint32_t s = sent; s < message->request.segments; ++s)
    change -= nominal_of(env_, pdc, *message, s);
  message->payload_segments = sent;
  pdc.tx.queued_segments -= message->request.segments - sent;
  pdc.tx.queued_segments += extra_segments;
  message->request.segments = sent + extra_segments;
  for (std::uint32_t s = sent; s < message->request.segments; ++s)
    change += nominal_of(env_, pdc, *message, s);
  pdc.tx.backlog += change;
  pdc.tx.cc.of(*message).ccc->on_new_data(now, change);
  if (message->is_fully_sent()) {
    pdc.tx.queue.erase(pdc.tx.queue.iterator_to(*message));
    --pdc.tx.queued;
    if (message->unanswered == 0) messages_.forget(*message);
  }
  scheduler_.wake(pdc);
  return sent;
}

void Submission::hurry(MessageToken token) {
  const Message* message = messages_.find(token);
  if (message != nullptr && message->pdc != nullptr) scheduler_.hurry(*message->pdc);
}

void Submission::unlock(Instant now, PdcRef ref) {
  Pdc* pdc = table_.by_ref(ref);
  if (pdc == nullptr || pdc->locks == 0) return;
  --pdc->locks;
  pdc->active_at = now;
  closing_.proceed(now, *pdc);
  room_.settle(now);
}

}  // namespace uet::pds
