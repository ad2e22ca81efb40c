/// What a world with attackers has beyond an honest one: the attackers, what draws them, and what must be true all the same.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/sim/attacker.h"
#include "apps/sim/host.h"
#include "apps/sim/swarm_buffer.h"
#include "apps/sim/swarm_plan.h"
#include "sim/fabric.h"

namespace uet::sim {

/// What honest endpoints promise while an attacker is there.
struct HostilePromises {
  /// An operation between honest hosts ends so soon after it and its receive were posted, when nothing else is wrong.
  static constexpr base::Duration kLongestWait = base::Duration::from_seconds(1);
  /// What is sent to addresses that do not exist, for what was received under them.
  static constexpr std::uint64_t kAnswersToGhosts = 3, kAnswerBytesToGhosts = 4;
  /// And for each of those packets that asks for data, with headers.
  static constexpr std::uint64_t kAnswersToQuestion = 22, kAnswerBytesToQuestion = 22 * 64;
  /// IPv4 and UDP, counted with both.
  static constexpr std::uint64_t kHeaderBytes = 28;
  /// Turns of a host in which nothing is left to do.
  static constexpr base::Duration kRest = base::Duration::from_seconds(2);
  static constexpr std::uint64_t kTurnsAtRest = 200;
  /// Turns of a host that is attacked: so many for each packet and each second.
  static constexpr std::uint64_t kTurnsForPacket = 20, kTurnsForSecond = 3000,
                                 kTurnsForStart = 20'000;
};

class HostileWorld {
 public:
  using Report = std::function<void(const std::string&)>;
  /// Makes the context of a completion from a number of ours, for lures and for baits.
  using MakeContext = std::function<std::uint64_t(bool is_bait, std::uint64_t index)>;

  /// `hosts` are the honest ones, complete before start(). Everything must outlive it.
  HostileWorld(Simulation& simulation, Fabric& fabric, const SwarmPlan& plan,
               std::vector<std::unique_ptr<Host>>& hosts, Report report, MakeContext context);
  ~HostileWorld();

  /// Once, before the first event.
  void start();
  /// A host has started, the first time or again.
  void open(HostId host);
  void on_lured(std::size_t index, const ses::Completion& c);
  void on_bait(std::size_t index, const ses::Completion& c);

  /// At any time: nothing is beyond its bound.
  void check_bounds();
  /// Nothing is left to do: how often the hosts turn from now on counts.
  void begin_rest();
  void check_rest();
  std::uint64_t packets_sent() const;

 private:
  struct LureReceive {
    HostId host = 0;
    std::uint32_t life = 0;
    bool tagged = false;
    Buffer buffer;
  };
  struct LureSide {
    ses::EndpointId endpoint = 0;
    std::uint32_t life = 0;
    Buffer memory;
  };
  struct BaitState {
    Buffer buffer;
    bool is_done = false;
  };

  void post_lure(std::size_t index);
  void post_bait(std::size_t index);
  void check_answers_to_ghosts(HostId host);
  void check_turns(HostId host);
  std::uint64_t looks_at_pdcs(HostId host) const;

  Simulation& simulation_;
  Fabric& fabric_;
  const SwarmPlan& plan_;
  std::vector<std::unique_ptr<Host>>& hosts_;
  const Report report_;
  const MakeContext context_;
  std::vector<std::unique_ptr<Wiretap>> taps_;
  std::vector<std::unique_ptr<Attacker>> attackers_;
  std::vector<LureSide> lures_;
  std::vector<std::unique_ptr<LureReceive>> receives_;
  std::vector<BaitState> baits_;
  std::vector<std::uint64_t> turns_at_rest_;
};

}  // namespace uet::sim
