#include "fep/report/event_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <iterator>
#include <utility>

#include "lib/wire/enums.h"
#include "pds/pdc_state.h"

namespace uet::fep {
namespace {

using Line = fmt::basic_memory_buffer<char, 256>;

/// What a number stands for, where the specification or the description has a name for it.
std::string_view value_name(base::EventId event, std::string_view meaning, std::uint64_t value) {
  const auto narrow = static_cast<std::uint8_t>(value);
  if (narrow != value) return {};
  if (meaning == "pds type") return wire::name_of(static_cast<wire::PdsType>(narrow));
  if (meaning == "nack code") return wire::name_of(static_cast<wire::NackCode>(narrow));
  if (meaning == "control type") return wire::name_of(static_cast<wire::ControlType>(narrow));
  if (meaning == "return code") return wire::name_of(static_cast<wire::ReturnCode>(narrow));
  if (meaning == "mode" && narrow <= static_cast<std::uint8_t>(pds::Mode::kUud))
    return name_of(static_cast<pds::Mode>(narrow));
  if (event == base::EventId::kPdcStateChanged && narrow < pds::kPdcStateCount)
    return pds::name_of(static_cast<pds::PdcState>(narrow));
  if (meaning.starts_with("role") && narrow < 2) return narrow == 0 ? "initiator" : "target";
  return {};
}

/// The description up to its first colon is the key, in one word: "role: 0 initiator, 1 target" becomes "role", "pds type"
/// "pds_type", and the flag "1 after an error" "after_an_error".
void append_value(Line& line, base::EventId event, std::string_view meaning, std::uint64_t value) {
  if (meaning.empty()) return;
  const std::string_view name = value_name(event, meaning, value);
  if (meaning.starts_with("1 ")) meaning.remove_prefix(2);
  line.append(std::string_view(",\""));
  for (const char c : meaning.substr(0, meaning.find(':'))) line.push_back(c == ' ' ? '_' : c);
  line.append(std::string_view("\":"));
  if (name.empty())
    fmt::format_to(std::back_inserter(line), "{}", value);
  else
    fmt::format_to(std::back_inserter(line), R"("{}")", name);
}

void append_json(Line& line, const base::Event& e) {
  const base::EventDescription& what = base::describe(e.id);
  fmt::format_to(std::back_inserter(line), R"({{"t":{},"event":"{}")", e.at.ns(), what.name);
  if (e.pdc != 0)
    fmt::format_to(std::back_inserter(line), R"(,"pdc":{},"psn":{})", e.pdc, e.psn.value());
  if (e.id == base::EventId::kPacketDropped && e.a < base::kDropReasonCount) {
    fmt::format_to(std::back_inserter(line), R"(,"reason":"{}")",
                   base::name_of(static_cast<base::DropReason>(e.a)));
  } else {
    append_value(line, e.id, what.a, e.a);
  }
  append_value(line, e.id, what.b, e.b);
  line.push_back('}');
}

}  // namespace

std::string_view name_of(pds::Mode mode) {
  switch (mode) {
    case pds::Mode::kRud:
      return "rud";
    case pds::Mode::kRod:
      return "rod";
    case pds::Mode::kRudi:
      return "rudi";
    case pds::Mode::kUud:
      return "uud";
  }
  return "?";
}

std::string to_json(const base::Event& event) {
  Line line;
  append_json(line, event);
  return fmt::to_string(line);
}

std::string counters_to_json(const base::Trace& trace) {
  std::string events, drops;
  for (std::size_t i = 0; i < base::kEventCount; ++i) {
    const auto id = static_cast<base::EventId>(i);
    if (trace.count(id) == 0) continue;
    events += fmt::format(R"({}"{}":{})", events.empty() ? "" : ",", base::describe(id).name,
                          trace.count(id));
  }
  for (std::size_t i = 0; i < base::kDropReasonCount; ++i) {
    const auto reason = static_cast<base::DropReason>(i);
    if (trace.drops(reason) == 0) continue;
    drops += fmt::format(R"({}"{}":{})", drops.empty() ? "" : ",", base::name_of(reason),
                         trace.drops(reason));
  }
  return fmt::format(R"({{"events":{{{}}},"drops":{{{}}}}})", events, drops);
}

TraceFile::TraceFile(std::unique_ptr<net::OutputFile> file, base::Trace& trace)
    : file_(std::move(file)), trace_(trace) {
  trace_.add_sink(*this);
}

std::unique_ptr<TraceFile> TraceFile::open(const std::string& path, base::Trace& trace,
                                           std::string& error) {
  auto out = net::OutputFile::open(path);
  if (!out) {
    error = "FI_UET_TRACE: cannot write " + path + ": " + std::strerror(errno);
    return nullptr;
  }
  return std::unique_ptr<TraceFile>(new TraceFile(std::move(out), trace));
}

void TraceFile::on_event(const base::Event& event) {
  Line line;
  append_json(line, event);
  line.push_back('\n');
  file_->write(std::string_view(line.data(), line.size()));
}

TraceFile::~TraceFile() {
  trace_.remove_sink(*this);
  try {
    file_->write(counters_to_json(trace_) + "\n");
  } catch (const std::exception&) {
    // Out of memory: the last line is missing.
  }
}

}  // namespace uet::fep
