#include "ses/rx_delivery.h"

#include <algorithm>

namespace uet::ses {

pds::Answer DeliveryReports::on_await(RequestContext& c) {
  const RequestView& r = c.request;
  Unexpected* u = awaited_.find(c.incoming(), r.message_id);
  if (u == nullptr && was_discarded(c.incoming(), r.message_id))
    return answer_error(r, ReturnCode::kCancelled, r.ri_generation, true);
  if (u == nullptr || u->endpoint != c.endpoint) return answer_await(r, false, core_.process_name);
  u->is_asked = true;
  u->asker = c.packet.handle;
  return answer_await(r, true, core_.process_name);
}

/// The medium form has no message id, so the initiator cannot ask for such a message.
void DeliveryReports::remember(const RequestContext& c, Unexpected& u) {
  if ((!c.request.dc && !u.is_rendezvous) || c.request.form != wire::NextHdr::kRequestStd) return;
  u.message_id = c.request.message_id;
  awaited_.add(u);
}

/// The message's descriptor is what the report is made of, so that none can fail for lack of room.
void DeliveryReports::report(Instant now, Unexpected& u, ReturnCode code) {
  if (code != ReturnCode::kOk && u.is_awaitable && !u.is_asked)
    discarded_[next_discarded_++ % kDiscarded] = {u.header, u.message_id};
  awaited_.remove(u);
  if (!u.is_asked) return store_.recycle(u);
  u.verdict = code;
  u.endpoint = nullptr;
  waiting_.push_back(u);
  submit(now);
}

/// A peer may ask about thousands of messages and acknowledge no report, so all reports together leave the carrier's places to read
/// data.
void DeliveryReports::submit(Instant now) {
  const std::uint32_t most = std::max<std::uint32_t>(1, core_.config.max_returns_carried / 8);
  while (!waiting_.empty() && carried_ < most) {
    Unexpected& u = waiting_.front();
    pds::TxMessage message;
    message.token = make_token(TokenKind::kDelivery, u.pool_index, u.serial);
    message.segments = 1;
    message.ses_header_bytes = wire::SesResponseData::kSize;
    message.segment_payload = core_.payload_mtu;
    const pds::SubmitResult result = core_.carrier->submit_return(now, u.asker, message);
    if (result == pds::SubmitResult::kAgain) return;  // the carrier calls again
    waiting_.pop_front();
    if (result == pds::SubmitResult::kNever)
      store_.recycle(u);
    else
      ++carried_;
  }
}

pds::SegmentInfo DeliveryReports::emit(pds::MessageToken token, net::Packet& packet) {
  const Unexpected* u = find(token);
  UET_CHECK(u != nullptr);
  wire::SesResponseData h;
  h.opcode = ResponseOpcode::kResponseWData;
  h.return_code = static_cast<wire::ReturnCode>(u->verdict);
  h.message_id = h.read_request_message_id = u->message_id;
  h.job_id = u->header.job_id;
  h.modified_length = u->verdict == ReturnCode::kOk ? u->length : 0;
  wire::emit(h, packet.append(wire::SesResponseData::kSize));
  return {static_cast<std::uint8_t>(wire::NextHdr::kResponseData)};
}

void DeliveryReports::end(Instant now, pds::MessageToken token) {
  Unexpected* u = find(token);
  if (u == nullptr) return;
  store_.recycle(*u);
  --carried_;
  submit(now);
}

void DeliveryReports::on_pdc_gone(pds::PdcRef pdc) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Unexpected& u = *it++;
    if (u.asker.pdc != pdc) continue;
    waiting_.erase(waiting_.iterator_to(u));
    store_.recycle(u);
  }
}

/// Forgets the message, too: its sender asks once.
bool DeliveryReports::was_discarded(const Incoming& sender, std::uint16_t message_id) {
  for (Discarded& d : discarded_) {
    if (d.message_id != message_id || d.sender.source != sender.source ||
        d.sender.job_id != sender.job_id || d.sender.initiator_id != sender.initiator_id)
      continue;
    d = {};
    return true;
  }
  return false;
}

Unexpected* DeliveryReports::find(pds::MessageToken token) {
  Unexpected* u = store_.at(index_of(token));
  if (u == nullptr) return nullptr;
  return make_token(TokenKind::kDelivery, u->pool_index, u->serial) == token ? u : nullptr;
}

}  // namespace uet::ses
