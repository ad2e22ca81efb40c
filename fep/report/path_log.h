/// What an endpoint knows of its paths, written once in a while: FI_UET_PATH_LOG.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cc/ccc.h"
#include "fep/fep.h"
#include "lib/net/output_file.h"

namespace uet::fep {

/// One line: {"t":ns,"peer":"...","window":n,"inflight":n,"base_rtt_us":x,"rtt_us":x,"credit":n,"paths":[...]}, the credit only where
/// the receiver grants it. Each path that was used is
/// {"entropy":n,"plane":n,"state":"...","score":n,"rtt_us":x,"sent":n,"marks":n,"trims":n,"losses":n}.
std::string to_json(Instant now, const pds::Pds::CongestionView& view);
/// One line about the ports of an endpoint that has several: {"t":ns,"planes":[...]}. Each is {"plane":n,"up":bool,"sent":n,
/// "received":n,"waiting":n,"dropped":n,"times_down":n}.
std::string planes_to_json(Instant now, const net::Port& port);

/// Of an ordered context: its window, and why it has no paths to tell of.
std::string ordered_to_json(Instant now, const pds::Pds::CongestionView& view);

/// A file that gets one such line for each congestion context, and one about the planes where there are several,
/// about once a second while the loop turns.
class PathLog {
 public:
  /// %p in `path` becomes the process id. Null with a sentence in `error`.
  static std::unique_ptr<PathLog> open(const std::string& path, std::string& error);

  /// After a turn of the loop. Writes when it is time to.
  void on_turn(Instant now, Fep& fep) {
    if (now >= next_) write(now, fep);
  }
  void write(Instant now, Fep& fep);
  /// In a child made by fork(): the file is the parent's alone. Safe between fork() and exec().
  void abandon_in_child() { file_->abandon_in_child(); }

 private:
  explicit PathLog(std::unique_ptr<net::OutputFile> file) : file_(std::move(file)) {}
  std::unique_ptr<net::OutputFile> file_;
  Instant next_;
};

}  // namespace uet::fep
