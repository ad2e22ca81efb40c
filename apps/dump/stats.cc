#include "apps/dump/stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

namespace uet::dump {
namespace {

std::string value_name(const wire::FieldValue& f) {
  const std::string_view name =
      wire::find_name(f.info.entries, static_cast<std::uint32_t>(f.value.lo));
  return name.empty() ? fmt::format("0x{:02X}", f.value.lo) : std::string(name);
}

/// Of a packet that the capturing end dropped: the word behind "drop" in our comments.
std::string drop_reason(const std::string& comment) {
  constexpr std::string_view kMark = " drop ";
  const auto at = comment.find(kMark);
  if (at == std::string::npos) return {};
  const std::string rest = comment.substr(at + kMark.size());
  return rest.substr(0, rest.find_first_of(" \n"));
}

void add_counts(std::string& out, const char* title,
                const std::map<std::string, std::uint64_t>& counts) {
  if (counts.empty()) return;
  fmt::format_to(std::back_inserter(out), "{}\n", title);
  for (const auto& [name, n] : counts)
    fmt::format_to(std::back_inserter(out), "  {:<24} {:>10}\n", name, n);
}

}  // namespace

PsnTracker::Seen PsnTracker::add(std::uint32_t psn) {
  // PSNs wrap; on the line they are placed next to the highest so far.
  const std::int32_t step = static_cast<std::int32_t>(psn - static_cast<std::uint32_t>(highest_));
  if (step > kJumpMax || step < -kJumpMax) {
    settled_gaps_ = gaps();
    ranges_.clear();
  }
  const bool is_first = ranges_.empty();
  const std::int64_t at = is_first ? psn : highest_ + step;
  if (is_first) {
    ranges_[at] = at;
    highest_ = at;
    ++distinct_;
    return Seen::kNew;
  }
  auto behind = ranges_.upper_bound(at);
  if (behind != ranges_.begin()) {
    const auto here = std::prev(behind);
    if (here->second >= at) return Seen::kAgain;
    if (here->second == at - 1) {
      here->second = at;
      if (behind != ranges_.end() && behind->first == at + 1) {
        here->second = behind->second;
        ranges_.erase(behind);
      }
      behind = ranges_.end();
    } else {
      ranges_[at] = at;
    }
  } else {
    ranges_[at] = at;
  }
  if (const auto mine = ranges_.find(at); mine != ranges_.end()) {
    if (const auto next = std::next(mine); next != ranges_.end() && next->first == at + 1) {
      mine->second = next->second;
      ranges_.erase(next);
    }
  }
  while (ranges_.size() > kRangesMax) {
    const auto first = ranges_.begin();
    const auto second = std::next(first);
    settled_gaps_ += static_cast<std::uint64_t>(second->first - first->second - 1);
    second->second = std::max(second->second, first->second);
    ranges_.erase(first);
  }
  ++distinct_;
  if (at < highest_) return Seen::kNewButLate;
  highest_ = at;
  return Seen::kNew;
}

std::uint64_t PsnTracker::gaps() const {
  std::uint64_t sum = settled_gaps_;
  for (auto it = ranges_.begin(); it != ranges_.end() && std::next(it) != ranges_.end(); ++it)
    sum += static_cast<std::uint64_t>(std::next(it)->first - it->second - 1);
  return sum;
}

void Statistics::add(const DecodedPacket& packet) {
  const Report& report = packet.report;
  const std::uint64_t now = packet.captured.time_ns;
  first_ns_ = packets_ == 0 ? now : std::min(first_ns_, now);
  last_ns_ = std::max(last_ns_, now);
  ++packets_;
  bytes_ += packet.captured.wire_length;
  if (packet.captured.wire_length > packet.captured.data.size()) ++packets_cut_;
  if (std::ranges::any_of(report.problems, &ReportedProblem::is_fault)) ++packets_with_problems_;
  if (const std::string reason = drop_reason(packet.captured.comment); !reason.empty())
    ++drops_[reason];
  if (report.is_trimmed) ++trimmed_;
  for (const ReportedProblem& p : report.problems)
    if (p.is_fault()) ++problems_[std::string(wire::describe(p.problem).name)];

  const Layer* pds = report.find("pds");
  if (pds == nullptr) {
    ++types_[report.find("tss") != nullptr ? "(sealed)" : "(not UET)"];
    return;
  }
  ++types_[std::string(pds->header)];
  if (const wire::FieldValue* code = pds->find("nack_code")) ++nacks_[value_name(*code)];
  const bool is_request = pds->find("psn") != nullptr && pds->find("ctl_type") == nullptr;
  bool is_new = pds->number("retx") == 0;
  if (is_request)
    is_new = add_request(packet, *pds,
                         {source_text(report, "-"), destination_text(report, "-"),
                          static_cast<std::uint32_t>(pds->number("spdcid"))});
  else
    goodput_bytes_ += is_new ? report.payload_wire_bytes : 0;
  if (const Layer* ses = report.find("ses")) {
    if (const wire::FieldValue* code = ses->find("return_code"))
      ++return_codes_[value_name(*code)];
    else
      add_message(*ses, is_new);
  }
}

bool Statistics::add_request(const DecodedPacket& packet, const Layer& pds, FlowKey key) {
  const bool is_retransmission = pds.number("retx") != 0;
  retransmissions_ += is_retransmission ? 1 : 0;
  auto it = flows_.find(key);
  if (it == flows_.end()) {
    if (flows_.size() == kPdcsMax) {
      ++flows_not_tracked_;
      const bool is_new = !is_retransmission && !packet.report.is_trimmed;
      goodput_bytes_ += is_new ? packet.report.payload_wire_bytes : 0;
      return is_new;
    }
    it = flows_.emplace(std::move(key), Flow{}).first;
    it->second.first_ns = packet.captured.time_ns;
  }
  Flow& flow = it->second;
  ++flow.packets;
  flow.last_ns = std::max(flow.last_ns, packet.captured.time_ns);
  flow.retransmissions += is_retransmission ? 1 : 0;
  if (packet.report.is_trimmed) return false;  // its PSN comes again, with the payload
  switch (flow.psns.add(static_cast<std::uint32_t>(pds.number("psn")))) {
    case PsnTracker::Seen::kAgain:
      ++duplicates_;
      return false;
    case PsnTracker::Seen::kNewButLate:
      ++flow.out_of_order;
      ++out_of_order_;
      break;
    case PsnTracker::Seen::kNew:
      break;
  }
  flow.payload_bytes += packet.report.payload_wire_bytes;
  goodput_bytes_ += packet.report.payload_wire_bytes;
  return true;
}

/// A message is known by its first packet: endpoints use message_ids again and again.
void Statistics::add_message(const Layer& ses, bool is_new) {
  if (const wire::FieldValue* opcode = ses.find("opcode")) ++opcodes_[value_name(*opcode)];
  if (!is_new) return;
  // Small and medium requests are messages by themselves.
  const bool is_whole = ses.find("message_id") == nullptr;
  messages_ += is_whole ? 1 : ses.number("som");
  messages_ended_ += is_whole ? 1 : ses.number("eom");
}

double Statistics::seconds() const {
  return static_cast<double>(last_ns_ - first_ns_) / 1e9;
}

double Statistics::goodput_bps() const {
  return last_ns_ > first_ns_ ? static_cast<double>(goodput_bytes_) * 8 / seconds() : 0;
}

std::string Statistics::to_text() const {
  std::string out;
  const auto line = [&](const char* name, auto value) {
    fmt::format_to(std::back_inserter(out), "{:<26} {:>12}\n", name, value);
  };
  std::uint64_t gaps = 0;
  for (const auto& [key, flow] : flows_) gaps += flow.psns.gaps();
  line("packets", packets_);
  if (packets_missing_ > 0) line("packets missing before", packets_missing_);
  if (packets_missing_between_ > 0) line("packets missing between", packets_missing_between_);
  if (packets_cut_ > 0) line("packets cut (snap)", packets_cut_);
  line("bytes", bytes_);
  line("seconds", fmt::format("{:.6f}", seconds()));
  line("PDC directions", flows_.size() + flows_not_tracked_);
  line("messages", messages_);
  line("last packets of messages", messages_ended_);
  line("retransmissions", retransmissions_);
  line("PSNs seen again", duplicates_);
  line("out of order", out_of_order_);
  line("gaps", gaps);
  line("trimmed", trimmed_);
  line("payload bytes, each once", goodput_bytes_);
  line("goodput Mbit/s", fmt::format("{:.3f}", goodput_bps() / 1e6));
  line("packets with problems", packets_with_problems_);
  add_counts(out, "PDS types", types_);
  add_counts(out, "SES requests", opcodes_);
  add_counts(out, "return codes", return_codes_);
  add_counts(out, "NACKs", nacks_);
  add_counts(out, "dropped by the end that captured", drops_);
  add_counts(out, "problems", problems_);
  if (!flows_.empty()) out += "PDCs\n";
  for (const auto& [key, flow] : flows_)
    fmt::format_to(std::back_inserter(out),
                   "  {} > {} pdc {}: {} packets, {} PSNs, {} retransmitted, {} out of order, {} "
                   "gaps, {} bytes\n",
                   std::get<0>(key), std::get<1>(key), std::get<2>(key), flow.packets,
                   flow.psns.distinct(), flow.retransmissions, flow.out_of_order, flow.psns.gaps(),
                   flow.payload_bytes);
  return out;
}

nlohmann::ordered_json Statistics::to_json() const {
  std::uint64_t gaps = 0;
  nlohmann::ordered_json pdcs = nlohmann::ordered_json::array();
  for (const auto& [key, flow] : flows_) {
    gaps += flow.psns.gaps();
    pdcs.push_back({{"src", std::get<0>(key)},
                    {"dst", std::get<1>(key)},
                    {"spdcid", std::get<2>(key)},
                    {"packets", flow.packets},
                    {"psns", flow.psns.distinct()},
                    {"retransmissions", flow.retransmissions},
                    {"out_of_order", flow.out_of_order},
                    {"gaps", flow.psns.gaps()},
                    {"payload_bytes", flow.payload_bytes},
                    {"seconds", static_cast<double>(flow.last_ns - flow.first_ns) / 1e9}});
  }
  return {{"packets", packets_},
          {"packets_missing_before", packets_missing_},
          {"packets_missing_between", packets_missing_between_},
          {"packets_cut", packets_cut_},
          {"bytes", bytes_},
          {"seconds", seconds()},
          {"pdc_directions", flows_.size() + flows_not_tracked_},
          {"messages", messages_},
          {"messages_ended", messages_ended_},
          {"retransmissions", retransmissions_},
          {"psns_seen_again", duplicates_},
          {"out_of_order", out_of_order_},
          {"gaps", gaps},
          {"trimmed", trimmed_},
          {"payload_bytes", goodput_bytes_},
          {"goodput_bps", goodput_bps()},
          {"packets_with_problems", packets_with_problems_},
          {"types", types_},
          {"opcodes", opcodes_},
          {"return_codes", return_codes_},
          {"nacks", nacks_},
          {"drops", drops_},
          {"problems", problems_},
          {"pdcs", pdcs}};
}

CaptureStatistics::Place CaptureStatistics::place_of(const wire::CapturedPacket& packet) {
  if (packet.is_inbound && packet.comment.starts_with("from ")) return kFromHosts;
  return packet.is_outbound && packet.comment.starts_with("to ") ? kToHosts : kElsewhere;
}

void CaptureStatistics::add(const DecodedPacket& packet) {
  sums_[place_of(packet.captured)].add(packet);
}

void CaptureStatistics::set_packets_missing(std::uint64_t packets) {
  for (Statistics& sums : sums_) sums.set_packets_missing(packets);
}

void CaptureStatistics::set_packets_missing_between(std::uint64_t packets) {
  for (Statistics& sums : sums_) sums.set_packets_missing_between(packets);
}

std::string CaptureStatistics::to_text() const {
  if (!is_of_fabric()) return sums_[kElsewhere].to_text();
  std::string out;
  for (std::size_t place = 0; place < kPlaces; ++place)
    if (!sums_[place].is_empty())
      out += fmt::format("{}{}\n", out.empty() ? "" : "\n", kNames[place].title) +
             sums_[place].to_text();
  return out;
}

nlohmann::ordered_json CaptureStatistics::to_json() const {
  if (!is_of_fabric()) return sums_[kElsewhere].to_json();
  nlohmann::ordered_json out;
  for (std::size_t place = 0; place < kPlaces; ++place)
    if (!sums_[place].is_empty()) out[kNames[place].key] = sums_[place].to_json();
  return out;
}

}  // namespace uet::dump
