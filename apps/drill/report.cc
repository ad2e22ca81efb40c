#include "apps/drill/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "apps/drill/checklist.h"

namespace uet::drill {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Result& r) {
  Json items = Json::array();
  for (const std::string& item : r.script.items) {
    const ChecklistItem* const found = find_item(item);
    items.push_back({{"item", item}, {"title", found != nullptr ? found->title : ""}});
  }
  Json out = {{"name", r.script.name},
              {"title", r.script.title},
              {"verdict", name_of(r.outcome.verdict)},
              {"items", items},
              {"reference", r.script.is_reference},
              {"says", r.script.says},
              {"needs", r.script.needs}};
  if (r.outcome.verdict != Verdict::kPass) out["why"] = r.outcome.why;
  if (r.outcome.verdict == Verdict::kFail) {
    Json differences = Json::array();
    for (const Difference& d : r.outcome.differences)
      differences.push_back({{"field", d.field}, {"expected", d.expected}, {"got", d.got}});
    out["line"] = r.outcome.line;
    out["step"] = r.outcome.step;
    out["expected"] = r.outcome.expected;
    out["differences"] = differences;
    out["got"] = r.outcome.got;
  }
  if (r.outcome.verdict != Verdict::kSkip) out["seconds"] = r.seconds;
  if (!r.capture.empty()) out["capture"] = r.capture;
  return out;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kFail:
      return "fail";
    default:
      return "skip";
  }
}

std::string to_text(const Result& r) {
  const Outcome& o = r.outcome;
  if (o.verdict == Verdict::kPass) return fmt::format("pass  {}\n", r.script.name);
  if (o.verdict == Verdict::kSkip) return fmt::format("skip  {}: {}\n", r.script.name, o.why);
  std::string text = fmt::format("FAIL  {}: {}\n", r.script.name, r.script.title);
  if (o.line != 0) text += fmt::format("      line {}: {}\n", o.line, o.step);
  text += fmt::format("      {}\n", o.why);
  if (!o.expected.empty()) text += fmt::format("      expected  {}\n", o.expected);
  for (const Difference& d : o.differences)
    text +=
        fmt::format("      {:<9} {}: expected {}, got {}\n", "field", d.field, d.expected, d.got);
  for (const std::string& packet : o.got) text += fmt::format("      got       {}\n", packet);
  for (const std::string& item : r.script.items) {
    const ChecklistItem* const found = find_item(item);
    text += fmt::format("      {:<9} {}\n", item, found != nullptr ? found->title : "");
  }
  if (!r.script.says.empty())
    text +=
        fmt::format("      {}{}\n", r.script.is_reference ? "not in the text, the reference: " : "",
                    r.script.says);
  return text;
}

std::string summary(const SuiteReport& report) {
  std::string text = fmt::format("{} passed, {} failed, {} skipped\n", report.count(Verdict::kPass),
                                 report.count(Verdict::kFail), report.count(Verdict::kSkip));
  for (const std::string& more : {report.note, report.trouble})
    if (!more.empty()) text += more + "\n";
  return text;
}

std::string to_json(const SuiteReport& report) {
  Json scripts = Json::array();
  for (const Result& r : report.results) scripts.push_back(to_json(r));
  const Json out = {{"tool", "uet-drill"},
                    {"version", report.version},
                    {"started", report.started},
                    {"endpoint", report.peer},
                    {"port", report.port},
                    {"address", report.address},
                    {"capabilities", report.capabilities},
                    {"note", report.note},
                    {"trouble", report.trouble},
                    {"summary",
                     {{"pass", report.count(Verdict::kPass)},
                      {"fail", report.count(Verdict::kFail)},
                      {"skip", report.count(Verdict::kSkip)}}},
                    {"packets",
                     {{"sent", report.wire.sent},
                      {"received", report.wire.received},
                      {"broken", report.wire.broken},
                      {"strangers", report.wire.strangers}}},
                    {"scripts", scripts}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace uet::drill
