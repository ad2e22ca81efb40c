#include "apps/dump/line.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace uet::dump {
namespace {

/// The name of an enumerated value, or its number.
std::string name_or_number(const wire::FieldValue& field) {
  const std::string_view name =
      wire::find_name(field.info.entries, static_cast<std::uint32_t>(field.value.lo));
  return name.empty() ? fmt::format("{}", field.value.lo) : std::string(name);
}

std::string endpoints_text(const Report& report) {
  const std::string from = source_text(report, "");
  return from.empty() ? "-" : from + " > " + destination_text(report, "");
}

/// The flags that are 1, as words.
void add_flags(std::string& out, const Layer& layer, std::initializer_list<const char*> flags) {
  for (const char* flag : flags)
    if (layer.number(flag) != 0) fmt::format_to(std::back_inserter(out), " {}", flag);
}

void add_psn(std::string& out, std::string_view name, std::uint64_t psn, std::uint32_t base) {
  // PSNs wrap; those before the base are negative.
  const auto value = static_cast<std::uint32_t>(psn);
  if (base == 0)
    fmt::format_to(std::back_inserter(out), " {} {}", name, value);
  else
    fmt::format_to(std::back_inserter(out), " {} {}", name,
                   static_cast<std::int32_t>(value - base));
}

std::string pds_kind(const Layer& pds) {
  std::string kind(pds.header);
  for (const char* name : {"ctl_type", "nack_code"})
    if (const wire::FieldValue* f = pds.find(name)) kind += ' ' + name_or_number(*f);
  return kind;
}

void add_pds(std::string& out, const Layer& pds, std::uint32_t base, std::uint32_t answered) {
  fmt::format_to(std::back_inserter(out), "{:<9}", pds_kind(pds));
  if (pds.find("spdcid") != nullptr) {
    const wire::FieldValue* to = pds.find("dpdcid");
    fmt::format_to(std::back_inserter(out), " {:>11}",
                   fmt::format("{}>{}", pds.number("spdcid"),
                               to == nullptr ? std::string("new") : std::to_string(to->value.lo)));
  }
  if (const wire::FieldValue* f = pds.find("psn")) add_psn(out, "psn", f->value.lo, base);
  for (const char* name : {"cack_psn", "nack_psn"})
    if (const wire::FieldValue* f = pds.find(name)) add_psn(out, name, f->value.lo, answered);
  if (const wire::FieldValue* f = pds.find("pkt_id")) add_psn(out, "pkt_id", f->value.lo, 0);
  for (const DerivedValue& d : pds.derived) {
    if (d.name == "ack_psn") add_psn(out, d.name, d.value, answered);
    if (d.name == "start_psn") add_psn(out, d.name, d.value, base);
  }
  add_flags(out, pds, {"retx", "ar", "syn", "m", "p"});
  if (const wire::FieldValue* req = pds.find("req"); req != nullptr && req->value.lo != 0)
    out += " req " + name_or_number(*req);
}

/// What is the same in all packets of a message is said by its first one.
void add_ses(std::string& out, const Layer& ses) {
  out += " | ";
  if (const wire::FieldValue* opcode = ses.find("opcode")) out += name_or_number(*opcode);
  if (const wire::FieldValue* code = ses.find("return_code")) out += ' ' + name_or_number(*code);
  const bool is_later_packet = ses.find("som") != nullptr && ses.number("som") == 0;
  for (const char* name : {"message_id", "stream", "number", "behind", "read_request_message_id",
                           "job_id", "original_request_psn", "request_length", "message_offset",
                           "payload_length", "modified_length"}) {
    const std::string_view key = name;
    if (is_later_packet && (key == "job_id" || key == "request_length")) continue;
    if (const wire::FieldValue* f = ses.find(name))
      fmt::format_to(std::back_inserter(out), " {} {}", name, f->value.lo);
  }
  add_flags(out, ses, {"som", "eom", "dc", "ie", "hd"});
}

const char* colour_of(const DecodedPacket& packet) {
  const Layer* pds = packet.report.find("pds");
  if (packet.captured.comment.find(" drop ") != std::string::npos) return "\033[35m";
  if (pds == nullptr) return "\033[2m";
  if (pds->find("nack_code") != nullptr) return "\033[31m";
  if (pds->number("retx") != 0 || packet.report.is_trimmed) return "\033[33m";
  if (pds->find("ctl_type") != nullptr) return "\033[36m";
  if (pds->find("cack_psn") != nullptr) return "\033[32m";
  return "";
}

}  // namespace

std::string summary_of(const Report& report, std::uint32_t psn_base, std::uint32_t answered_base) {
  std::string out;
  if (report.is_trimmed) out += "TRIMMED ";
  if (const Layer* tss = report.find("tss"))
    fmt::format_to(std::back_inserter(out), "TSS sdi {} an {} epoch {} tsc {} ", tss->number("sdi"),
                   tss->number("an"), tss->number("epoch"), tss->number("tsc"));
  if (const Layer* pds = report.find("pds")) add_pds(out, *pds, psn_base, answered_base);
  if (const Layer* ses = report.find("ses")) add_ses(out, *ses);
  if (const Layer* ext = report.find("ext")) {
    fmt::format_to(std::back_inserter(out), " +{}", ext->header);
    if (const wire::FieldValue* amo = ext->find("amo_opcode")) out += ' ' + name_or_number(*amo);
  }
  for (const ReportedProblem& p : report.problems)
    if (!p.is_fault() && p.problem != wire::Problem::kCaptureCut)
      out += p.problem == wire::Problem::kNotIp ? "ARP" : "ICMPv6";
  if (report.payload_bytes > 0)
    fmt::format_to(std::back_inserter(out), " | {} bytes", report.payload_bytes);
  return out;
}

void LinePrinter::note(const DecodedPacket& packet) {
  if (!has_first_) first_ns_ = before_ns_ = packet.captured.time_ns;
  has_first_ = true;
  const Layer* pds = packet.report.find("pds");
  const wire::FieldValue* psn = pds == nullptr ? nullptr : pds->find("psn");
  if (psn == nullptr || pds->find("spdcid") == nullptr || bases_.size() >= kDirectionsMax) return;
  bases_.try_emplace({source_text(packet.report, ""), destination_text(packet.report, ""),
                      static_cast<std::uint32_t>(pds->number("spdcid"))},
                     static_cast<std::uint32_t>(psn->value.lo));
}

std::uint32_t LinePrinter::base_of(const Direction& direction) const {
  const auto it = bases_.find(direction);
  return it == bases_.end() || style_.absolute_psns ? 0 : it->second;
}

void LinePrinter::skip(const DecodedPacket& packet) {
  note(packet);
}

std::string LinePrinter::summary(const DecodedPacket& packet) {
  note(packet);
  const Layer* pds = packet.report.find("pds");
  const auto pdc = [&](const char* name) {
    return pds == nullptr ? 0 : static_cast<std::uint32_t>(pds->number(name));
  };
  const std::string from = source_text(packet.report, ""), to = destination_text(packet.report, "");
  return summary_of(packet.report, base_of({from, to, pdc("spdcid")}),
                    base_of({to, from, pdc("dpdcid")}));
}

std::string LinePrinter::time_of(const DecodedPacket& packet) const {
  const std::uint64_t now = packet.captured.time_ns;
  if (style_.time == TimeForm::kDay) return day_time_text(now);
  const std::uint64_t from = style_.time == TimeForm::kDelta ? before_ns_ : first_ns_;
  return fmt::format("{:>13.9f}", static_cast<double>(static_cast<std::int64_t>(now - from)) / 1e9);
}

std::string LinePrinter::line(const DecodedPacket& packet) {
  const std::string what = summary(packet);
  const std::string endpoints = endpoints_text(packet.report);
  endpoints_width_ = std::max(endpoints_width_, endpoints.size());
  std::string out = fmt::format("{:>6} {} {:<{}} {}", packet.number, time_of(packet), endpoints,
                                endpoints_width_, what);
  if (!packet.captured.comment.empty())
    fmt::format_to(std::back_inserter(out), " # {}", packet.captured.comment);
  before_ns_ = packet.captured.time_ns;
  out += problems_text(packet.report);
  if (const char* colour = colour_of(packet); style_.colour && *colour != '\0')
    return colour + out + "\033[0m";
  return out;
}

}  // namespace uet::dump
