#include "apps/sim/swarm_world.h"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "apps/sim/host.h"
#include "sim/fabric.h"

namespace uet::sim {

namespace {

using base::Duration;

constexpr std::uint8_t kGuard = 0xa5;   ///< around every buffer
constexpr std::uint8_t kPoison = 0x5a;  ///< where nothing may be written any more
constexpr std::size_t kGuardBytes = 64;
constexpr std::uint64_t kMemoryKey = 7;
const SimSpan kRetryPost = SimSpan::from(Duration::from_us(50));
/// After the last fault, how long a world may take to finish, and then to become quiet.
const SimSpan kProgressLimit = SimSpan::from(Duration::from_seconds(20));
const SimSpan kQuietLimit = SimSpan::from(Duration::from_seconds(20));
constexpr std::uint64_t kMaxEvents = 20'000'000;

std::uint8_t pattern(std::uint32_t op, std::size_t i) {
  return static_cast<std::uint8_t>(op * 131 + i * 7 + (i >> 8) * 13 + 1);
}

/// A piece of user memory with guards around it.
class Buffer {
 public:
  void make(std::size_t bytes, std::uint8_t fill) {
    memory_.assign(bytes + 2 * kGuardBytes, kGuard);
    std::fill_n(data(), bytes, fill);
    bytes_ = bytes;
  }
  void make_pattern(std::size_t bytes, std::uint32_t op) {
    make(bytes, 0);
    for (std::size_t i = 0; i < bytes; ++i) data()[i] = pattern(op, i);
  }
  std::uint8_t* data() { return memory_.data() + kGuardBytes; }
  const std::uint8_t* data() const { return memory_.data() + kGuardBytes; }
  std::size_t size() const { return bytes_; }
  bool exists() const { return !memory_.empty(); }
  bool guards_intact() const {
    const auto is_guard = [](std::uint8_t b) { return b == kGuard; };
    return std::all_of(memory_.begin(), memory_.begin() + kGuardBytes, is_guard) &&
           std::all_of(memory_.end() - kGuardBytes, memory_.end(), is_guard);
  }
  bool has_pattern(std::uint32_t op, std::size_t bytes) const {
    for (std::size_t i = 0; i < bytes; ++i) {
      if (data()[i] != pattern(op, i)) return false;
    }
    return true;
  }
  bool is_all(std::uint8_t value, std::size_t from = 0) const {
    return std::all_of(data() + from, data() + bytes_,
                       [value](std::uint8_t b) { return b == value; });
  }
  void poison() {
    std::fill_n(data(), bytes_, kPoison);
    poisoned_ = true;
  }
  bool is_poisoned() const { return poisoned_; }

 private:
  std::vector<std::uint8_t> memory_;
  std::size_t bytes_ = 0;
  bool poisoned_ = false;
};

/// What became of one planned operation.
struct OpState {
  const PlannedOp* op = nullptr;
  Buffer local;               ///< initiator's side
  Buffer receive;             ///< sends: the receive posted for it
  std::size_t remote_at = 0;  ///< write, read: offset in the target's region
  bool posted = false, receive_posted = false;
  int completions = 0;
  int deliveries =
      0;  ///< sends: messages with this number that were received; writes: notifications
  int receive_completions = 0;
  bool succeeded = false;
  bool is_void = false;  ///< its initiator crashed: nothing is promised
  bool receive_void = false;
  bool error_allowed = false;
  std::uint32_t post_order = 0;     ///< among all posted operations
  std::uint32_t receive_order = 0;  ///< of its own receive, among all receives
  std::uint32_t taken_by = 0;       ///< receive_order of the receive that took this message
};

class Swarm {
 public:
  explicit Swarm(const SwarmPlan& plan);
  SwarmResult play();

 private:
  struct Memory {
    std::vector<std::uint8_t> bytes;
    std::uint64_t key = 0;
  };

  void fail(const std::string& why) {
    if (result_.failure.empty())
      result_.failure = fmt::format("at {:.3f} us: {}", world_.now().us(), why);
  }
  bool has_failed() const { return !result_.failure.empty(); }

  void lay_out_memory();
  void set_faults(const FaultProfile& profile);
  void open_memory(HostId host);
  void connect(HostId host);
  void schedule();
  void schedule_trouble(const PlannedTrouble& t);
  void set_host_links(HostId host, const PlannedTrouble& t, bool up);
  void crash(HostId host);
  void restart(HostId host);

  void post(OpState& s);
  void post_receive(OpState& s);
  bool try_post(OpState& s);
  bool try_post_receive(OpState& s);
  template <typename F>
  void retry_later(F&& again);

  void on_completion(Host& host, const ses::Completion& c);
  void on_initiator_done(OpState& s, const ses::Completion& c);
  void on_received(OpState& receive, const ses::Completion& c);
  void on_remote_write(const ses::Completion& c);
  void check_write_landed(OpState& s);

  bool all_done() const;
  bool waits_behind_send(const OpState& s) const;
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
  SwarmResult result_;
  World world_;
  WireModel model_;
  Fabric fabric_;
  std::vector<OpState> states_;
  std::map<std::uint32_t, std::size_t> by_id_;
  std::vector<Memory> memories_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::vector<ses::PeerId>> peers_;
  std::vector<std::uint32_t> lives_;  ///< how often each host started
  std::uint32_t receives_posted_ = 0;
  std::uint32_t ops_posted_ = 0;
  bool any_crash_ = false;
};

Swarm::Swarm(const SwarmPlan& plan)
    : plan_(plan),
      world_(plan.seed, 100'000, plan.fabric.mtu_payload + 256),
      fabric_(world_, model_, plan.fabric, SimPortConfig{.ip_mtu = plan.fabric.mtu_payload + 256},
              plan.pool_packets),
      memories_(plan.fabric.hosts),
      peers_(plan.fabric.hosts),
      lives_(plan.fabric.hosts, 1),
      any_crash_(plan.has(Trouble::kCrash)) {
  lay_out_memory();
  for (HostId h = 0; h < plan.fabric.hosts; ++h) {
    ses::EndpointConfig endpoint;
    endpoint.resource_index = 1;
    endpoint.sends_ordered = plan.ordered[h];
    hosts_.push_back(std::make_unique<Host>(
        world_, fabric_.port(h), plan.fep, endpoint,
        [this](Host& host, const ses::Completion& c) { on_completion(host, c); }, 256));
  }
  for (HostId h = 0; h < plan.fabric.hosts; ++h) {
    open_memory(h);
    connect(h);
  }
  schedule();
}

void Swarm::lay_out_memory() {
  states_.resize(plan_.ops.size());
  for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
    const PlannedOp& op = plan_.ops[i];
    OpState& s = states_[i];
    s.op = &op;
    by_id_[op.id] = i;
    s.error_allowed = plan_.crashes(op.from) || plan_.crashes(op.to);
    if (op.kind == SwarmOp::kRead) {
      s.local.make(op.bytes, kGuard);
    } else {
      s.local.make_pattern(op.bytes, op.id);
    }
    if (op.kind == SwarmOp::kSend || op.kind == SwarmOp::kTaggedSend) continue;
    // A slot of the target's region, between guards; reads find their pattern there.
    std::vector<std::uint8_t>& memory = memories_[op.to].bytes;
    if (memory.empty()) memory.assign(kGuardBytes, kGuard);
    s.remote_at = memory.size();
    for (std::size_t k = 0; k < op.bytes; ++k) {
      memory.push_back(op.kind == SwarmOp::kRead ? pattern(op.id, k) : 0);
    }
    memory.insert(memory.end(), kGuardBytes, kGuard);
  }
  for (Memory& m : memories_) {
    if (m.bytes.empty()) m.bytes.assign(kGuardBytes, kGuard);
  }
}

void Swarm::open_memory(HostId host) {
  Memory& m = memories_[host];
  const iovec bytes{m.bytes.data(), m.bytes.size()};
  ses::MemoryRequest request;
  request.iov = {&bytes, 1};
  request.remote_read = request.remote_write = true;
  request.virtual_addressing = false;
  request.key = kMemoryKey;
  const auto key = hosts_[host]->ses().register_memory(request);
  if (!key.has_value()) return fail("memory could not be registered");
  m.key = key.value();
}

void Swarm::connect(HostId host) {
  peers_[host].assign(plan_.fabric.hosts, 0);
  for (HostId to = 0; to < plan_.fabric.hosts; ++to) {
    if (to == host || !hosts_[to]->is_up()) continue;
    const auto peer = hosts_[host]->ses().add_peer(hosts_[to]->address());
    if (!peer.has_value()) return fail("peer could not be added");
    peers_[host][to] = peer.value();
  }
}

void Swarm::set_faults(const FaultProfile& profile) {
  for (Link* link : fabric_.all_links()) link->set_faults(profile);
}

void Swarm::schedule() {
  set_faults(plan_.faults);
  world_.events.call_at(plan_.faults_end, [this] { set_faults(FaultProfile{}); });
  for (const PlannedTrouble& t : plan_.troubles) schedule_trouble(t);
  for (OpState& s : states_) {
    const bool is_send = s.op->kind == SwarmOp::kSend || s.op->kind == SwarmOp::kTaggedSend;
    if (is_send) {
      world_.events.call_at(s.op->receive_at, [this, &s] { post_receive(s); });
    }
    world_.events.call_at(s.op->at, [this, &s] { post(s); });
  }
}

// --- Troubles -----------------------------------------------------------------------------------

void Swarm::schedule_trouble(const PlannedTrouble& t) {
  EventQueue& events = world_.events;
  switch (t.kind) {
    case Trouble::kCrash:
      events.call_at(t.at, [this, h = t.host] { crash(h); });
      events.call_at(t.until, [this, h = t.host] { restart(h); });
      break;
    case Trouble::kClockJump:
      events.call_at(t.at, [this, &t] {
        hosts_[t.host]->node().jump_clock(Duration::from_ns((t.until - t.at).ps() / 100));
      });
      break;
    case Trouble::kPoolExhausted:
      events.call_at(t.at, [this, h = t.host] { fabric_.port(h).slab_pool().set_exhausted(true); });
      events.call_at(t.until, [this, h = t.host] {
        fabric_.port(h).slab_pool().set_exhausted(false);
        hosts_[h]->node().poke();
      });
      break;
    case Trouble::kSlowHost:
      events.call_at(t.at, [this, h = t.host] {
        hosts_[h]->node().set_turn_cost(SimSpan::from(Duration::from_us(20)));
      });
      events.call_at(t.until, [this, h = t.host] { hosts_[h]->node().set_turn_cost(SimSpan{}); });
      break;
    case Trouble::kPause:
      events.call_at(t.at, [this, &t] {
        for (Link* link : fabric_.find_links(fmt::format("host{}", t.host)))
          link->pause_until(t.until);
      });
      break;
    case Trouble::kPartition:
      events.call_at(t.at, [this, &t] { set_host_links(t.host, t, false); });
      events.call_at(t.until, [this, &t] { set_host_links(t.host, t, true); });
      break;
    case Trouble::kTinyWindow:
    case Trouble::kPsnWrap:
    case Trouble::kTinyTables:
    case Trouble::kCount:
      break;  // part of the endpoint's configuration
  }
}

/// Two thirds of all partitions hit one direction only.
void Swarm::set_host_links(HostId host, const PlannedTrouble& t, bool up) {
  const std::int64_t which = t.at.ps() % 3;
  for (Link* link : fabric_.find_links(fmt::format("host{}", host))) {
    const bool outward = link == &fabric_.port(host).egress();
    if (which == 0 || (which == 1) == outward) link->set_up(up);
  }
}

void Swarm::crash(HostId host) {
  if (!hosts_[host]->is_up()) return;
  for (OpState& s : states_) {
    if (s.op->from == host && s.completions == 0) s.is_void = true;
    if (s.op->to == host && s.receive_completions == 0) s.receive_void = true;
  }
  hosts_[host]->crash();
}

void Swarm::restart(HostId host) {
  if (hosts_[host]->is_up()) return;
  hosts_[host]->restart();
  ++lives_[host];
  ++result_.counters.restarts;
  open_memory(host);
  connect(host);
  // What was not posted before the crash is posted by the new life; what was, is gone.
}

// --- Posting ------------------------------------------------------------------------------------

template <typename F>
void Swarm::retry_later(F&& again) {
  world_.events.call_at(world_.now() + kRetryPost, std::forward<F>(again));
}

void Swarm::post(OpState& s) {
  if (s.is_void || has_failed()) return;
  if (hosts_[s.op->from]->is_up() && try_post(s)) return;
  retry_later([this, &s] { post(s); });
}

void Swarm::post_receive(OpState& s) {
  if (s.receive_void || has_failed()) return;
  if (hosts_[s.op->to]->is_up() && try_post_receive(s)) return;
  retry_later([this, &s] { post_receive(s); });
}

bool Swarm::try_post(OpState& s) {
  const PlannedOp& op = *s.op;
  Host& host = *hosts_[op.from];
  const iovec bytes{s.local.data(), s.local.size()};
  ses::PeerId& peer = peers_[op.from][op.to];
  if (peer == 0) {  // it was down when we looked
    if (!hosts_[op.to]->is_up()) return false;
    const auto added = host.ses().add_peer(hosts_[op.to]->address());
    if (!added.has_value()) return false;
    peer = added.value();
  }
  base::Result<ses::Posted, ses::PostError> posted = ses::PostError::kAgain;
  s.posted = true;
  s.post_order = ++ops_posted_;
  if (op.kind == SwarmOp::kSend || op.kind == SwarmOp::kTaggedSend) {
    ses::SendRequest send;
    send.peer = peer;
    send.tagged = op.kind == SwarmOp::kTaggedSend;
    send.tag = op.id;
    send.iov = {&bytes, 1};
    if (op.wants_data) send.data = op.id;
    send.inject = op.inject;
    send.delivery_complete = op.delivery_complete;
    send.fence = op.fence;
    send.context = op.id;
    posted = host.ses().send(host.now(), host.endpoint(), send);
  } else {
    ses::RmaRequest rma;
    rma.peer = peer;
    rma.read = op.kind == SwarmOp::kRead;
    rma.iov = {&bytes, 1};
    rma.remote_offset = s.remote_at;
    rma.key = memories_[op.to].key;
    if (op.wants_data && !rma.read) rma.data = op.id;
    rma.inject = op.inject;
    rma.delivery_complete = op.delivery_complete;
    rma.fence = op.fence;
    rma.context = op.id;
    posted = host.ses().rma(host.now(), host.endpoint(), rma);
  }
  if (!posted.has_value()) {
    s.posted = false;
    if (posted.error() != ses::PostError::kAgain) {
      fail(fmt::format("op {}: post refused with error {}", op.id,
                       static_cast<int>(posted.error())));
    }
    return false;
  }
  host.node().poke();
  return true;
}

bool Swarm::try_post_receive(OpState& s) {
  const PlannedOp& op = *s.op;
  Host& host = *hosts_[op.to];
  // Any untagged message may take any untagged receive: all are large enough for all.
  std::size_t room = op.receive_bytes;
  if (op.kind == SwarmOp::kSend) {
    for (const PlannedOp& other : plan_.ops) {
      if (other.kind == SwarmOp::kSend && other.to == op.to)
        room = std::max<std::size_t>(room, other.bytes);
    }
  }
  if (!s.receive.exists()) s.receive.make(room, kGuard);
  const iovec bytes{s.receive.data(), s.receive.size()};
  ses::ReceiveRequest receive;
  receive.tagged = op.kind == SwarmOp::kTaggedSend;
  receive.tag = op.id;
  receive.iov = {&bytes, 1};
  receive.context = op.id;
  s.receive_order = ++receives_posted_;
  s.receive_posted = true;
  const auto posted = host.ses().receive(host.now(), host.endpoint(), receive);
  if (!posted.has_value()) {
    s.receive_posted = false;
    if (posted.error() != ses::PostError::kAgain) {
      fail(fmt::format("op {}: receive refused with error {}", op.id,
                       static_cast<int>(posted.error())));
    }
    return false;
  }
  host.node().poke();
  return true;
}

// --- Completions --------------------------------------------------------------------------------

void Swarm::on_completion(Host&, const ses::Completion& c) {
  ++result_.counters.completions;
  if (c.kind == ses::OpKind::kRemoteWrite) return on_remote_write(c);
  if (c.kind == ses::OpKind::kRemoteRead) return;
  OpState* s = find(c.context);
  if (s == nullptr) return fail(fmt::format("completion for unknown operation {}", c.context));
  if (c.kind == ses::OpKind::kReceive || c.kind == ses::OpKind::kTaggedReceive) {
    on_received(*s, c);
  } else {
    on_initiator_done(*s, c);
  }
}

void Swarm::on_initiator_done(OpState& s, const ses::Completion& c) {
  const PlannedOp& op = *s.op;
  if (!s.posted) return fail(fmt::format("op {} completed before it was posted", op.id));
  if (++s.completions > 1) return fail(fmt::format("op {} completed twice", op.id));
  if (c.code != ses::ReturnCode::kOk) {
    ++result_.counters.failed_ops;
    if (!s.error_allowed) {
      fail(fmt::format("op {} failed with code {:#x} although no crash explains it", op.id,
                       static_cast<int>(c.code)));
    }
    return;
  }
  s.succeeded = true;
  result_.counters.bytes += op.bytes;
  if (op.kind == SwarmOp::kRead) {
    if (c.length != op.bytes)
      return fail(fmt::format("op {}: read {} of {} bytes", op.id, c.length, op.bytes));
    if (!s.local.has_pattern(op.id, op.bytes))
      return fail(fmt::format("op {}: wrong bytes read", op.id));
    s.local.poison();
  }
  if (op.kind == SwarmOp::kWrite) check_write_landed(s);
}

void Swarm::check_write_landed(OpState& s) {
  const PlannedOp& op = *s.op;
  std::uint8_t* at = memories_[op.to].bytes.data() + s.remote_at;
  for (std::size_t i = 0; i < op.bytes; ++i) {
    if (at[i] != pattern(op.id, i)) {
      return fail(
          fmt::format("op {}: write is complete but byte {} of {} is wrong", op.id, i, op.bytes));
    }
  }
  // Whatever arrives from now on would be a second delivery.
  std::fill_n(at, op.bytes, kPoison);
}

void Swarm::on_remote_write(const ses::Completion& c) {
  if (!c.has_data) return;
  OpState* s = find(c.data);
  if (s == nullptr || s->op->kind != SwarmOp::kWrite)
    return fail(fmt::format("notification of unknown write {}", c.data));
  if (++s->deliveries > 1 && !plan_.crashes(s->op->to))
    fail(fmt::format("op {}: write notified twice", s->op->id));
}

void Swarm::on_received(OpState& receive, const ses::Completion& c) {
  const std::uint32_t rid = receive.op->id;
  if (!receive.receive_posted)
    return fail(fmt::format("receive {} completed before it was posted", rid));
  if (++receive.receive_completions > 1)
    return fail(fmt::format("receive {} completed twice", rid));
  const bool truncated = c.code == ses::ReturnCode::kTruncated;
  if (c.code != ses::ReturnCode::kOk && !truncated) {
    if (!any_crash_)
      fail(fmt::format("receive {} failed with code {:#x} although nothing crashed", rid,
                       static_cast<int>(c.code)));
    return;
  }
  // Whose message is it? A tagged receive takes its own; an untagged one carries the number as
  // header data.
  OpState* s = receive.op->kind == SwarmOp::kTaggedSend ? &receive
               : c.has_data                             ? find(c.data)
                                                        : nullptr;
  if (s == nullptr)
    return fail(fmt::format("receive {} got a message without or with an unknown number", rid));
  const PlannedOp& op = *s->op;
  if (op.kind != receive.op->kind || op.to != receive.op->to) {
    return fail(fmt::format("receive {} got message {} of another kind or host", rid, op.id));
  }
  if (c.kind == ses::OpKind::kTaggedReceive && c.tag != op.id)
    return fail(fmt::format("receive {}: wrong tag", rid));
  if (op.wants_data != c.has_data || (c.has_data && c.data != op.id)) {
    return fail(fmt::format("receive {}: wrong header data", rid));
  }
  // A target that started again cannot know what its earlier life received.
  if (++s->deliveries > 1 && !plan_.crashes(op.to)) {
    return fail(fmt::format("message {} was delivered twice", op.id));
  }
  s->taken_by = receive.receive_order;
  const std::size_t expected = std::min<std::size_t>(op.bytes, receive.receive.size());
  if (truncated != (op.bytes > receive.receive.size()))
    return fail(fmt::format("receive {}: truncation misreported", rid));
  if (truncated) ++result_.counters.truncated;
  if (c.length != expected)
    return fail(fmt::format("receive {}: length {} instead of {}", rid, c.length, expected));
  if (!receive.receive.has_pattern(op.id, expected))
    return fail(fmt::format("receive {}: wrong bytes of message {}", rid, op.id));
  if (!receive.receive.is_all(kGuard, expected))
    return fail(fmt::format("receive {}: bytes behind the end of message {}", rid, op.id));
  receive.receive.poison();
}

// --- The end ------------------------------------------------------------------------------------

/// Nobody posts a receive in the new life of a host for a message of the old one: it may wait for ever, and hold up what
/// a fence or a full table keeps behind it.
bool Swarm::waits_behind_send(const OpState& s) const {
  bool has_fence = plan_.has(Trouble::kTinyTables);
  bool has_waiting_send = false;
  for (const OpState& o : states_) {
    if (o.op->from != s.op->from || o.op->to != s.op->to) continue;
    has_fence |= o.op->fence;
    has_waiting_send |= o.op->kind <= SwarmOp::kTaggedSend && o.completions == 0;
  }
  return has_fence && has_waiting_send;
}

bool Swarm::all_done() const {
  return std::all_of(states_.begin(), states_.end(), [this](const OpState& s) {
    const bool is_send = s.op->kind == SwarmOp::kSend || s.op->kind == SwarmOp::kTaggedSend;
    const bool may_wait = plan_.crashes(s.op->to) && (is_send || waits_behind_send(s));
    if (!s.is_void && s.completions == 0 && !may_wait) return false;
    if (!is_send || s.receive_void) return true;
    if (s.receive_completions > 0) return true;
    // After a crash, messages and receives may have lost their partner.
    return any_crash_;
  });
}

std::string Swarm::unfinished() const {
  std::string list;
  int shown = 0;
  for (const OpState& s : states_) {
    const bool is_send = s.op->kind == SwarmOp::kSend || s.op->kind == SwarmOp::kTaggedSend;
    const bool op_open = !s.is_void && s.completions == 0;
    const bool receive_open =
        is_send && !s.receive_void && s.receive_completions == 0 && !any_crash_;
    if (!op_open && !receive_open) continue;
    if (++shown > 5) return list + " ...";
    list += fmt::format(" {}({} {}->{}{}{}{})", s.op->id, name_of(s.op->kind), s.op->from, s.op->to,
                        s.posted ? "" : " not posted", op_open ? " op open" : "",
                        receive_open ? " receive open" : "");
  }
  return list;
}

/// Everything is back where it came from. After a crash, half-received messages wait for their
/// timeout.
bool Swarm::is_quiet() {
  for (const auto& host : hosts_) {
    if (!host->is_up()) continue;
    if (!host->fep().is_idle()) return false;
    const auto p = host->fep().pds().gauges();
    if (p.outstanding_packets + p.queued_messages + p.rudi_outstanding + p.pdcs_open +
            p.pdcs_half_open >
        0)
      return false;
    const auto s = host->ses().gauges();
    if (s.sends_active + s.messages_receiving > 0) return false;
    if (!any_crash_ && s.unexpected_messages > 0) return false;
  }
  return world_.frames.in_use() == 0;
}

bool Swarm::run_until(SimTime end, bool (Swarm::*done)()) {
  constexpr int kStride = 64;  // looking costs more than one event
  while (!has_failed()) {
    if ((this->*done)()) return true;
    for (int i = 0; i < kStride; ++i) {
      if (world_.events.next_at() > end || !world_.events.run_next()) return (this->*done)();
    }
    if (world_.events.events_run() > kMaxEvents) {
      fail(fmt::format("{} events and no end:{}", kMaxEvents, unfinished()));
    }
  }
  return false;
}

void Swarm::check_memory() {
  for (const OpState& s : states_) {
    if (!s.local.guards_intact())
      fail(fmt::format("op {}: bytes outside its local buffer", s.op->id));
    if (s.local.is_poisoned() && !s.local.is_all(kPoison))
      fail(fmt::format("op {}: read data written after completion", s.op->id));
    if (s.receive.exists() && !s.receive.guards_intact())
      fail(fmt::format("receive {}: bytes outside its buffer", s.op->id));
    if (s.receive.is_poisoned() && !s.receive.is_all(kPoison))
      fail(fmt::format("receive {}: written after completion", s.op->id));
    if (s.op->kind != SwarmOp::kWrite && s.op->kind != SwarmOp::kRead) continue;
    const std::uint8_t* at = memories_[s.op->to].bytes.data() + s.remote_at;
    const auto is_guard = [](std::uint8_t b) { return b == kGuard; };
    if (!std::all_of(at - kGuardBytes, at, is_guard) ||
        !std::all_of(at + s.op->bytes, at + s.op->bytes + kGuardBytes, is_guard)) {
      fail(fmt::format("op {}: bytes outside its remote slot", s.op->id));
    }
    // A late copy of a first packet may open a PDC with the new life of a host that crashed.
    const bool was_poisoned =
        s.op->kind == SwarmOp::kWrite && s.succeeded && !plan_.crashes(s.op->to);
    if (was_poisoned &&
        !std::all_of(at, at + s.op->bytes, [](std::uint8_t b) { return b == kPoison; })) {
      fail(fmt::format("op {}: write delivered again after completion", s.op->id));
    }
  }
}

/// Untagged messages of an ordered endpoint take receives in the order in which they were sent.
void Swarm::check_order() {
  if (any_crash_) return;
  std::map<std::pair<HostId, HostId>, std::vector<const OpState*>> streams;
  for (const OpState& s : states_) {
    if (s.op->kind == SwarmOp::kSend && plan_.ordered[s.op->from] && s.deliveries > 0) {
      streams[{s.op->from, s.op->to}].push_back(&s);
    }
  }
  for (auto& [hosts, messages] : streams) {
    std::sort(messages.begin(), messages.end(),
              [](const OpState* a, const OpState* b) { return a->post_order < b->post_order; });
    for (std::size_t i = 1; i < messages.size(); ++i) {
      if (messages[i]->taken_by > messages[i - 1]->taken_by) continue;
      fail(fmt::format("messages {} and {} of an ordered endpoint were matched the wrong way round",
                       messages[i - 1]->op->id, messages[i]->op->id));
    }
  }
}

void Swarm::check_pools() {
  if (world_.frames.in_use() != 0)
    fail(fmt::format("{} frames are still held", world_.frames.in_use()));
  if (world_.packets_pool.in_use() != 0) fail("copied packets are still held");
  for (HostId h = 0; h < hosts_.size(); ++h) {
    const std::size_t held = fabric_.port(h).slab_pool().in_use();
    if (held != 0) fail(fmt::format("host {}: {} packets did not come back to the pool", h, held));
  }
}

void Swarm::count() {
  SwarmCounters& c = result_.counters;
  for (Link* link : fabric_.all_links()) {
    const FaultCounters faults = link->fault_counters();
    for (std::size_t i = 0; i < kFaultCount; ++i) c.faults[i] += faults[i];
  }
  for (const PlannedTrouble& t : plan_.troubles) ++c.troubles[static_cast<std::size_t>(t.kind)];
  for (const OpState& s : states_) ++c.ops[static_cast<std::size_t>(s.op->kind)];
  for (const auto& host : hosts_) {
    c.retransmissions += host->count(base::EventId::kPacketRetransmitted);
    c.nacks += host->count(base::EventId::kNackReceived);
    c.timeouts += host->count(base::EventId::kTimeout);
    c.pdcs += host->count(base::EventId::kPdcOpened);
  }
  c.events = world_.events.events_run();
}

void Swarm::dump_recorders() {
  constexpr std::size_t kShown = 40;
  for (const auto& host : hosts_) {
    if (!host->is_up()) continue;
    const std::vector<base::Event> events = host->trace().recorded();
    for (std::size_t i = events.size() - std::min(events.size(), kShown); i < events.size(); ++i) {
      const base::Event& e = events[i];
      const base::EventDescription& d = base::describe(e.id);
      result_.last_events += fmt::format(
          "  host {} {:>14.3f} us  {:<18} pdc {:>5} psn {:>10}  {} {}  {} {}\n", host->id(),
          static_cast<double>(e.at.ns()) / 1000, d.name, e.pdc, e.psn.value(), d.a, e.a, d.b, e.b);
    }
  }
}

SwarmResult Swarm::play() {
  SimTime calm = plan_.faults_end;
  for (const PlannedTrouble& t : plan_.troubles) calm = std::max(calm, t.until);
  for (const PlannedOp& op : plan_.ops) calm = std::max({calm, op.at, op.receive_at});
  if (!run_until(calm + kProgressLimit, &Swarm::all_done_now) && !has_failed()) {
    fail("no progress on a healthy path:" + unfinished());
  }
  // Late copies and restarts belong to the world even when all operations are done.
  if (!has_failed()) world_.events.run_until(std::max(calm, world_.now()));
  const bool may_rest = std::all_of(states_.begin(), states_.end(), [](const OpState& op) {
    return op.is_void || op.completions > 0;
  });
  if (!has_failed() && may_rest && !run_until(world_.now() + kQuietLimit, &Swarm::quiet_now) &&
      !has_failed()) {
    std::string held;
    for (const auto& host : hosts_) {
      const auto p = host->fep().pds().gauges();
      const auto s = host->ses().gauges();
      if (host->fep().is_idle() &&
          p.pdcs_open + p.pdcs_half_open + s.messages_receiving + s.unexpected_messages == 0)
        continue;
      held += fmt::format(
          " host {}: {} PDCs open, {} half open, {} packets outstanding, {} messages queued, {} "
          "sends, {} receiving, {} unexpected;",
          host->id(), p.pdcs_open, p.pdcs_half_open, p.outstanding_packets, p.queued_messages,
          s.sends_active, s.messages_receiving, s.unexpected_messages);
    }
    fail(fmt::format("not quiet after everything completed:{} {} frames under way", held,
                     world_.frames.in_use()));
  }
  if (!has_failed()) {
    check_memory();
    check_order();
    if (may_rest) check_pools();
  }
  count();
  if (has_failed()) dump_recorders();
  result_.fingerprint = world_.hash.value();
  result_.virtual_ms = world_.now().us() / 1000;
  return result_;
}

}  // namespace

void SwarmCounters::add(const SwarmCounters& o) {
  for (std::size_t i = 0; i < faults.size(); ++i) faults[i] += o.faults[i];
  for (std::size_t i = 0; i < troubles.size(); ++i) troubles[i] += o.troubles[i];
  for (std::size_t i = 0; i < ops.size(); ++i) ops[i] += o.ops[i];
  bytes += o.bytes;
  completions += o.completions;
  failed_ops += o.failed_ops;
  retransmissions += o.retransmissions;
  nacks += o.nacks;
  timeouts += o.timeouts;
  pdcs += o.pdcs;
  events += o.events;
  truncated += o.truncated;
  restarts += o.restarts;
}

SwarmResult run_world(const SwarmPlan& plan) {
  return Swarm(plan).play();
}

}  // namespace uet::sim
