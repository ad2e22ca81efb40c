#include "apps/dump/filter.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "lib/base/serial.h"

namespace uet::dump {
namespace {

bool equal_in_any_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

bool has_type(const Report& report, std::string_view type) {
  return std::any_of(report.layers.begin(), report.layers.end(), [&](const Layer& layer) {
    if (equal_in_any_case(layer.header, type)) return true;
    return std::any_of(layer.fields.begin(), layer.fields.end(), [&](const wire::FieldValue& f) {
      return equal_in_any_case(
          wire::find_name(f.info.entries, static_cast<std::uint32_t>(f.value.lo)), type);
    });
  });
}

template <std::size_t N>
bool has_number(const Layer* layer, const std::array<const char*, N>& names, std::uint32_t value) {
  return layer != nullptr && std::any_of(names.begin(), names.end(), [&](const char* name) {
           const wire::FieldValue* f = layer->find(name);
           return f != nullptr && f->value.lo == value;
         });
}

bool has_psn(const Layer* pds, PsnRange range) {
  const auto is_in = [&](std::uint64_t psn) {
    return static_cast<std::uint32_t>(psn) - range.first <= range.second - range.first;
  };
  if (pds == nullptr) return false;
  for (const char* name : {"psn", "nack_psn"})
    if (const wire::FieldValue* f = pds->find(name); f != nullptr && is_in(f->value.lo))
      return true;
  return std::any_of(pds->derived.begin(), pds->derived.end(),
                     [&](const DerivedValue& d) { return d.name == "ack_psn" && is_in(d.value); });
}

bool is_wrong(const Report& report) {
  return std::ranges::any_of(report.problems, &ReportedProblem::is_fault);
}

}  // namespace

std::optional<PsnRange> parse_psns(std::string_view text) {
  std::uint32_t first = 0, last = 0;
  const char* const end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, first);
  if (error != std::errc{}) return std::nullopt;
  if (at == end) return PsnRange(first, first);
  const std::string_view rest(at, static_cast<std::size_t>(end - at));
  if (!rest.starts_with("..")) return std::nullopt;
  const auto [stop, code] = std::from_chars(at + 2, end, last);
  if (code != std::errc{} || stop != end) return std::nullopt;
  const bool is_in_order = base::Psn(last).distance_from(base::Psn(first)) >= 0;
  return is_in_order ? std::optional(PsnRange(first, last)) : std::nullopt;
}

bool Filter::matches(const Report& report) const {
  const Layer* pds = report.find("pds");
  const Layer* ses = report.find("ses");
  return (layer.empty() || report.find(layer) != nullptr) &&
         (type.empty() || has_type(report, type)) &&
         (!pdc || has_number(pds, std::array{"spdcid", "dpdcid"}, *pdc)) &&
         (!job || has_number(ses, std::array{"job_id"}, *job)) &&
         (!message ||
          has_number(ses, std::array{"message_id", "read_request_message_id"}, *message)) &&
         (!psn || has_psn(pds, *psn)) &&
         (!only_retransmissions || (pds != nullptr && pds->number("retx") != 0)) &&
         (!only_problems || is_wrong(report));
}

}  // namespace uet::dump
