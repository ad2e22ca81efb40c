#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "apps/perf/figure.h"
#include "apps/perf/raw_side.h"
#include "lib/ports/open_port.h"
#include "lib/ports/tool_words.h"

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
constexpr std::size_t kRawRuns = 5;
// A run takes as long as it needs for so many packets, within some time.
constexpr std::uint64_t kFewest = 32;
constexpr Duration kPatience = Duration::from_seconds(1);

struct Throughput {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  Spread gbps, packets_per_second;  ///< over the runs
};

struct RawRun {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  double gbps = 0;
  double packets_per_second = 0;
};

struct Latency {
  Spread half_rtt_us;
  Tail tail;
  std::uint64_t measured = 0;
  std::uint64_t lost = 0;
};

class RawClient {
 public:
  RawClient(const RawOptions& options, RawSide& side) : options_(options), side_(side) {}

  int run() {
    const Throughput bulk = throughput(options_.size, options_.copy ? options_.memory_shift : 0);
    const Throughput small = throughput(kSmallPacket, 0);
    const Latency latency = measure_latency();
    print(bulk, small, latency);
    dismiss_server();
    return 0;
  }

 private:
  RawHeader header(RawKind kind) const {
    return RawHeader{.kind = kind, .run = run_, .copy_shift = copy_shift_, .sequence = session_};
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
        if (!got || got->kind != answer || got->run != run_ || got->sequence != session_) continue;
        if (got->version != kRawVersion)
          throw std::runtime_error("the server runs another version of uet-perf raw");
        return std::move(rx.packet);
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

  /// The spread over the runs: a scheduler that takes a core away from one of them is seen, and does not decide the
  /// median. What was sent and received is of all runs.
  Throughput throughput(std::size_t size, unsigned copy_shift) {
    copy_shift_ = static_cast<std::uint8_t>(copy_shift);
    if (copy_shift != 0) source_.resize(copy_shift);
    std::vector<double> gbps, packets;
    Throughput result;
    for (std::size_t i = 0; i < kRawRuns; ++i) {
      const RawRun run = measure_throughput(size);
      gbps.push_back(run.gbps);
      packets.push_back(run.packets_per_second);
      result.sent += run.sent;
      result.received += run.received;
    }
    result.gbps = spread_of(gbps);
    result.packets_per_second = spread_of(packets);
    return result;
  }

  RawRun measure_throughput(std::size_t size) {
    ++run_;
    const auto ready = RawHeader::parse(ask(RawKind::kStart, RawKind::kReady));
    if (ready && ready->copy_shift != copy_shift_) {
      dismiss_server();
      throw std::runtime_error(fmt::format(
          "the server does not copy through as much memory: give it --copy --memory {}k as well",
          (std::size_t{1} << copy_shift_) / 1024));
    }
    RawRun result;
    result.sent = send_for(
        Duration::from_ns(static_cast<std::int64_t>(options_.seconds * 1e9 / kRawRuns)), size);
    const auto report = RawReport::parse(ask(RawKind::kEnd, RawKind::kReport));
    if (!report)
      throw std::runtime_error("the peer sent a malformed report; is it the same version?");
    result.received = report->packets;
    if (result.received < 2)
      throw std::runtime_error(fmt::format("{} of {} packets of {} bytes arrived: no rate to tell",
                                           result.received, result.sent, size));
    const auto elapsed = static_cast<double>(std::max<std::uint64_t>(report->elapsed_ns, 1));
    result.gbps = static_cast<double>(report->bytes) * 8 / elapsed;
    result.packets_per_second = static_cast<double>(report->packets) * 1e9 / elapsed;
    return result;
  }

  /// Keeps the port full for a while, and until some packets were taken: on a crowded machine a short while may pass without this process.
  /// Returns how many packets it took.
  std::uint64_t send_for(Duration time, std::size_t size) {
    std::array<net::TxPacket, RawSide::kBurst> burst;
    std::uint64_t sent = 0;
    std::size_t have = 0;
    const Instant end = clock_now() + time, latest = end + kPatience;
    for (Instant now = clock_now(); now < end || (sent < kFewest && now < latest);
         now = clock_now()) {
      while (have < burst.size()) {
        burst[have] = side_.make(header(RawKind::kData), size);
        if (!burst[have].packet) break;
        if (copy_shift_ != 0) fill(burst[have].packet);
        ++have;
      }
      const std::size_t taken = side_.send(now, {burst.data(), have});
      sent += taken;
      std::move(burst.begin() + taken, burst.begin() + have, burst.begin());
      have -= taken;
      side_.receive(now);  // ARP and ND want to be heard, and a sender in earnest listens as well
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
    // On a crowded machine every ping may cost a time slice of another process, so warming up has its time as well.
    const Instant begin = clock_now();
    const Instant warm_at = begin + Duration::from_seconds(1);
    const Instant deadline = begin + Duration::from_seconds(10);
    for (std::uint32_t i = 0; i < warm_up + options_.pings && clock_now() < deadline; ++i) {
      const double us = ping(session_ + i);
      if (us < 0)
        ++result.lost;
      else if (i >= warm_up || clock_now() >= warm_at)
        half_rtts.push_back(us / 2);
    }
    if (half_rtts.empty()) throw std::runtime_error("every ping was lost");
    std::sort(half_rtts.begin(), half_rtts.end());
    result.measured = half_rtts.size();
    result.half_rtt_us = spread_of(half_rtts);
    result.tail = tail_of(half_rtts);
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
    if (options_.json) return print_json(bulk, small, latency);
    fmt::print("{}, {} runs of {:g} s{}\n", side_.port().facts().name, kRawRuns,
               options_.seconds / kRawRuns,
               options_.copy ? fmt::format(", payload copied on both sides, {} KiB in turn",
                                           std::size_t{1} << (options_.memory_shift - 10))
                             : "");
    fmt::print("{:<24} {:>10}{:>10}{:>10}   {}\n", "", "min", "median", "max", "lost");
    const auto row = [](const std::string& name, const Spread& s, double unit,
                        const std::string& lost) {
      fmt::print("{:<24} {:>10.2f}{:>10.2f}{:>10.2f}   {}\n", name, s.min / unit, s.median / unit,
                 s.max / unit, lost);
    };
    const auto lost = [](const Throughput& t) {
      return fmt::format("{} of {}", t.sent - std::min(t.sent, t.received), t.sent);
    };
    const auto tail = [](const char* name, const std::optional<double>& us) {
      return us ? fmt::format("{} {:.2f}", name, *us) : "";
    };
    row(fmt::format("{} bytes, Gbit/s", options_.size), bulk.gbps, 1, lost(bulk));
    row(fmt::format("{} bytes, Mpackets/s", options_.size), bulk.packets_per_second, 1e6,
        lost(bulk));
    row(fmt::format("{} bytes, Mpackets/s", kSmallPacket), small.packets_per_second, 1e6,
        lost(small));
    row("half round trip, us", latency.half_rtt_us, 1,
        fmt::format("{} of {}{}{}", latency.lost, latency.lost + latency.measured,
                    tail(", p99", latency.tail.p99), tail(", p99.9", latency.tail.p999)));
  }

  void print_json(const Throughput& bulk, const Throughput& small, const Latency& latency) const {
    const nlohmann::ordered_json out = {
        {"port", side_.port().facts().name},
        {"size", options_.size},
        {"copy", options_.copy},
        {"memory", options_.copy ? std::size_t{1} << options_.memory_shift : 0},
        {"runs", kRawRuns},
        {"gbps", bulk.gbps.median},
        {"gbps_min", bulk.gbps.min},
        {"gbps_max", bulk.gbps.max},
        {"packets_per_second", bulk.packets_per_second.median},
        {"packets_per_second_min", bulk.packets_per_second.min},
        {"packets_per_second_max", bulk.packets_per_second.max},
        {"sent", bulk.sent},
        {"received", bulk.received},
        {"small_size", kSmallPacket},
        {"small_packets_per_second", small.packets_per_second.median},
        {"small_packets_per_second_min", small.packets_per_second.min},
        {"small_packets_per_second_max", small.packets_per_second.max},
        {"half_rtt_us_min", latency.half_rtt_us.min},
        {"half_rtt_us_median", latency.half_rtt_us.median},
        {"half_rtt_us_max", latency.half_rtt_us.max},
        {"half_rtt_us_p90", or_null(latency.tail.p90)},
        {"half_rtt_us_p99", or_null(latency.tail.p99)},
        {"half_rtt_us_p99.9", or_null(latency.tail.p999)},
        {"pings", latency.measured},
        {"pings_lost", latency.lost}};
    fmt::print("{}\n", out.dump());
  }

  const RawOptions& options_;
  RawSide& side_;
  const std::uint32_t session_ = std::random_device{}();
  std::uint8_t run_ = 0;
  CopyBuffer source_;
  std::uint8_t copy_shift_ = 0;  ///< of the runs that are measured
};

}  // namespace

int run_raw_client(const RawOptions& options, RawSide& side) {
  return RawClient(options, side).run();
}

namespace {

/// A udp port that names no place is on the interface that has our address.
bool has_place(const net::PortRequest& request) {
  return request.spec != "udp" && !request.spec.starts_with("udp,");
}

net::PortRequest port_of(const RawOptions& options) {
  net::PortRequest request = options.request;
  if (!has_place(request)) request.spec.insert(3, ":" + request.address.to_string());
  return request;
}

/// Empty, or why these options do not go together.
std::string why_not(const RawOptions& o) {
  const bool is_udp = o.request.spec.starts_with("udp");
  if (o.request.address.is_unspecified() && !(is_udp && has_place(o.request)))
    return "which address is ours? Give --address, on one host any of 127.0.0.2 to 127.0.0.254";
  return ports::why_unreachable(o.request.address, o.peer);
}

int refuse(const std::string& why) {
  fmt::print(stderr, "uet-perf: {}\n", why);
  return 2;
}

/// What the port and the device under it lost, and why.
void report_drops(const base::Trace& trace) {
  for (std::size_t i = 0; i < base::kDropReasonCount; ++i) {
    const auto reason = static_cast<base::DropReason>(i);
    if (trace.drops(reason) != 0)
      fmt::print(stderr, "dropped {}: {} ({})\n", trace.drops(reason), base::name_of(reason),
                 base::text_of(reason));
  }
}

}  // namespace

int run_raw(const RawOptions& options) {
  base::Trace trace;
  std::string error = why_not(options);
  if (!error.empty()) return refuse(error);
  const auto port =
      ports::open_port({.request = port_of(options), .impair = {}, .pcap = {}}, trace, error);
  if (port == nullptr) throw std::runtime_error(ports::in_options(error));
  if (!error.empty()) std::fprintf(stderr, "%s\n", ports::in_options(error).c_str());
  error = ports::why_unreachable(port->facts().address, options.peer);
  if (!error.empty()) return refuse(error);
  if (options.size > port->pool().max_packet_bytes() - 64)
    throw std::runtime_error("packets of " + std::to_string(options.size) +
                             " bytes do not fit this port");
  RawSide side(*port, options.peer);
  const int status =
      options.is_server ? run_raw_server(options, side) : run_raw_client(options, side);
  report_drops(trace);
  return status;
}

}  // namespace uet::perf
