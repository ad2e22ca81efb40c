/// What rank 0 says to the other members of a collective operation, and what they answer. Requests in this order: open, names,
/// then run and go for each run, and bye.

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>

#include "apps/perf/collective_bench.h"
#include "apps/perf/collective_member.h"
#include "apps/perf/rounds.h"
#include "lib/base/version.h"

namespace uet::perf {
namespace {

using Names = std::vector<std::vector<std::uint8_t>>;

ControlLost out_of_step(const nlohmann::json& message) {
  return ControlLost("the members are out of step: " + message.dump());
}

template <typename T>
T field(const nlohmann::json& message, const char* key) {
  try {
    return message.at(key).get<T>();
  } catch (const nlohmann::json::exception&) {
    throw out_of_step(message);
  }
}

std::vector<CollectiveShape> shapes_of(const CollectiveOptions& o) {
  const auto elements = Elements::of(o.type, o.reduction);
  if (!elements) throw std::runtime_error("no such type or reduction");
  std::vector<CollectiveShape> shapes;
  const auto& tests = o.common.tests;
  for (const std::string& test :
       tests.empty() ? std::vector<std::string>{"all-reduce-ring"} : tests)
    for (const std::uint64_t size :
         o.common.sizes.empty() ? std::vector{std::uint64_t{1} << 20} : o.common.sizes) {
      const std::uint64_t part = std::max<std::uint64_t>(size / elements->bytes() / o.ranks, 1);
      shapes.push_back({test, *elements, part * o.ranks, o.ranks});
    }
  return shapes;
}

std::uint64_t default_calls(std::size_t bytes) {
  constexpr std::uint64_t kBytesOfRun = std::uint64_t{64} << 20;
  return std::clamp<std::uint64_t>(kBytesOfRun / bytes, 5, 200);
}

class Leader {
 public:
  Leader(const CollectiveOptions& o, std::vector<ControlChannel>& others, Patience& patience)
      : o_(o),
        others_(others),
        patience_(patience),
        report_(o.common.format,
                {{"version", base::kVersion}, {"ranks", o.ranks}, asked_for(o.common)}) {}

  int run() {
    const std::vector<CollectiveShape> shapes = shapes_of(o_);
    std::size_t bytes = 0;
    for (const CollectiveShape& s : shapes) bytes = std::max(bytes, CollectiveMember::bytes_for(s));
    auto providers = o_.common.providers;
    if (providers.empty()) providers.push_back("uet");
    for (const std::string& provider : providers) open(provider, bytes);
    for (const CollectiveShape& s : shapes) measure(s);
    tell_all({{"do", "bye"}});
    report_.finish();
    if (report_.wrong() == 0) return 0;
    fmt::print(stderr, "uet-perf: {} elements were wrong\n", report_.wrong());
    return 1;
  }

 private:
  void tell_all(const nlohmann::json& message) {
    for (ControlChannel& other : others_) other.send(message);
  }
  nlohmann::json hear(ControlChannel& other, const char* what) {
    return other.await(what, [this] {
      for (auto& member : members_) member->endpoint().poll();
    });
  }
  /// A member that fails or leaves ends every wait of rank 0.
  void look() {
    for (ControlChannel& other : others_) other.look();
  }

  void open(const std::string& provider, std::size_t bytes) {
    tell_all({{"do", "open"}, {"provider", provider}, {"bytes", bytes}});
    members_.push_back(
        std::make_unique<CollectiveMember>(patience_, provider, bytes, [this](bool) { look(); }));
    Names names{members_.back()->name()};
    for (ControlChannel& other : others_)
      names.push_back(field<std::vector<std::uint8_t>>(hear(other, "a member's endpoint"), "name"));
    for (std::size_t i = 0; i < others_.size(); ++i)
      others_[i].send({{"names", names}, {"rank", i + 1}});
    members_.back()->join(0, names);
    for (ControlChannel& other : others_) field<bool>(hear(other, "a member to join"), "joined");
  }

  /// Run by run, the providers in turn; the slowest member's time is that of a run.
  void measure(const CollectiveShape& shape) {
    std::vector<std::vector<double>> times(members_.size());
    std::vector<std::uint64_t> wrong(members_.size(), 0);
    const std::uint64_t calls = o_.common.count.value_or(default_calls(shape.bytes()));
    const std::uint64_t warm_up = o_.common.warm_up.value_or(default_warm_up(calls));
    for (Rounds rounds(o_.common, warm_up != 0); rounds.advance();)
      for (std::size_t m = 0; m < members_.size(); ++m) {
        const CollectiveResult result = once(m, shape, rounds.counts() ? calls : warm_up);
        wrong[m] += result.wrong;
        if (rounds.counts()) times[m].push_back(result.seconds * 1e6 / static_cast<double>(calls));
      }
    for (std::size_t m = 0; m < members_.size(); ++m)
      report_.add(
          {members_[m]->endpoint().provider_name(), shape, calls, spread_of(times[m]), wrong[m]});
  }

  CollectiveResult once(std::size_t m, const CollectiveShape& shape, std::uint64_t calls) {
    const auto [number, seed] = numbers_.next(calls);
    const CollectiveRun run{shape, calls, number, seed};
    tell_all({{"do", "run"}, {"member", m}, {"run", to_json(run)}});
    members_[m]->prepare(run);
    for (ControlChannel& other : others_) field<bool>(hear(other, "a member to be ready"), "ready");
    tell_all({{"go", true}});
    CollectiveResult worst = members_[m]->measure(run);
    for (ControlChannel& other : others_) {
      const nlohmann::json result = hear(other, "a member's result");
      worst.seconds = std::max(worst.seconds, field<double>(result, "seconds"));
      worst.wrong += field<std::uint64_t>(result, "wrong");
    }
    return worst;
  }

  const CollectiveOptions& o_;
  std::vector<ControlChannel>& others_;
  Patience& patience_;
  std::vector<std::unique_ptr<CollectiveMember>> members_;  ///< one for each provider
  CollectiveReport report_;
  RunNumbers numbers_;
};

class Follower {
 public:
  Follower(ControlChannel& control, Patience& patience) : control_(control), patience_(patience) {}

  int run() {
    for (;;) {
      const nlohmann::json request = hear("the next request of rank 0");
      const auto what = field<std::string>(request, "do");
      if (what == "bye") return 0;
      if (what == "open")
        open(request);
      else if (what == "run")
        take_part(request);
      else
        throw out_of_step(request);
    }
  }

 private:
  nlohmann::json hear(const char* what) {
    if (members_.empty()) return control_.await(what);
    return control_.await(what, [this] {
      for (auto& member : members_) member->endpoint().poll();
    });
  }

  void open(const nlohmann::json& request) {
    const auto bytes = field<std::uint64_t>(request, "bytes");
    if (bytes > kBufferMax) throw out_of_step(request);
    members_.push_back(
        std::make_unique<CollectiveMember>(patience_, field<std::string>(request, "provider"),
                                           bytes, [this](bool) { control_.look(); }));
    control_.send({{"name", members_.back()->name()}});
    const nlohmann::json all = hear("the names of all members");
    const auto names = field<Names>(all, "names");
    const auto rank = field<unsigned>(all, "rank");
    if (rank >= names.size() || names.size() > kMembersMax) throw out_of_step(request);
    members_.back()->join(rank, names);
    control_.send({{"joined", true}});
    ranks_ = static_cast<unsigned>(names.size());
  }

  void take_part(const nlohmann::json& request) {
    const auto m = field<std::size_t>(request, "member");
    const auto run = run_from_json(field<nlohmann::json>(request, "run"));
    if (!run || m >= members_.size() || run->shape.members != ranks_ ||
        CollectiveMember::bytes_for(run->shape) > members_[m]->endpoint().buffer_bytes())
      throw out_of_step(request);
    members_[m]->prepare(*run);
    control_.send({{"ready", true}});
    field<bool>(hear("the start of the run"), "go");
    const CollectiveResult result = members_[m]->measure(*run);
    control_.send({{"seconds", result.seconds}, {"wrong", result.wrong}});
  }

  ControlChannel& control_;
  Patience& patience_;
  std::vector<std::unique_ptr<CollectiveMember>> members_;
  unsigned ranks_ = 0;
};

/// The last words of a member that fails go to those that wait for it.
template <typename Work>
int with_last_words(Work&& work, const std::function<void(const nlohmann::json&)>& tell) {
  try {
    return work();
  } catch (const ControlLost&) {
    throw;
  } catch (const std::exception& error) {
    tell({{"failed", error.what()}});
    throw;
  }
}

}  // namespace

int lead_collectives(const CollectiveOptions& options, std::vector<ControlChannel>& others,
                     Patience& patience) {
  return with_last_words([&] { return Leader(options, others, patience).run(); },
                         [&](const nlohmann::json& words) {
                           for (ControlChannel& other : others) other.send(words);
                         });
}

int follow_collectives(ControlChannel& control, Patience& patience) {
  return with_last_words([&] { return Follower(control, patience).run(); },
                         [&](const nlohmann::json& words) { control.send(words); });
}

}  // namespace uet::perf
