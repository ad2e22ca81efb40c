/// `uet-perf tcp`: kernel TCP, with the tests, runs and columns of `uet-perf fabric`. The control connection agrees, a second
/// one carries the bytes.

#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "apps/perf/baseline_bench.h"
#include "apps/perf/control_channel.h"
#include "apps/perf/memory.h"
#include "apps/perf/rounds.h"
#include "apps/perf/tcp_connect.h"
#include "lib/base/version.h"

namespace uet::perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kTurnsBetweenLooks = 1024;

/// A connected socket that spins.
class Stream {
 public:
  Stream(Socket socket, Patience& patience) : socket_(std::move(socket)), patience_(patience) {
    const int one = 1;
    setsockopt(socket_.fd(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }
  void put(const std::uint8_t* from, std::size_t bytes) {
    move(bytes, [&](std::size_t done) {
      return ::send(socket_.fd(), from + done, bytes - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    });
  }
  void take(std::uint8_t* to, std::size_t bytes) {
    move(bytes, [&](std::size_t done) {
      return ::recv(socket_.fd(), to + done, bytes - done, MSG_DONTWAIT);
    });
  }

 private:
  template <typename Call>
  void move(std::size_t bytes, Call&& call) {
    patience_.progressed();
    std::uint64_t turns = 0;
    for (std::size_t done = 0; done < bytes;) {
      const ssize_t n = call(done);
      if (n > 0) {
        done += static_cast<std::size_t>(n);
      } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        throw std::runtime_error(n == 0 ? "the other side closed the data connection"
                                        : std::string("data connection: ") + std::strerror(errno));
      } else if (++turns % kTurnsBetweenLooks == 0) {
        patience_.check("bytes of the other side");
      }
    }
  }

  Socket socket_;
  Patience& patience_;
};

/// One run of one test; both sides hold the same plan.
struct TcpRun {
  const Plan& plan;
  Stream& stream;
  std::vector<std::uint8_t>& buffer;

  /// The client's side.
  double measure(std::uint64_t messages, std::vector<double>& half_rtts) {
    const bool is_ping = is_latency_test(plan.test);
    const auto start = Clock::now();
    for (std::uint64_t n = 0; n < messages; ++n) {
      const auto sent = Clock::now();
      stream.put(buffer.data(), plan.size);
      if (!is_ping) continue;
      stream.take(buffer.data(), plan.size);
      half_rtts.push_back(std::chrono::duration<double, std::micro>(Clock::now() - sent).count() /
                          2);
    }
    std::uint8_t over = 0;
    stream.take(&over, 1);
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  void serve(std::uint64_t messages) {
    for (std::uint64_t n = 0; n < messages; ++n) {
      stream.take(buffer.data(), plan.size);
      if (is_latency_test(plan.test)) stream.put(buffer.data(), plan.size);
    }
    const std::uint8_t over = 1;
    stream.put(&over, 1);
  }
};

Figure measure(const FabricOptions& o, const Plan& plan, ControlChannel& control, Stream& stream) {
  Figure figure;
  figure.provider = "kernel TCP";
  figure.plan = plan;
  auto buffer = make_buffer(plan.size, 1);
  std::vector<double> seconds;
  std::vector<std::vector<double>> half_rtts;
  const std::uint64_t warm_up = o.warm_up.value_or(default_warm_up(plan.count));
  for (Rounds rounds(o, warm_up != 0); rounds.advance();) {
    const std::uint64_t messages = rounds.counts() ? plan.count : warm_up;
    const nlohmann::json answer =
        control.exchange({{"plan", to_json(plan)}, {"messages", messages}}, "the server's answer");
    if (const auto no = answer.find("refused"); no != answer.end() && no->is_string()) {
      figure.why_not = no->get<std::string>();
      return figure;
    }
    std::vector<double> of_run;
    of_run.reserve(is_latency_test(plan.test) ? messages : 0);
    const double took = TcpRun{plan, stream, buffer}.measure(messages, of_run);
    if (!rounds.counts()) continue;
    seconds.push_back(took);
    half_rtts.push_back(std::move(of_run));
  }
  summarize(figure, seconds, half_rtts);
  return figure;
}

int run_client(const FabricOptions& o, Patience& patience) {
  ControlChannel control = ControlChannel::connect(o.peer, o.control_port, "tcp", patience);
  const nlohmann::json answer =
      control.exchange({{"do", "listen"}}, "the port of the data connection");
  const auto port = answer.find("port");
  if (port == answer.end() || !port->is_number_unsigned())
    throw ControlLost("the two sides are out of step: " + answer.dump());
  Socket socket = connect_tcp(o.peer, port->get<std::uint16_t>(), patience.left());
  if (!socket.is_open())
    throw ControlLost(std::string("cannot open the data connection: ") + std::strerror(errno));
  Stream stream(std::move(socket), patience);
  Report report(o.format,
                {{"version", base::kVersion}, {"peer", control.peer_name()}, asked_for(o)});
  for (const std::string& test : o.tests.empty() ? std::vector<std::string>{"send"} : o.tests) {
    const std::uint64_t usual = is_latency_test(test) ? 8 : 1 << 20;
    for (const std::uint64_t size : o.sizes.empty() ? std::vector{usual} : o.sizes)
      report.add({measure(o, {test, size, o.count.value_or(default_count(test, size)), 1, false},
                          control, stream)});
  }
  control.send({{"bye", true}});
  report.finish();
  return report.is_complete() ? 0 : 1;
}

int run_server(const FabricOptions& o, Patience& patience) {
  ControlChannel control = ControlChannel::listen(o.listen, o.control_port, "tcp", patience);
  control.await("the client's first request");
  const Socket listener = listen_tcp(o.listen, 0);
  if (!listener.is_open()) throw ControlLost(std::string("cannot listen: ") + std::strerror(errno));
  control.send({{"port", port_of_listener(listener)}});
  Socket socket = accept_tcp(listener, patience.left());
  if (!socket.is_open()) throw ControlLost("the client opened no data connection");
  Stream stream(std::move(socket), patience);
  const Demands demands{.tests = o.tests,
                        .providers = {},
                        .sizes = o.sizes,
                        .count = o.count,
                        .window = {},
                        .ordered = {}};
  unsigned refusals = 0;
  for (;;) {
    const nlohmann::json request = control.await("the client's next request");
    if (request.contains("bye")) return refusals == 0 ? 0 : 1;
    const auto plan = request.contains("plan") ? plan_from_json(request["plan"]) : std::nullopt;
    const std::uint64_t messages = request.value("messages", std::uint64_t{0});
    if (!plan || messages == 0 || messages > kCountMax)
      throw ControlLost("the client asks for a run that makes no sense; is it the same version?");
    if (const std::string why = why_refused(demands, *plan); !why.empty()) {
      ++refusals;
      fmt::print(stderr, "uet-perf: refused: {}\n", why);
      control.send({{"refused", why}});
      continue;
    }
    auto buffer = make_buffer(plan->size);
    control.send({{"ok", true}});
    TcpRun{*plan, stream, buffer}.serve(messages);
  }
}

}  // namespace

int run_tcp(const FabricOptions& o) {
  Patience patience(std::chrono::milliseconds(static_cast<std::int64_t>(o.timeout_s * 1000)));
  return o.peer.empty() ? run_server(o, patience) : run_client(o, patience);
}

}  // namespace uet::perf
