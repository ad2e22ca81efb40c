// Delivery complete for messages that met no receive: their sender asks, and hears when one has taken them.
// [SES 14.1, decision 105]
#include "ses/receiver.h"

namespace uet::ses {

/// The sender of a captured message wants to know when a receive has it. What is not known here has been taken already.
pds::Answer Receiver::on_await_delivery(Context& c) {
  const RequestView& r = c.request;
  Unexpected* u = awaited_.find(c.incoming(), r.message_id);
  if (u == nullptr || u->endpoint != c.endpoint) return answer_await(r, false, core_.process_name);
  u->is_asked = true;
  u->asker = c.packet.handle;
  return answer_await(r, true, core_.process_name);
}

/// `u` is in no list of its endpoint any more, and its payload is gone: says so to the sender that waits for it. Its descriptor
/// is what the report is made of, so that none can fail for lack of room.
void Receiver::report_delivery(Instant now, Unexpected& u, ReturnCode code) {
  awaited_.remove(u);
  if (!u.is_asked) return store_.recycle(u);
  u.verdict = code;
  u.endpoint = nullptr;
  reports_.push_back(u);
  submit_reports(now);
}

void Receiver::submit_reports(Instant now) {
  while (!reports_.empty()) {
    Unexpected& u = reports_.front();
    pds::TxMessage message;
    message.token = make_token(TokenKind::kDelivery, u.pool_index, u.serial);
    message.segments = 1;
    message.ses_header_bytes = wire::SesResponseData::kSize;
    message.segment_payload = core_.payload_mtu;
    const pds::SubmitResult result = core_.carrier->submit_return(now, u.asker, message);
    if (result == pds::SubmitResult::kAgain) return;  // the carrier calls again
    reports_.pop_front();
    if (result == pds::SubmitResult::kNever) store_.recycle(u);
  }
}

pds::SegmentInfo Receiver::emit_report(pds::MessageToken token, net::Packet& packet) {
  const Unexpected* u = find_report(token);
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

void Receiver::end_report(pds::MessageToken token) {
  if (Unexpected* u = find_report(token)) store_.recycle(*u);
}

Unexpected* Receiver::find_report(pds::MessageToken token) {
  Unexpected* u = store_.at(index_of(token));
  if (u == nullptr) return nullptr;
  return make_token(TokenKind::kDelivery, u->pool_index, u->serial) == token ? u : nullptr;
}

}  // namespace uet::ses
