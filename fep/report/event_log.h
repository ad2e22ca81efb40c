/// Events as text: one JSON object per line, while things happen (FI_UET_TRACE) or from the flight
/// recorder after something failed.
#pragma once

#include <memory>
#include <string>

#include "lib/base/trace.h"
#include "lib/net/output_file.h"
#include "pds/pds.h"

namespace uet::fep {

/// As logs and uet-stat call it: "rud", "rod", "rudi" or "uud".
std::string_view name_of(pds::Mode mode);

/// {"t":ns,"event":"name","pdc":n,"psn":n,"meaning_of_a":n,"meaning_of_b":n}; types and codes of the wire, modes and states by their
/// names.
std::string to_json(const base::Event& event);

/// FI_UET_TRACE: a file with every event of a trace, and its counters as the last line.
class TraceFile final : private base::TraceSink {
 public:
  /// %p in `path` becomes the process id. Null with a sentence in `error`. `trace` must outlive it.
  static std::unique_ptr<TraceFile> open(const std::string& path, base::Trace& trace,
                                         std::string& error);
  ~TraceFile() override;
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  int descriptor() const { return file_->descriptor(); }
  /// In a child made by fork(): the file is the parent's alone. Safe between fork() and exec().
  void abandon_in_child() { file_->abandon_in_child(); }

 private:
  TraceFile(std::unique_ptr<net::OutputFile> file, base::Trace& trace);
  void on_event(const base::Event& event) override;

  std::unique_ptr<net::OutputFile> file_;
  base::Trace& trace_;
};

/// Every counter that is not 0, as {"events":{...},"drops":{...}}.
std::string counters_to_json(const base::Trace& trace);

}  // namespace uet::fep
