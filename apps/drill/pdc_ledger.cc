#include "apps/drill/pdc_ledger.h"

#include <algorithm>

#include "apps/drill/headers.h"
#include "lib/wire/enums.h"

namespace uet::drill {

namespace {

using wire::ControlType;
using wire::PdsType;

/// The outer header of a packet, by field.
class Outer {
 public:
  explicit Outer(std::span<const std::uint8_t> packet) {
    const auto headers = tell_headers(packet);
    if (headers.empty()) return;
    name_ = headers.front()->name();
    fields_ = *headers.front()->decode(packet);
  }

  bool has(std::string_view field) const { return fields_.contains(field); }
  std::uint64_t at(std::string_view field) const {
    const auto it = fields_.find(field);
    return it == fields_.end() ? 0 : it->second;
  }
  std::uint16_t id(std::string_view field) const { return static_cast<std::uint16_t>(at(field)); }
  std::uint32_t psn() const { return static_cast<std::uint32_t>(at("psn")); }
  std::uint32_t start() const { return psn() - static_cast<std::uint32_t>(at("psn_offset")); }
  bool is_request() const { return name_.starts_with("request"); }
  bool is_ack() const { return name_.starts_with("ack"); }
  bool is_nack() const { return name_ == "nack"; }
  bool is_syn() const { return name_.ends_with("_syn"); }
  bool is_control() const { return name_.starts_with("control"); }
  bool is_control(ControlType type) const {
    return is_control() && at("ctl_type") == static_cast<std::uint64_t>(type);
  }
  bool consumes_psn() const {
    return is_request() || is_control(ControlType::kNoop) ||
           is_control(ControlType::kNegotiation) || is_control(ControlType::kCloseCommand);
  }
  bool is_rod() const {
    const auto type = static_cast<PdsType>(at("type"));
    return type == PdsType::kRodReq || type == PdsType::kRodCcReq || at("isrod") != 0;
  }

 private:
  std::string_view name_;
  FieldValues fields_;
};

PdcLedger::Bytes make(std::string_view header, const FieldValues& fields) {
  return find_header(header)->encode(fields);
}

std::uint64_t value(ControlType type) {
  return static_cast<std::uint64_t>(type);
}

PdcLedger::Bytes ack_of(const Outer& packet) {
  return make("ack", {{"cack_psn", packet.psn()},
                      {"spdcid", packet.at("dpdcid")},
                      {"dpdcid", packet.at("spdcid")}});
}

/// Acknowledges a Request as an operation that went well, and asks for the close.
PdcLedger::Bytes success_of(std::span<const std::uint8_t> packet, std::uint16_t own_id,
                            std::uint32_t newest, std::uint32_t psn) {
  const auto headers = tell_headers(packet);
  FieldValues request;
  if (headers.size() > 1) request = *headers[1]->decode(packet.subspan(headers[0]->size()));
  auto ack = make("ack", {{"next_hdr", static_cast<std::uint64_t>(wire::NextHdr::kResponse)},
                          {"req", static_cast<std::uint64_t>(wire::AckReq::kClose)},
                          {"cack_psn", newest},
                          {"ack_psn_offset", psn - newest},
                          {"spdcid", own_id},
                          {"dpdcid", Outer(packet).at("spdcid")}});
  const auto response =
      make("response", {{"return_code", static_cast<std::uint64_t>(wire::ReturnCode::kOk)},
                        {"message_id", request["message_id"]},
                        {"job_id", request["job_id"]},
                        {"modified_length", request["request_length"]}});
  ack.insert(ack.end(), response.begin(), response.end());
  return ack;
}

bool is_newer(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) > 0;
}

}  // namespace

void PdcLedger::begin(std::set<std::uint16_t> own_ids) {
  retired_.insert(own_.begin(), own_.end());
  own_ = std::move(own_ids);
  past_syns_.insert(syns_.begin(), syns_.end());
  syns_.clear();
  for (const auto& [id, pdc] : pdcs_)
    if (pdc.is_theirs && !pdc.is_closed) theirs_of_the_past_.insert_or_assign(id, pdc);
  pdcs_.clear();
}

void PdcLedger::on_sent(std::span<const std::uint8_t> packet) {
  const Outer p(packet);
  const std::uint16_t id = p.id("spdcid");
  if (!own_.contains(id)) return;
  if (p.is_ack()) {  // of a PDC that the peer opened
    const auto cack = static_cast<std::uint32_t>(p.at("cack_psn"));
    Pdc& pdc = pdcs_.try_emplace(id, Pdc{.is_theirs = true, .newest = cack}).first->second;
    if (!pdc.is_theirs) return;
    pdc.peer_id = p.id("dpdcid");
    const auto offset = static_cast<std::int16_t>(p.at("ack_psn_offset"));
    const std::uint32_t acked = cack + static_cast<std::uint32_t>(std::max<int>(offset, 0));
    if (is_newer(acked, pdc.newest)) pdc.newest = acked;
    if (pdc.close_psn && !is_newer(*pdc.close_psn, cack)) pdc.is_closed = true;
  } else if (p.consumes_psn() && (p.is_syn() || pdcs_.contains(id))) {
    const auto [it, is_new] = pdcs_.try_emplace(id);
    Pdc& pdc = it->second;
    if (pdc.is_theirs) return;
    if (is_new || is_newer(p.psn(), pdc.newest)) pdc.newest = p.psn();
    pdc.is_rod = p.is_rod();
    if (p.is_control(ControlType::kCloseCommand)) pdc.close_psn = p.psn();
  }
}

void PdcLedger::on_received(std::span<const std::uint8_t> packet) {
  const Outer p(packet);
  if (p.is_syn()) syns_.emplace(p.id("spdcid"), p.start());
  const auto it = pdcs_.find(p.id("dpdcid"));
  if (it == pdcs_.end()) return;
  Pdc& pdc = it->second;
  if (pdc.is_theirs) {
    if (p.is_control(ControlType::kCloseCommand)) pdc.close_psn = p.psn();
    if (p.consumes_psn() && p.psn() == pdc.newest + 1) pdc.newest = p.psn();
    return;
  }
  if ((p.is_ack() || p.is_request()) && p.id("spdcid") != 0) pdc.peer_id = p.id("spdcid");
  const auto cack = static_cast<std::uint32_t>(p.at("cack_psn"));
  if (p.is_ack() && pdc.close_psn && !is_newer(*pdc.close_psn, cack)) pdc.is_closed = true;
  if (p.is_nack() && pdc.close_psn && p.at("nack_psn") == *pdc.close_psn) pdc.is_closed = true;
}

bool PdcLedger::is_of_the_past(std::span<const std::uint8_t> packet) const {
  const Outer p(packet);
  if (p.is_syn()) return past_syns_.contains({p.id("spdcid"), p.start()});
  if (retired_.contains(p.id("dpdcid"))) return true;
  // What an endpoint still asks those who had our address before.
  const bool asks = p.is_request() || p.is_control();
  return asks && !own_.contains(p.id("dpdcid"));
}

PdcLedger::Bytes PdcLedger::answer_to_the_past(std::span<const std::uint8_t> packet) {
  const Outer p(packet);
  if (p.is_control(ControlType::kCloseCommand)) {
    theirs_of_the_past_.erase(p.id("dpdcid"));
    return ack_of(p);
  }
  Bytes answer = answer_as_target(theirs_of_the_past_, packet);
  if (!answer.empty() || p.is_syn()) return answer;
  if (!p.consumes_psn() && !p.is_control(ControlType::kCloseRequest)) return {};
  constexpr auto kCode = static_cast<std::uint64_t>(wire::NackCode::kInvDpdcid);
  return make("nack", {{"nack_code", kCode}, {"nack_psn", p.psn()}, {"dpdcid", p.at("spdcid")}});
}

/// Openings of the peer that the script left without an ACK get a PDC after all.
void PdcLedger::adopt_unanswered() {
  for (const auto& [peer_id, start] : syns_) {
    const auto is_peer = [id = peer_id](const auto& entry) { return entry.second.peer_id == id; };
    if (std::any_of(pdcs_.begin(), pdcs_.end(), is_peer)) continue;
    for (const std::uint16_t id : own_)
      if (pdcs_.try_emplace(id, Pdc{.is_theirs = true, .peer_id = peer_id, .newest = start - 1})
              .second)
        break;
  }
}

std::vector<PdcLedger::Bytes> PdcLedger::farewells() {
  adopt_unanswered();
  std::vector<Bytes> packets;
  for (const auto& [id, pdc] : pdcs_) {
    if (pdc.is_closed || !pdc.peer_id) continue;
    if (pdc.is_theirs) {
      constexpr auto kClose = static_cast<std::uint64_t>(wire::AckReq::kClose);
      packets.push_back(make(
          "ack",
          {{"req", kClose}, {"cack_psn", pdc.newest}, {"spdcid", id}, {"dpdcid", *pdc.peer_id}}));
      continue;
    }
    const FieldValues pdc_fields = {
        {"spdcid", id}, {"dpdcid", *pdc.peer_id}, {"isrod", pdc.is_rod ? 1 : 0}};
    FieldValues clear = pdc_fields;
    clear["ctl_type"] = value(ControlType::kClearCommand);
    clear["payload"] = pdc.newest;
    packets.push_back(make("control", clear));
    FieldValues close = pdc_fields;
    close["ctl_type"] = value(ControlType::kCloseCommand);
    close["psn"] = pdc.close_psn.value_or(pdc.newest + 1);
    close["ar"] = 1;
    close["retx"] = pdc.close_psn ? 1 : 0;
    packets.push_back(make("control", close));
  }
  return packets;
}

PdcLedger::Bytes PdcLedger::answer_at_the_end(std::span<const std::uint8_t> packet) {
  const Outer p(packet);
  if (p.is_control(ControlType::kCloseCommand)) return ack_of(p);
  return answer_as_target(pdcs_, packet);
}

PdcLedger::Bytes PdcLedger::answer_as_target(Pdcs& pdcs, std::span<const std::uint8_t> packet) {
  const Outer p(packet);
  for (auto& [id, pdc] : pdcs) {
    const bool is_its = p.is_syn() ? pdc.peer_id == p.id("spdcid") : id == p.id("dpdcid");
    if (!is_its || !pdc.is_theirs || !p.consumes_psn()) continue;
    if (p.psn() == pdc.newest + 1) ++pdc.newest;
    return success_of(packet, id, pdc.newest, p.psn());
  }
  return {};
}

bool PdcLedger::is_anything_open() const {
  for (const auto& [id, pdc] : pdcs_)
    if (!pdc.is_closed && pdc.peer_id) return true;
  return false;
}

}  // namespace uet::drill
