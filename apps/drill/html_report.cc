// The report as one page.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/drill/checklist.h"
#include "apps/drill/report.h"

namespace uet::drill {

namespace {

constexpr std::string_view kHead = R"~(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>uet-drill</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#222;background:#fff}
h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}
table{border-collapse:collapse}td,th{padding:.2em .8em;border:1px solid #ccc;text-align:left;vertical-align:top}
code,pre{font:13px/1.4 ui-monospace,monospace}pre{overflow-x:auto;background:#f5f5f5;padding:.6em;white-space:pre}
details{border:1px solid #ccc;border-left:.5em solid #999;margin:.4em 0;padding:.3em .8em}
details.pass{border-left-color:#2a7a3a}details.fail{border-left-color:#b3261e}details.skip{border-left-color:#aaa;color:#555}
summary{cursor:pointer}.verdict{display:inline-block;width:3.5em;font-weight:600}
.pass .verdict{color:#2a7a3a}.fail .verdict{color:#b3261e}.trouble{border:1px solid #b3261e;padding:.6em;color:#b3261e}
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}pre{background:#242424}td,th,details{border-color:#444}}
</style></head><body>
)~";

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string items_of(const Script& script) {
  std::string text;
  for (const std::string& item : script.items) {
    const ChecklistItem* const found = find_item(item);
    text += fmt::format("<p><b>{}</b> {}</p>\n", escaped(item),
                        found != nullptr ? escaped(found->title) : "");
  }
  if (!script.says.empty())
    text +=
        fmt::format("<p>{}{}</p>\n",
                    script.is_reference ? "<i>Not in the text; the reference needs it.</i> " : "",
                    escaped(script.says));
  return text;
}

std::string failure_of(const Outcome& o) {
  std::string text = "<p>";
  if (o.line != 0) text += fmt::format("Line {}: <code>{}</code><br>", o.line, escaped(o.step));
  text += escaped(o.why) + "</p>\n";
  if (!o.expected.empty())
    text += fmt::format("<p>Expected: <code>{}</code></p>\n", escaped(o.expected));
  if (!o.differences.empty()) {
    text += "<table><tr><th>field</th><th>expected</th><th>got</th></tr>\n";
    for (const Difference& d : o.differences)
      text += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", escaped(d.field),
                          escaped(d.expected), escaped(d.got));
    text += "</table>\n";
  }
  return text;
}

std::string packets_of(const Result& r) {
  if (r.lines.empty()) return {};
  std::string text = "<pre>";
  for (const WireLine& line : r.lines)
    text += fmt::format("{:10.3f} ms {} {}\n",
                        static_cast<double>((line.at - r.lines.front().at).ns()) / 1e6,
                        line.is_ours ? "to endpoint   " : "from endpoint ", escaped(line.text));
  return text + "</pre>\n";
}

std::string section(const Result& r) {
  const std::string_view verdict = name_of(r.outcome.verdict);
  const bool failed = r.outcome.verdict == Verdict::kFail;
  std::string text = fmt::format(
      "<details class=\"{0}\"{1}><summary><span class=\"verdict\">{0}</span> {2} — {3}</summary>\n",
      verdict, failed ? " open" : "", escaped(r.script.name), escaped(r.script.title));
  if (r.outcome.verdict == Verdict::kSkip)
    text += fmt::format("<p>{}</p>\n", escaped(r.outcome.why));
  if (failed) text += failure_of(r.outcome);
  text += items_of(r.script) + packets_of(r);
  if (!r.capture.empty())
    text += fmt::format("<p><a href=\"{0}\">{0}</a></p>\n", escaped(r.capture));
  return text + "</details>\n";
}

}  // namespace

std::string to_html(const SuiteReport& report) {
  std::string text{kHead};
  text += fmt::format("<h1>uet-drill against {}</h1>\n", escaped(report.peer));
  text += fmt::format(
      "<p>{} at {} by {} from {}; uet-drill {}. The endpoint is said to have: {}.</p>\n",
      escaped(report.started), escaped(report.peer), escaped(report.port), escaped(report.address),
      escaped(report.version), escaped(fmt::format("{}", fmt::join(report.capabilities, ", "))));
  for (const std::string& more : {report.note, report.trouble})
    if (!more.empty()) text += fmt::format("<p class=\"trouble\">{}</p>\n", escaped(more));
  text += fmt::format(
      "<table><tr><th>passed</th><th>failed</th><th>skipped</th><th>packets sent</th>"
      "<th>received</th><th>broken</th></tr><tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
      "<td>{}</td><td>{}</td></tr></table>\n",
      report.count(Verdict::kPass), report.count(Verdict::kFail), report.count(Verdict::kSkip),
      report.wire.sent, report.wire.received, report.wire.broken);
  constexpr std::pair<Verdict, std::string_view> kParts[] = {
      {Verdict::kFail, "Failed"}, {Verdict::kPass, "Passed"}, {Verdict::kSkip, "Skipped"}};
  for (const auto& [verdict, title] : kParts) {
    if (report.count(verdict) == 0) continue;
    text += fmt::format("<h2>{}</h2>\n", title);
    for (const Result& r : report.results)
      if (r.outcome.verdict == verdict) text += section(r);
  }
  return text + "</body></html>\n";
}

}  // namespace uet::drill
