#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "apps/perf/raw_side.h"
#include "lib/ports/open_port.h"

namespace uet::perf {

namespace {

using base::Duration;
using base::Instant;

constexpr std::size_t kSmallPacket = 64;
constexpr std::size_t kPingBytes = 8;
constexpr Duration kAskAgain = Duration::from_ms(20);
constexpr Duration kFarewell = Duration::from_seconds(5);
// Beyond what a scheduler may keep the peer waiting on a crowded machine.
constexpr Duration kPingPatience = Duration::from_seconds(1);
constexpr std::size_t kRuns = 5;

struct Throughput {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  double gbps = 0;
  double packets_per_second = 0;
};

struct Latency {
  double half_rtt_us_median = 0;
  double half_rtt_us_p99 = 0;
  std::uint64_t lost = 0;
};

class RawClient {
 public:
  RawClient(const RawOptions& options, RawSide& side) : options_(options), side_(side) {}

  int run() {
    const Throughput bulk = median_throughput(options_.size, options_.copy);
    const Throughput small = median_throughput(kSmallPacket, false);
    const Latency latency = measure_latency();
    print(bulk, small, latency);
    dismiss_server();
    return 0;
  }

 private:
  RawHeader header(RawKind kind, bool copy = false) const {
    return RawHeader{.kind = kind, .run = run_, .copy = copy};
  }

  /// Sends `question` until the peer answers with `answer` for this run; null when it does not in time.
  net::Packet ask_within(Duration patience, RawKind question, RawKind answer) {
    const Instant deadline = clock_now() + patience;
    Instant ask_at;
    for (Instant now = clock_now(); now < deadline; now = clock_now()) {
      if (now >= ask_at) {
        side_.send_one(side_.make(header(question), RawHeader::kSize));
        ask_at = now + kAskAgain;
      }
      for (net::RxPacket& rx : side_.receive(now)) {
        const auto got = RawHeader::parse(rx.packet);
        if (got && got->kind == answer && got->run == run_) return std::move(rx.packet);
      }
    }
    return {};
  }

  net::Packet ask(RawKind question, RawKind answer) {
    net::Packet packet = ask_within(Duration::from_seconds(options_.timeout_s), question, answer);
    if (packet) return packet;
    throw std::runtime_error("no answer from " + options_.peer.to_string() + " within " +
                             std::to_string(options_.timeout_s) +
                             " s; is `uet-perf raw --server` running there?");
  }

  /// Leaving at once would take the link away, and with it what the server has not read yet. The server itself may be
  /// gone before its answer is seen, so silence is no failure.
  void dismiss_server() {
    ask_within(std::min(kFarewell, Duration::from_seconds(options_.timeout_s)), RawKind::kBye,
               RawKind::kGone);
  }

  /// The run in the middle: a scheduler that takes a core away from one of them does not decide the result. What was
  /// sent and received is of all runs.
  Throughput median_throughput(std::size_t size, bool copy) {
    std::array<Throughput, kRuns> runs;
    for (Throughput& run : runs) run = measure_throughput(size, copy);
    std::sort(runs.begin(), runs.end(), [](const Throughput& a, const Throughput& b) {
      return a.packets_per_second < b.packets_per_second;
    });
    Throughput result = runs[kRuns / 2];
    result.sent = result.received = 0;
    for (const Throughput& run : runs) {
      result.sent += run.sent;
      result.received += run.received;
    }
    return result;
  }

  Throughput measure_throughput(std::size_t size, bool copy) {
    ++run_;
    ask(RawKind::kStart, RawKind::kReady);
    Throughput result;
    result.sent = send_for(
        Duration::from_ns(static_cast<std::int64_t>(options_.seconds * 1e9 / kRuns)), size, copy);
    const auto report = RawReport::parse(ask(RawKind::kEnd, RawKind::kReport));
    if (!report)
      throw std::runtime_error("the peer sent a malformed report; is it the same version?");
    result.received = report->packets;
    const auto elapsed = static_cast<double>(std::max<std::uint64_t>(report->elapsed_ns, 1));
    result.gbps = static_cast<double>(report->bytes) * 8 / elapsed;
    result.packets_per_second = static_cast<double>(report->packets) * 1e9 / elapsed;
    return result;
  }

  /// Keeps the port full for a while; returns how many packets it took.
  std::uint64_t send_for(Duration time, std::size_t size, bool copy) {
    std::array<net::TxPacket, RawSide::kBurst> burst;
    std::uint64_t sent = 0;
    std::size_t have = 0;
    const Instant end = clock_now() + time;
    for (Instant now = clock_now(); now < end; now = clock_now()) {
      while (have < burst.size()) {
        burst[have] = side_.make(header(RawKind::kData, copy), size);
        if (!burst[have].packet) break;
        if (copy) fill(burst[have].packet);
        ++have;
      }
      const std::size_t taken = side_.send(now, {burst.data(), have});
      sent += taken;
      std::move(burst.begin() + taken, burst.begin() + have, burst.begin());
      have -= taken;
      side_.receive(
          now);  // ARP and ND want to be heard, and whoever sends in earnest listens as well
    }
    return sent;
  }

  void fill(net::Packet& packet) {
    const std::size_t n = packet.size() - RawHeader::kSize;
    std::memcpy(packet.data() + RawHeader::kSize, source_.next(n), n);
  }

  Latency measure_latency() {
    ++run_;
    ask(RawKind::kStart, RawKind::kReady);
    std::vector<double> half_rtts;
    half_rtts.reserve(options_.pings);
    Latency result;
    const std::uint32_t warm_up = options_.pings / 10;
    // On a crowded machine every ping may cost a time slice of somebody else.
    const Instant deadline = clock_now() + Duration::from_seconds(10);
    for (std::uint32_t i = 0; i < warm_up + options_.pings && clock_now() < deadline; ++i) {
      const double us = ping(i);
      if (us < 0)
        ++result.lost;
      else if (i >= warm_up)
        half_rtts.push_back(us / 2);
    }
    if (half_rtts.empty()) throw std::runtime_error("every ping was lost");
    std::sort(half_rtts.begin(), half_rtts.end());
    result.half_rtt_us_median = half_rtts[half_rtts.size() / 2];
    result.half_rtt_us_p99 = half_rtts[half_rtts.size() * 99 / 100];
    return result;
  }

  /// Round trip in microseconds; negative when the answer does not come.
  double ping(std::uint32_t sequence) {
    RawHeader h = header(RawKind::kPing);
    h.sequence = sequence;
    const Instant start = clock_now();
    side_.send_one(side_.make(h, kPingBytes));
    const Instant deadline = start + kPingPatience;
    for (Instant now = start; now < deadline; now = clock_now())
      for (const net::RxPacket& rx : side_.receive(now)) {
        const auto got = RawHeader::parse(rx.packet);
        if (got && got->kind == RawKind::kPong && got->sequence == sequence)
          return static_cast<double>((clock_now() - start).ns()) / 1000;
      }
    return -1;
  }

  void print(const Throughput& bulk, const Throughput& small, const Latency& latency) const {
    if (options_.json) {
      const nlohmann::json out = {{"port", side_.port().facts().name},
                                  {"size", options_.size},
                                  {"copy", options_.copy},
                                  {"gbps", bulk.gbps},
                                  {"packets_per_second", bulk.packets_per_second},
                                  {"sent", bulk.sent},
                                  {"received", bulk.received},
                                  {"small_size", kSmallPacket},
                                  {"small_packets_per_second", small.packets_per_second},
                                  {"half_rtt_us_median", latency.half_rtt_us_median},
                                  {"half_rtt_us_p99", latency.half_rtt_us_p99},
                                  {"pings_lost", latency.lost}};
      fmt::print("{}\n", out.dump());
      return;
    }
    fmt::print("{:<28} {}\n", "port", side_.port().facts().name);
    fmt::print("{:<28} {:.2f} Gb/s, {:.2f} M packets/s, {} of {} lost\n",
               fmt::format("{} byte packets{}", options_.size, options_.copy ? ", copied" : ""),
               bulk.gbps, bulk.packets_per_second / 1e6,
               bulk.sent - std::min(bulk.sent, bulk.received), bulk.sent);
    fmt::print("{:<28} {:.2f} M packets/s, {} of {} lost\n",
               fmt::format("{} byte packets", kSmallPacket), small.packets_per_second / 1e6,
               small.sent - std::min(small.sent, small.received), small.sent);
    fmt::print("{:<28} {:.2f} us median, {:.2f} us p99, {} lost\n", "half round trip, 8 bytes",
               latency.half_rtt_us_median, latency.half_rtt_us_p99, latency.lost);
  }

  const RawOptions& options_;
  RawSide& side_;
  std::uint8_t run_ = 0;
  CopyBuffer source_;
};

}  // namespace

int run_raw_client(const RawOptions& options, RawSide& side) {
  return RawClient(options, side).run();
}

int run_raw(const RawOptions& options) {
  base::Trace trace;
  std::string error;
  const auto port =
      ports::open_port({.request = options.request, .impair = {}, .pcap = {}}, trace, error);
  if (port == nullptr) throw std::runtime_error(error);
  if (!error.empty()) std::fprintf(stderr, "%s\n", error.c_str());
  if (options.size > port->pool().max_packet_bytes() - 64)
    throw std::runtime_error("packets of " + std::to_string(options.size) +
                             " bytes do not fit this port");
  RawSide side(*port, options.peer);
  return options.is_server ? run_raw_server(options, side) : run_raw_client(options, side);
}

}  // namespace uet::perf
