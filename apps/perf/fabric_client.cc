/// The side that says what is measured, and prints it.

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "apps/perf/fabric_bench.h"
#include "apps/perf/fabric_session.h"
#include "apps/perf/lap.h"
#include "apps/perf/memory.h"
#include "apps/perf/rounds.h"
#include "lib/base/version.h"

namespace uet::perf {
namespace {

/// One provider under test.
struct Contender {
  std::string provider;
  std::unique_ptr<FabricSession> session;
  std::string why_not;  ///< not empty: it failed, and is measured no more
};

/// The server does not do what it is asked for, or is not asked; both sides are still in step.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::vector<Plan> plans_of(const FabricOptions& o) {
  std::vector<Plan> plans;
  for (const std::string& test : o.tests.empty() ? std::vector<std::string>{"write"} : o.tests) {
    const std::uint64_t usual = is_latency_test(test) || test == "tagged-rate" ? 8 : 1 << 20;
    for (const std::uint64_t size : o.sizes.empty() ? std::vector{usual} : o.sizes)
      plans.push_back({test, size, o.count.value_or(default_count(test, size)),
                       is_latency_test(test) ? 1 : o.window.value_or(kDefaultWindow), o.verify});
  }
  return plans;
}

class Client {
 public:
  Client(const FabricOptions& o, ControlChannel& control, Patience& patience)
      : o_(o),
        control_(control),
        patience_(patience),
        plans_(plans_of(o)),
        report_(o.format, {{"version", base::kVersion},
                           {"peer", control.peer_name()},
                           {"ordered", o.ordered},
                           asked_for(o)}) {
    for (const std::string& name :
         o.providers.empty() ? std::vector<std::string>{"uet"} : o.providers)
      contenders_.push_back({name, nullptr, ""});
  }

  int run() {
    std::string lost;
    try {
      for (Contender& c : contenders_) attempt(c, [&] { open(c); });
      for (; at_ < plans_.size(); ++at_) report_.add(measure(plans_[at_]));
      request({{"do", "bye"}});
    } catch (const ControlLost& error) {
      lost = error.what();
    }
    for (; at_ < plans_.size(); ++at_) report_.add(not_measured(plans_[at_], lost));
    report_.finish();
    if (!lost.empty()) fmt::print(stderr, "uet-perf: {}\n", lost);
    return lost.empty() && report_.is_complete() ? 0 : 1;
  }

 private:
  void request(const nlohmann::json& what) {
    control_.send(what);
    const nlohmann::json answer =
        control_.await("the server's answer", [this] { make_progress(); });
    if (const auto no = answer.find("refused"); no != answer.end() && no->is_string())
      throw Refused(no->get<std::string>());
    if (!answer.contains("ok"))
      throw ControlLost("the two sides are out of step: " + answer.dump());
  }

  void make_progress() {
    bool any = false;
    for (Contender& c : contenders_)
      if (c.session) {
        c.session->poll();
        any = true;
      }
    if (!any) control_.wait_briefly();
  }

  void open(Contender& c) {
    std::uint64_t bytes = 0;
    for (const Plan& plan : plans_) bytes = std::max(bytes, plan.buffer_bytes());
    const std::string peer = control_.peer_name();
    const bool is_one_host =
        peer.starts_with("127.") || peer.starts_with("::ffff:127.") || peer == "::1";
    if (const std::string why =
            why_too_much(bytes, memory_available(), is_one_host ? 2 : 1,
                         is_one_host ? " on each side, both on this host" : " on each side");
        !why.empty())
      throw Refused(why);
    request({{"do", "open"},
             {"session", static_cast<std::uint64_t>(&c - contenders_.data())},
             {"provider", c.provider},
             {"ordered", o_.ordered ? 1u : 0u},
             {"bytes", bytes}});
    c.session = std::make_unique<FabricSession>(control_, patience_, c.provider, o_.ordered, bytes);
  }

  /// Runs `step`; a failure on either side is the end of this contender, not of the others. Returns what went wrong.
  template <typename Step>
  std::string attempt(Contender& c, Step&& step) {
    try {
      step();
      return {};
    } catch (const ControlLost&) {
      throw;
    } catch (const Refused& refused) {
      if (!c.session) c.why_not = refused.what();
      return refused.what();
    } catch (const PeerFailed&) {
      c.why_not = "the server failed: " + control_.settle("");
    } catch (const std::exception& error) {
      c.why_not = error.what();
      control_.settle(error.what());
    }
    fmt::print(stderr, "uet-perf: {}: {}\n", c.provider, c.why_not);
    c.session.reset();
    return c.why_not;
  }

  /// Run by run, the contenders in turn: what the machine does meanwhile happens to all of them.
  std::vector<Figure> measure(const Plan& plan) {
    std::vector<Figure> figures = not_measured(plan, "");
    std::vector<std::vector<double>> seconds(contenders_.size());
    std::vector<std::vector<std::vector<double>>> half_rtts(contenders_.size());
    const std::uint64_t warm_up = o_.warm_up.value_or(default_warm_up(plan.count));
    for (Rounds rounds(o_, warm_up != 0); rounds.advance();)
      for (std::size_t i = 0; i < contenders_.size(); ++i) {
        Contender& c = contenders_[i];
        if (!figures[i].why_not.empty()) continue;
        figures[i].why_not = attempt(c, [&] {
          LapResult result = lap(c, plan, rounds.number(), rounds.counts() ? plan.count : warm_up);
          if (!rounds.counts()) return;
          seconds[i].push_back(result.seconds);
          half_rtts[i].push_back(std::move(result.half_rtt_us));
        });
      }
    for (std::size_t i = 0; i < figures.size(); ++i)
      if (figures[i].why_not.empty()) summarize(figures[i], seconds[i], half_rtts[i]);
    return figures;
  }

  LapResult lap(Contender& c, Plan plan, unsigned number, std::uint64_t messages) {
    request({{"do", "lap"},
             {"session", static_cast<std::uint64_t>(&c - contenders_.data())},
             {"number", number},
             {"plan", to_json(plan)},
             {"messages", messages}});
    plan.count = messages;
    return make_lap(plan, number, control_, patience_, *c.session)->measure();
  }

  /// A row for each contender; why it was not measured where that is known already.
  std::vector<Figure> not_measured(const Plan& plan, const std::string& why) const {
    std::vector<Figure> figures;
    for (const Contender& c : contenders_) {
      Figure& f = figures.emplace_back();
      f.provider = c.session ? c.session->provider_name() : c.provider;
      f.plan = plan;
      f.why_not = c.why_not.empty() ? why : c.why_not;
    }
    return figures;
  }

  const FabricOptions& o_;
  ControlChannel& control_;
  Patience& patience_;
  std::vector<Plan> plans_;
  std::size_t at_ = 0;  ///< the next of them
  std::vector<Contender> contenders_;
  Report report_;
};

}  // namespace

int run_fabric_client(const FabricOptions& options, ControlChannel& control, Patience& patience) {
  return Client(options, control, patience).run();
}

}  // namespace uet::perf
