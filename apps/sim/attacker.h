/// A host that is an enemy: it speaks well-formed UET, learns identifiers from what it is sent, and means harm.
///
///   attack_plan.h     what it does when, drawn from the seed
///   attack_packets.h  its packets
///   wiretap.h         what it overhears
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "apps/sim/attack_packets.h"
#include "apps/sim/attack_plan.h"
#include "apps/sim/wiretap.h"
#include "sim/node.h"
#include "sim/sim_port.h"
#include "sim/simulation.h"

namespace uet::sim {

class Attacker final : public Actor {
 public:
  /// `number`: which of the plan's attackers this is. `taps`: one for each honest host. All references must outlive it.
  Attacker(Simulation& simulation, SimPort& port, const AttackPlan& plan, std::uint32_t number,
           std::uint32_t payload_mtu, std::span<const std::unique_ptr<Wiretap>> taps,
           std::uint64_t seed);
  ~Attacker() override;

  std::uint64_t packets_sent() const { return packets_sent_; }

  // Actor
  bool turn(base::Instant now) override;
  base::Instant next_deadline() const override;

 private:
  /// How a conversation goes on when the victim says something.
  struct Manners {
    double acks = 0;     ///< answers a packet as a peer should
    double clears = 0;   ///< sends Clear Commands when asked
    double closes = 0;   ///< sends Close Commands when asked
    double attacks = 0;  ///< answers with anything else
    bool has_favourite = false;
    wire::NackCode favourite{};  ///< NACK code that is said again and again
    bool is_patient =
        false;  ///< says little unasked: PDCs idle, are asked to close, and wait in that state
  };
  struct Talk {
    Conversation c;
    Manners manners;
    std::uint32_t said = 0;          ///< packets that nothing asked for
    std::uint32_t answers_left = 0;  ///< bounds what it says to a victim that repeats itself
  };
  /// An episode under way.
  struct Running {
    const AttackEpisode* plan = nullptr;
    base::Rng rng;
    SimTime next_at;
    std::uint32_t left = 0;
    std::vector<std::size_t> talks;  ///< places in talks_ that belong to it
    std::uint32_t serial = 0;        ///< of what it has made so far
    std::size_t visitor = 0;         ///< place in talks_ of the one that reads and leaves
  };
  struct Outgoing {
    AttackBytes bytes;
    net::FabricAddress from;
    HostId to = 0;
    net::TosByte tos;
  };

  void learn(const net::RxPacket& rx);
  void on_opened_by(HostId victim, bool is_rod, std::uint16_t peer_id, base::Psn start);
  void answer(Talk& talk, wire::PdsType type, base::Psn psn, const net::RxPacket& rx);
  std::size_t open_talk(base::Rng& rng, HostId victim, net::FabricAddress as);
  Manners any_manners(base::Rng& rng);
  Talk* find_talk(HostId victim, std::uint16_t own_id);

  void step(Running& episode);
  void converse(Running& episode, AttackPackets& make);
  void half_open(Running& episode, AttackPackets& make);
  void flood_requests(Running& episode, AttackPackets& make);
  void flood_reads(Running& episode, AttackPackets& make);
  bool visit(Running& episode, AttackPackets& make);
  void flood_unexpected(Running& episode, AttackPackets& make);
  void pieces(Running& episode, AttackPackets& make);
  void forge(Running& episode, AttackPackets& make);
  void replay(Running& episode, AttackPackets& make);
  Talk& talk_of(Running& episode, std::uint32_t count, bool may_be_ghost);

  void say(const Conversation& c, AttackBytes bytes);
  void send(HostId to, net::FabricAddress from, AttackBytes bytes, bool trimmed = false);
  bool flush();
  bool launch(Outgoing& packet);
  net::FabricAddress ghost(base::Rng& rng) const;

  Simulation& simulation_;
  SimPort& port_;
  Node node_;
  const AttackPlan& plan_;
  const std::uint32_t mtu_;
  const std::span<const std::unique_ptr<Wiretap>> taps_;
  base::Rng rng_;         ///< for what is answered
  base::Rng numbers_;     ///< of its own, so that worlds without numbers stay as they are
  base::Rng rendezvous_;  ///< likewise
  AttackPackets packets_;
  std::vector<Running> episodes_;
  std::vector<Talk> talks_;
  std::size_t next_talk_ = 0;
  std::deque<Outgoing> outgoing_;
  std::deque<std::pair<HostId, AttackBytes>> received_;  ///< for replay
  std::uint64_t packets_sent_ = 0;
  bool is_silent_ = false;
};

}  // namespace uet::sim
