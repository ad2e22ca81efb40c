#include "ses/rx_delivery.h"

#include <algorithm>

namespace uet::ses {

pds::Answer DeliveryReports::on_await(RequestContext& c) {
  const RequestView& r = c.request;
  UnexpectedMessage* u = awaited_.find(c.incoming(), r.message_id);
  if (u == nullptr && was_discarded(c.incoming(), r.message_id))
    return answer_error(r, ReturnCode::kCancelled, r.ri_generation, true);
  if (u == nullptr || u->endpoint != c.endpoint) return answer_await(r, false, core_.process_name);
  u->is_asked = true;
  u->asker = c.packet.handle;
  return answer_await(r, true, core_.process_name);
}

/// The medium form has no message id, so the initiator cannot ask for such a message.
void DeliveryReports::remember(const RequestContext& c, UnexpectedMessage& u) {
  if ((!c.request.dc && !u.is_rendezvous) || c.request.form != wire::NextHdr::kRequestStd) return;
  u.message_id = c.request.message_id;
  awaited_.add(u);
}

/// The message's descriptor is what the report is made of, so that none can fail for lack of room.
void DeliveryReports::report(Instant now, UnexpectedMessage& u, ReturnCode code) {
  if (code != ReturnCode::kOk && u.is_awaitable && !u.is_asked)
    discarded_[next_discarded_++ % kDiscarded] = {u.header, u.message_id};
  awaited_.remove(u);
  if (!u.is_asked) return store_.recycle(u);
  u.verdict = code;
  ++u.sender->reports_open;
  u.endpoint = nullptr;
  senders_.hold(*u.sender);
  wait(u);
  submit(now);
}

/// Those of one source go in their order.
void DeliveryReports::wait(UnexpectedMessage& u) {
  Sender& sender = *u.sender;
  if (sender.reports.empty()) {
    sender.has_report_turn = true;
    turns_.push_back(sender);
  }
  sender.reports.push_back(u);
}

void DeliveryReports::end_wait(UnexpectedMessage& u) {
  Sender& sender = *u.sender;
  sender.reports.erase(sender.reports.iterator_to(u));
  if (!sender.reports.empty()) return;
  ReportTurnList& list = sender.has_report_turn ? turns_ : at_share_;
  list.erase(list.iterator_to(sender));
  sender.has_report_turn = false;
}

/// A peer may ask about thousands of messages and acknowledge no report, so all reports together leave the carrier's places to read
/// data, and those of one source leave half of theirs to others.
bool DeliveryReports::may_carry(const Sender& sender) const {
  return has_share(sender.reports_carried, most_carried() - carried_ - 1);
}

/// Sources take turns, one report each.
void DeliveryReports::submit(Instant now) {
  while (!turns_.empty() && carried_ < most_carried()) {
    Sender& sender = turns_.front();
    if (!may_carry(sender)) {
      sender.has_report_turn = false;
      at_share_.splice(at_share_.end(), turns_, turns_.begin());
      continue;
    }
    UnexpectedMessage& u = sender.reports.front();
    pds::TxMessage message;
    message.token = make_token(TokenKind::kDelivery, u.pool_index, u.serial);
    message.segments = 1;
    message.ses_header_bytes = wire::SesResponseData::kSize;
    message.segment_payload = core_.payload_mtu;
    const pds::SubmitResult result = core_.carrier->submit_return(now, u.asker, message);
    if (result == pds::SubmitResult::kAgain) return;  // the carrier calls again
    turns_.splice(turns_.end(), turns_, turns_.begin());
    end_wait(u);
    if (result == pds::SubmitResult::kNever) {
      drop(u);
    } else {
      ++sender.reports_carried;
      ++carried_;
    }
  }
}

pds::SegmentInfo DeliveryReports::emit(pds::MessageToken token, net::Packet& packet) {
  const UnexpectedMessage* u = find(token);
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
  UnexpectedMessage* u = find(token);
  if (u == nullptr) return;
  Sender& sender = *u->sender;
  --sender.reports_carried;
  --carried_;
  if (!sender.reports.empty() && !sender.has_report_turn) {
    sender.has_report_turn = true;
    turns_.splice(turns_.end(), at_share_, at_share_.iterator_to(sender));
  }
  drop(*u);
  submit(now);
}

void DeliveryReports::drop(UnexpectedMessage& u) {
  Sender& sender = *u.sender;
  --sender.reports_open;
  store_.recycle(u);
  if (Endpoint* const endpoint = core_.endpoints.find(sender.endpoint))
    for (RiSpace& space : endpoint->spaces) gates_.open_all(space);
  senders_.unhold(sender);
}

void DeliveryReports::on_pdc_gone(pds::PdcRef pdc, const net::FabricAddress& peer) {
  drop_waiting(turns_, pdc, peer);
  drop_waiting(at_share_, pdc, peer);
}

void DeliveryReports::drop_waiting(ReportTurnList& senders, pds::PdcRef pdc,
                                   const net::FabricAddress& peer) {
  for (auto it = senders.begin(); it != senders.end();) {
    Sender& sender = *it++;
    if (sender.address != peer) continue;
    for (auto at = sender.reports.begin(); at != sender.reports.end();) {
      UnexpectedMessage& u = *at++;
      if (u.asker.pdc != pdc) continue;
      end_wait(u);
      drop(u);
    }
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

UnexpectedMessage* DeliveryReports::find(pds::MessageToken token) {
  UnexpectedMessage* u = store_.at(index_of(token));
  if (u == nullptr) return nullptr;
  return make_token(TokenKind::kDelivery, u->pool_index, u->serial) == token ? u : nullptr;
}

}  // namespace uet::ses
