/// What a process answers to one request of uet-stat about its endpoints.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fep/report/live_state.h"

namespace uet::fep {

/// Requests are one line: "stat [PDCS]" (one JSON object), or "events" (the flight recorders, one event a line). Add every
/// endpoint of the process, each while it stands still; text() may be made after that.
class LiveReport {
 public:
  LiveReport(const std::string& request, int pid, std::string_view program);

  void add(Instant now, Fep& fep, const Settings& settings);
  std::string text() const;

 private:
  enum class Kind : std::uint8_t { kUnknown, kStat, kEvents };
  struct Recorded {
    std::string address;
    std::vector<base::Event> events;
  };
  Kind kind_ = Kind::kUnknown;
  SnapshotLimits limits_;
  int pid_;
  std::string program_, snapshots_;
  std::vector<Recorded> recorded_;
};

}  // namespace uet::fep
