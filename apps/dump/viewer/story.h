/// What the viewer shows, gathered from the files of one or both ends while they are read: bounded, however large they are.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/dump/ladder.h"
#include "apps/dump/viewer/log_line.h"
#include "apps/dump/viewer/thinner.h"

namespace uet::dump {

using Json = nlohmann::ordered_json;

class Story {
 public:
  /// A file from here on: "client.events".
  void begin_file(const std::string& name, std::string_view kind);
  /// A line of FI_UET_TRACE, FI_UET_PATH_LOG or of `uet-sim --trace`, of which each host becomes a file of its own.
  void add_line(std::string_view line);
  void add_packet(const DecodedPacket& packet);
  /// Of the file that is being read.
  void add_note(const std::string& note);

  /// Everything, with times in seconds from the first one.
  Json to_json();

  static constexpr std::size_t kPointsMax = 20'000;  ///< of each curve
  static constexpr std::size_t kEventsMax = 60'000;  ///< of the rare kinds, and of the common ones
  static constexpr std::size_t kRungsMax = 30'000;   ///< packets of the sequence diagram
  static constexpr std::size_t kStreamsMax = 64;     ///< PDCs of each file
  static constexpr std::size_t kSendingsMax = 100'000;  ///< whose acknowledgement is waited for
  static constexpr std::size_t kPathSamplesMax = 2'000;
  static constexpr std::size_t kHostsMax = 64;         ///< of a trace of uet-sim
  static constexpr std::uint32_t kArriving = 0x10000;  ///< added to a PDC for what the peer sends

 private:
  enum class PsnKind : std::uint8_t { kSent, kAgain, kArrived, kCack, kSack, kLoss, kCopy };
  struct Point {
    std::int64_t t_ns;
    double a, b;
  };
  struct PsnPoint {
    std::int64_t t_ns;
    std::int32_t psn;  ///< from the first of the stream
    PsnKind kind;
  };
  struct Stream {
    Thinner<PsnPoint> points{kPointsMax};
    std::uint32_t first = 0;
  };
  struct Event {
    std::int64_t t_ns;
    std::size_t file;
    std::string name, rest;
    std::int64_t pdc, psn;
  };
  struct FileStory {
    std::string name, kind;
    std::uint64_t lines = 0, wrong = 0, streams_left_out = 0;
    std::vector<std::string> notes;
    std::map<std::uint32_t, Stream> streams;  ///< by PDC
    Thinner<Point> window{kPointsMax}, credit{kPointsMax}, rtt{kPointsMax}, choices{kPointsMax};
    Thinner<Json> paths{kPathSamplesMax};
    Json counters;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> sendings;  ///< (PDC, PSN)
    bool is_wall_clock = false;
    std::int64_t first_ns = INT64_MAX;
  };

  FileStory& file() { return files_[current_]; }
  bool turn_to_host(std::int64_t host);
  void add_event(const LogLine& line);
  void add_path_line(std::string_view line);
  void note_psn(std::uint32_t pdc, std::uint32_t psn, std::int64_t t_ns, PsnKind kind);
  void note_sending(std::uint32_t pdc, std::uint32_t psn, std::int64_t t_ns);
  void note_ack(const Layer& pds, std::int64_t t_ns);
  std::int64_t clock_offset() const;
  Json rungs_json(std::int64_t base_ns);
  Json events_json(std::int64_t base_ns, std::int64_t offset_ns) const;
  Json file_json(const FileStory& file, std::int64_t base_ns, std::int64_t offset_ns) const;

  std::vector<FileStory> files_;
  std::string name_;  ///< of the file that is being read
  /// Where in files_: what its lines without a host belong to, the host of this line, and each host that it has events of.
  std::size_t first_ = 0, current_ = 0;
  std::map<std::int64_t, std::size_t> hosts_;
  bool has_more_hosts_ = false;
  std::size_t captures_ = 0;
  Ladder ladder_;
  LinePrinter lines_{LineStyle{}};
  std::uint64_t packets_left_out_ = 0;
  Thinner<Event> rare_{kEventsMax}, common_{kEventsMax};
};

}  // namespace uet::dump
