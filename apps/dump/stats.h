/// Sums over a capture: PDCs, messages, retransmissions, gaps, reordering, NACKs, goodput.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tuple>

#include "apps/dump/render.h"

namespace uet::dump {

/// The PSNs of one direction of one PDC that a capture showed.
class PsnTracker {
 public:
  enum class Seen : std::uint8_t { kNew, kNewButLate, kAgain };

  Seen add(std::uint32_t psn);
  /// PSNs between the first and the last that never showed up.
  std::uint64_t gaps() const;
  std::uint64_t distinct() const { return distinct_; }

  /// A PSN further away than this from the highest one begins a new life of the PDC.
  static constexpr std::int64_t kJumpMax = 1 << 20;
  /// Ranges kept; when there are more, the oldest hole is taken for a gap for good.
  static constexpr std::size_t kRangesMax = 4096;

 private:
  std::map<std::int64_t, std::int64_t> ranges_;  ///< first -> last, on a line that does not wrap
  std::int64_t highest_ = 0;
  std::uint64_t distinct_ = 0;
  std::uint64_t settled_gaps_ = 0;
};

class Statistics {
 public:
  void add(const DecodedPacket& packet);
  /// What the capture itself says that it misses.
  void set_packets_missing(std::uint64_t packets) { packets_missing_ = packets; }
  /// The same between its packets, also between those that a filter leaves out.
  void set_packets_missing_between(std::uint64_t packets) { packets_missing_between_ = packets; }
  bool is_empty() const { return packets_ == 0; }
  std::string to_text() const;
  nlohmann::ordered_json to_json() const;

  /// PDC directions that are told apart; packets of further ones are only counted in the totals.
  static constexpr std::size_t kPdcsMax = 65536;

 private:
  /// One direction of a PDC: source, destination, spdcid.
  using FlowKey = std::tuple<std::string, std::string, std::uint32_t>;
  struct Flow {
    PsnTracker psns;
    std::uint64_t packets = 0, retransmissions = 0, out_of_order = 0, payload_bytes = 0;
    std::uint64_t first_ns = 0, last_ns = 0;
  };

  /// False when the packet was seen before, or comes again because this one was trimmed.
  bool add_request(const DecodedPacket& packet, const Layer& pds, FlowKey key);
  void add_message(const Layer& ses, bool is_new);
  double seconds() const;
  double goodput_bps() const;

  std::uint64_t packets_ = 0, bytes_ = 0, packets_with_problems_ = 0, trimmed_ = 0;
  std::uint64_t packets_missing_ = 0, packets_missing_between_ = 0, packets_cut_ = 0;
  std::uint64_t first_ns_ = 0, last_ns_ = 0;
  std::uint64_t retransmissions_ = 0, duplicates_ = 0, out_of_order_ = 0, goodput_bytes_ = 0;
  std::uint64_t messages_ = 0, messages_ended_ = 0, flows_not_tracked_ = 0;
  std::map<FlowKey, Flow> flows_;
  std::map<std::string, std::uint64_t> types_, opcodes_, nacks_, problems_, return_codes_, drops_;
};

/// The sums of a file. A capture of uet-fabric has a packet twice, where it comes from one host and where it goes to the other: sums for each.
class CaptureStatistics {
 public:
  void add(const DecodedPacket& packet);
  void set_packets_missing(std::uint64_t packets);
  void set_packets_missing_between(std::uint64_t packets);
  std::string to_text() const;
  nlohmann::ordered_json to_json() const;

 private:
  enum Place : std::size_t { kFromHosts, kToHosts, kElsewhere, kPlaces };
  struct PlaceName {
    const char* title;
    const char* key;
  };
  static constexpr std::array<PlaceName, kPlaces> kNames = {{{"What hosts sent", "from_hosts"},
                                                             {"What came to hosts", "to_hosts"},
                                                             {"Other packets", "others"}}};

  static Place place_of(const wire::CapturedPacket& packet);
  bool is_of_fabric() const { return !sums_[kFromHosts].is_empty() || !sums_[kToHosts].is_empty(); }

  std::array<Statistics, kPlaces> sums_;
};

}  // namespace uet::dump
