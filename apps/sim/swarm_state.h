/// A world while it is played: the hosts, what was asked of them, and what came of it.
///
///   swarm_world.cc   set-up, troubles, the course of a world, its end
///   swarm_post.cc    operations and receives are posted
///   swarm_receive.cc multi-receive buffers, datagrams, peeks
///   swarm_windows.cc what each host may send on a PDC
///   hostile_world.cc attackers and what must be true in spite of them
///   secure_world.cc  keys, the attacker on the links, and what must be true in spite of it
///   swarm_check.cc   what every completion must be, and what must be true in the end
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "apps/sim/host.h"
#include "apps/sim/hostile_world.h"
#include "apps/sim/secure_world.h"
#include "apps/sim/swarm_buffer.h"
#include "apps/sim/swarm_windows.h"
#include "apps/sim/swarm_world.h"
#include "sim/fabric.h"

namespace uet::sim {

/// What became of one planned operation.
struct OpState {
  const PlannedOp* op = nullptr;
  Buffer local;               ///< initiator's side
  Buffer receive;             ///< sends: the receive posted for it
  std::size_t remote_at = 0;  ///< write, read: offset in the target's region
  bool posted = false, receive_posted = false;
  bool has_looked = false;  ///< the answer to its peek has come
  bool is_claimed = false;  ///< and it said that the message waits for its receive
  int completions = 0;
  int deliveries =
      0;  ///< sends: messages with this number that were received; writes: notifications
  int receive_completions = 0;
  bool succeeded = false;
  bool is_cancelled = false;  ///< its sender took it back: it, and its receive, may end so
  bool is_void = false;       ///< its initiator crashed: nothing is promised
  bool receive_void = false;
  bool error_allowed = false;
  SimTime ready_at;                 ///< it and its receive were posted for the first time
  std::uint32_t post_order = 0;     ///< among all posted operations
  std::uint64_t receive_order = 0;  ///< of its own receive, among all receives
  OpState* next_receive = nullptr;  ///< posted when its own receive is complete
  std::uint64_t taken_by = 0;       ///< receive_order of the receive that took this message
};

class Swarm {
 public:
  Swarm(const SwarmPlan& plan, std::size_t recorded_events);
  SwarmResult play();

 private:
  struct Memory {
    std::vector<std::uint8_t> bytes;
    std::uint64_t key = 0;
    std::uint64_t rudi_key = 0;  ///< of the same memory, safe to be reached twice
  };
  /// What the context of a completion names: an operation by its number, or one of these by index.
  enum class Context : std::uint64_t { kOp, kMultiReceive, kPeek, kDatagram, kLure, kBait };
  static std::uint64_t context_of(Context kind, std::uint64_t index) {
    return static_cast<std::uint64_t>(kind) << 32 | index;
  }
  /// A buffer that takes many messages, one behind the other, or one datagram after the other.
  struct SharedReceive {
    HostId host = 0;
    std::uint32_t life = 0;  ///< of the host that posted it
    Buffer buffer;
  };

  /// A promise of one honest host to another is broken. Where attackers can imitate all packets there is none.
  void fail(const std::string& why) {
    if (plan_.may_inject() || was_refused_) {
      ++result_.counters.excused;
      return;
    }
    fail_hard(why);
  }
  /// Something is wrong whatever a peer did.
  void fail_hard(const std::string& why) {
    if (result_.failure.empty())
      result_.failure = fmt::format("at {:.3f} us: {}", simulation_.now().us(), why);
  }
  bool has_failed() const { return !result_.failure.empty(); }

  /// A hostile peer may get an operation refused, with an error and without harm to data, where limits that count NACKs run out
  /// while it fills tables. What is left of the world is then judged by the hard checks alone. (docs/decisions/0115)
  bool may_be_refused(ses::ReturnCode code) const {
    return code == ses::ReturnCode::kUndeliverable && plan_.attack.is_hostile() &&
           !plan_.secure.is_on && plan_.profile == Profile::kSpec;
  }
  void check_wait(const OpState& s);
  void replay_everything();
  void rest();
  void lay_out_memory();
  void set_faults(const FaultProfile& profile);
  void open_memory(HostId host);
  void open_datagrams(HostId host);
  void watch_windows(HostId host);
  void connect(HostId host);
  void schedule();
  void schedule_trouble(const PlannedTrouble& t);
  void set_host_links(const PlannedTrouble& t, bool up);
  void set_plane_links(const PlannedTrouble& t, bool up);
  void crash(HostId host);
  void restart(HostId host);

  void post(OpState& s);
  void post_receive(OpState& s);
  bool try_post(OpState& s);
  bool try_post_receive(OpState& s);
  void cancel_if_due(OpState& s);
  void cancel_receive(OpState& s);
  ses::PeerId find_peer(const PlannedOp& op);
  base::Result<ses::Posted, ses::PostError> send(OpState& s, ses::PeerId peer);
  base::Result<ses::Posted, ses::PostError> rma(OpState& s, ses::PeerId peer);
  template <typename F>
  void retry_later(SimTime since, F&& again);

  bool try_post_multi_receive(HostId host);
  void post_datagram_receive(std::size_t index);
  bool try_peek(OpState& s);
  void on_multi_received(std::size_t index, const ses::Completion& c);
  void on_datagram(std::size_t index, const ses::Completion& c);
  void on_peeked(OpState& s, const ses::Completion& c);

  void on_completion(Host& host, const ses::Completion& c);
  void on_initiator_done(OpState& s, const ses::Completion& c);
  void on_received(OpState& receive, const ses::Completion& c);
  void on_remote_write(const ses::Completion& c);
  void check_write_landed(OpState& s);
  bool has_written_pattern(const OpState& s) const;

  bool waits_for_its_receive(const PlannedOp& op) const;
  bool waits_for_the_undelivered(const PlannedOp& op) const;
  bool is_shut_out_by_the_undelivered(const PlannedOp& op) const;
  bool all_done() const;
  bool is_quiet();
  std::string unfinished() const;
  bool run_until(SimTime end, bool (Swarm::*done)());
  bool all_done_now() { return all_done(); }
  bool quiet_now() { return is_quiet(); }
  void check_memory();
  void check_order();
  void check_pools();
  void count();
  void dump_recorders();

  OpState* find(std::uint64_t id) {
    const auto at = by_id_.find(static_cast<std::uint32_t>(id));
    return at == by_id_.end() ? nullptr : &states_[at->second];
  }

  const SwarmPlan& plan_;
  /// A fence waits for receives, which may come later in a program than what waits behind it.
  const bool has_fences_ = !plan_.has_programs();
  SwarmResult result_;
  bool was_refused_ = false;  ///< an operation, by what an attacker did
  Simulation simulation_;
  WireModel model_;
  Fabric fabric_;
  std::vector<OpState> states_;
  std::map<std::uint32_t, std::size_t> by_id_;
  std::vector<Memory> memories_;
  std::unique_ptr<SecureWorld> secure_;  ///< null in a clear world; gives hosts their keys
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::vector<ses::PeerId>> peers_;
  std::vector<std::uint32_t> lives_;  ///< how often each host started
  /// Datagrams go between endpoints of their own: they must not take receives of messages that are promised to arrive.
  std::vector<ses::EndpointId> datagram_endpoints_;
  std::vector<std::vector<ses::PeerId>> datagram_peers_;
  std::vector<std::unique_ptr<SharedReceive>> multi_receives_, datagram_receives_;
  std::vector<std::unique_ptr<WindowWatch>> windows_;
  std::unique_ptr<HostileWorld> hostile_;  ///< null in an honest world
  std::vector<bool> has_multi_receive_;    ///< one is posted
  std::uint64_t peeks_ = 0, peeks_answered_ = 0;
  std::uint32_t receives_posted_ = 0;
  std::uint32_t ops_posted_ = 0;
  bool any_crash_ = false;
};

}  // namespace uet::sim
