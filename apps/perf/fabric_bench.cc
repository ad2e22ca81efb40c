#include "apps/perf/fabric_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "apps/perf/control_channel.h"
#include "apps/perf/fabric_session.h"

namespace uet::perf {
namespace {

using Clock = std::chrono::steady_clock;

struct Result {
  double seconds = 0;
  std::uint64_t messages = 0;
  std::vector<double> half_rtt_us;  ///< sorted; only of latency tests
};

/// The byte that position i of round r must hold: differs between neighbours, rounds and sides.
std::uint8_t pattern(std::uint64_t round, std::size_t i) {
  return static_cast<std::uint8_t>(i * 131 + round * 29 + (i >> 12));
}

void fill(std::uint8_t* at, std::size_t size, std::uint64_t round) {
  for (std::size_t i = 0; i < size; ++i) at[i] = pattern(round, i);
}

void verify(const std::uint8_t* at, std::size_t size, std::uint64_t round, const char* what) {
  for (std::size_t i = 0; i < size; ++i)
    if (at[i] != pattern(round, i))
      throw std::runtime_error(fmt::format("wrong data: {} byte {} of {}", what, i, size));
}

/// The passive side: keep the provider turning until the client says that it is done.
void serve(FabricSession& fabric, ControlChannel& control) {
  for (unsigned turn = 0;; ++turn) {
    fabric.poll();
    if (turn % 256 == 0 && control.readable()) break;
  }
}

class Bench {
 public:
  Bench(const FabricOptions& options, ControlChannel& control, FabricSession& fabric)
      : o_(options), control_(control), fabric_(fabric), is_server_(options.peer.empty()) {}

  Result run() {
    if (o_.test == "write" || o_.test == "read") return rma();
    if (o_.test == "send" || o_.test == "tagged-rate") return stream();
    if (o_.test == "tagged-latency") return ping_pong();
    throw std::invalid_argument("unknown test " + o_.test);
  }

 private:
  /// Buffer layout: window slots to send from (or read into), then window slots to receive into.
  std::uint8_t* outgoing(unsigned slot) { return fabric_.buffer() + slot * o_.size; }
  std::uint8_t* incoming(unsigned slot) { return fabric_.buffer() + (o_.window + slot) * o_.size; }

  void barrier() {
    const std::uint8_t mark[1] = {1};
    control_.exchange(mark);
  }

  Result rma() {
    const bool reading = o_.test == "read";
    for (unsigned s = 0; s < o_.window; ++s) fill(reading ? incoming(s) : outgoing(s), o_.size, s);
    barrier();
    if (is_server_) {
      serve(fabric_, control_);
      barrier();
      if (!reading && o_.verify)
        for (unsigned s = 0; s < std::min<std::uint64_t>(o_.window, o_.count); ++s)
          verify(incoming(s), o_.size, s, "written");
      barrier();
      return {};
    }
    const std::uint64_t remote_offset = o_.window * o_.size;  // the incoming slots
    transfer(std::min<std::uint64_t>(o_.count / 10 + 1, o_.count), reading,
             remote_offset);  // warm up
    Result r;
    const auto start = Clock::now();
    transfer(o_.count, reading, remote_offset);
    r.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    r.messages = o_.count;
    if (reading && o_.verify)
      for (unsigned s = 0; s < std::min<std::uint64_t>(o_.window, o_.count); ++s)
        verify(outgoing(s), o_.size, s, "read");
    barrier();
    barrier();
    return r;
  }

  void transfer(std::uint64_t count, bool reading, std::uint64_t remote_offset) {
    std::uint64_t finished = 0;
    for (std::uint64_t n = 0; n < count; ++n) {
      const unsigned slot = static_cast<unsigned>(n % o_.window);
      while (n - finished >= o_.window) finished += fabric_.poll();
      const std::uint64_t to = fabric_.remote_address() + remote_offset + slot * o_.size;
      fabric_.post(
          [&] {
            return reading ? fi_read(fabric_.ep(), outgoing(slot), o_.size, fabric_.descriptor(),
                                     fabric_.peer(), to, fabric_.remote_key(), nullptr)
                           : fi_write(fabric_.ep(), outgoing(slot), o_.size, fabric_.descriptor(),
                                      fabric_.peer(), to, fabric_.remote_key(), nullptr);
          },
          finished);
    }
    fabric_.wait_for(finished, count);
  }

  void post_receive(unsigned slot, std::uint64_t& finished) {
    fabric_.post(
        [&] {
          return o_.test == "send" ? fi_recv(fabric_.ep(), incoming(slot), o_.size,
                                             fabric_.descriptor(), FI_ADDR_UNSPEC, nullptr)
                                   : fi_trecv(fabric_.ep(), incoming(slot), o_.size,
                                              fabric_.descriptor(), FI_ADDR_UNSPEC, 7, 0, nullptr);
        },
        finished);
  }
  void post_send(unsigned slot, std::uint64_t& finished) {
    fabric_.post(
        [&] {
          return o_.test == "send" ? fi_send(fabric_.ep(), outgoing(slot), o_.size,
                                             fabric_.descriptor(), fabric_.peer(), nullptr)
                                   : fi_tsend(fabric_.ep(), outgoing(slot), o_.size,
                                              fabric_.descriptor(), fabric_.peer(), 7, nullptr);
        },
        finished);
  }

  /// Sends one message; returns how many completions it will produce.
  std::uint64_t ping(bool inject, std::uint64_t& finished) {
    if (!inject) {
      post_send(0, finished);
      return 1;
    }
    fabric_.post([&] { return fi_tinject(fabric_.ep(), outgoing(0), o_.size, fabric_.peer(), 7); },
                 finished);
    return 0;
  }

  /// One direction, many messages; the receiver keeps `window` receives posted.
  Result stream() {
    for (unsigned s = 0; s < o_.window; ++s) fill(outgoing(s), o_.size, 0);
    std::uint64_t finished = 0;
    // Links come up and neighbors are asked with the first messages.
    const std::uint64_t warm_up = std::min<std::uint64_t>(o_.count / 10 + 1, 1000);
    const std::uint64_t total = warm_up + o_.count;
    if (is_server_) {
      for (unsigned s = 0; s < o_.window; ++s) post_receive(s, finished);
      barrier();
      for (std::uint64_t posted = o_.window; finished < total;) {
        finished += fabric_.poll();
        for (; posted < std::min(total, finished + o_.window); ++posted)
          post_receive(static_cast<unsigned>(posted % o_.window), finished);
      }
      if (o_.verify)
        for (unsigned s = 0; s < std::min<std::uint64_t>(o_.window, total); ++s)
          verify(incoming(s), o_.size, 0, "sent");
      serve(fabric_, control_);
      barrier();
      return {};
    }
    barrier();
    Result r;
    auto start = Clock::now();
    for (std::uint64_t n = 0; n < total; ++n) {
      if (n == warm_up) {
        fabric_.wait_for(finished, n);
        start = Clock::now();
      }
      while (n - finished >= o_.window) finished += fabric_.poll();
      post_send(static_cast<unsigned>(n % o_.window), finished);
    }
    fabric_.wait_for(finished, total);
    r.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    r.messages = o_.count;
    barrier();
    return r;
  }

  Result ping_pong() {
    Result r;
    r.half_rtt_us.reserve(o_.count);
    const std::uint64_t warm_up = std::min<std::uint64_t>(o_.count / 10 + 1, 1000);
    // Small messages are injected: no completion of their own, so that only the answer is waited
    // for.
    const bool inject = o_.size <= fabric_.inject_size();
    std::uint64_t finished = 0, expected = 0;
    post_receive(0, finished);
    barrier();
    const auto begin = Clock::now();
    for (std::uint64_t n = 0; n < o_.count + warm_up; ++n) {
      const auto start = Clock::now();
      if (!is_server_) expected += ping(inject, finished);
      fabric_.wait_for(finished, ++expected);
      if (n + 1 < o_.count + warm_up) post_receive(0, finished);
      if (is_server_) {
        expected += ping(inject, finished);
        if (!inject) fabric_.wait_for(finished, expected);
      } else if (n >= warm_up) {
        r.half_rtt_us.push_back(
            std::chrono::duration<double, std::micro>(Clock::now() - start).count() / 2);
      }
    }
    r.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    r.messages = o_.count;
    if (is_server_) {
      serve(fabric_, control_);
      barrier();
      return {};
    }
    barrier();
    std::sort(r.half_rtt_us.begin(), r.half_rtt_us.end());
    return r;
  }

  const FabricOptions& o_;
  ControlChannel& control_;
  FabricSession& fabric_;
  bool is_server_;
};

void print(const FabricOptions& o, const FabricSession& fabric, const Result& r) {
  const double gbps = static_cast<double>(r.messages * o.size) * 8e-9 / r.seconds;
  const double rate = static_cast<double>(r.messages) / r.seconds;
  const auto percentile = [&](double q) {
    return r
        .half_rtt_us[static_cast<std::size_t>(q * static_cast<double>(r.half_rtt_us.size() - 1))];
  };
  if (o.json) {
    nlohmann::ordered_json j = {{"test", o.test},         {"provider", fabric.provider_name()},
                                {"size", o.size},         {"messages", r.messages},
                                {"seconds", r.seconds},   {"gbit_per_s", gbps},
                                {"messages_per_s", rate}, {"window", o.window}};
    if (!r.half_rtt_us.empty())
      j["half_rtt_us"] = {
          {"min", percentile(0)}, {"median", percentile(0.5)}, {"p99", percentile(0.99)}};
    fmt::print("{}\n", j.dump());
  } else if (r.half_rtt_us.empty()) {
    fmt::print("{:<14} {:>10} B x {:>8}  {:8.3f} Gbit/s  {:12.0f} messages/s\n", o.test, o.size,
               r.messages, gbps, rate);
  } else {
    fmt::print(
        "{:<14} {:>10} B x {:>8}  half round trip {:.2f} us median ({:.2f} min, {:.2f} p99)\n",
        o.test, o.size, r.messages, percentile(0.5), percentile(0), percentile(0.99));
  }
}

}  // namespace

int run_fabric(const FabricOptions& o) {
  try {
    ControlChannel control = o.peer.empty()
                                 ? ControlChannel::listen(o.listen, o.control_port, o.timeout_s)
                                 : ControlChannel::connect(o.peer, o.control_port, o.timeout_s);
    FabricSession fabric(control, o.provider, o.ordered,
                         2 * o.window * std::max<std::size_t>(o.size, 1));
    const Result r = Bench(o, control, fabric).run();
    if (!o.peer.empty()) print(o, fabric, r);
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "uet-perf: {}\n", e.what());
    return 1;
  }
}

}  // namespace uet::perf
