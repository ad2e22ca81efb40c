// Hands a new packet to SES, takes the answer, and decides when it is acknowledged.
// [PDS 7.3, 9.4, 10.2]

#include "pds/engine.h"

namespace uet::pds {

void Engine::deliver(Instant now, Pdc& pdc, const Arrival& in) {
  if (in.is_control) return on_sequenced_control(now, pdc, in);

  const auto refuse = [&](NackCode code) {
    trace_.drop(now, DropReason::kNoResource, in.body.size(), pdc.id, in.psn);
    nacks_.add_for(now, in, &pdc, code);
    drop_unaccepted(now, pdc);
  };
  // SES may answer with something to keep: there must be room before it is asked. [PDS 9.4]
  if (!has_room_for_answer(now, pdc, in.psn)) [[unlikely]] {
    kept_.ask_for_clear(now, pdc);
    return refuse(NackCode::kNoGtdDelAvail);
  }
  if (!receiver_.can_track(pdc)) [[unlikely]]
    return refuse(NackCode::kNoResource);

  const PdcRef ref = pdc.ref();
  RxRequest request;
  request.handle = RxHandle{ref, in.psn, pdc.is_initiator};
  request.mode = in.mode;
  request.next_hdr = static_cast<std::uint8_t>(in.next_hdr);
  request.peer_pdcid = in.spdcid;
  request.source = in.source;
  request.bytes = in.body;
  const Answer answer = upper_.on_request(now, request);
  if (!table_.is_alive(ref)) return;  // SES aborted something on this PDC
  if (answer.kind == Answer::Kind::kRefuse) [[unlikely]]
    return refuse(static_cast<NackCode>(answer.nack_code));
  if (answer.resource != 0) [[unlikely]] {
    pdc.rx.resource = answer.resource;
    acks_.on_resource();
  }

  receiver_.accept(now, pdc, in, answer);
}

/// ROD: delivers what the reorder buffer held and has become in order.
void Engine::deliver_held(Instant now, Pdc& pdc) {
  const PdcRef ref = pdc.ref();
  while (const auto held = reorder_.take_next(pdc)) {
    deliver(now, pdc, held->arrival);
    if (!table_.is_alive(ref) || pdc.rx.edge != held->arrival.psn)
      return;  // gone, or refused: the source sends it again
  }
}

void Engine::respond(Instant now, RxHandle handle, const SesResponse& response, bool guaranteed) {
  Pdc* pdc = table_.by_ref(handle.pdc);
  if (pdc == nullptr) return trace_.drop(now, DropReason::kStaleAnswer);
  if (!receiver_.respond(now, *pdc, handle.psn, response, guaranteed))
    return trace_.drop(now, DropReason::kStaleAnswer, 0, pdc->id, handle.psn);
  if (pdc->state == PdcState::kClosing) try_finish_target_close(now, *pdc);
}

}  // namespace uet::pds
