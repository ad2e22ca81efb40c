#include "apps/sim/hostile_world.h"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>

namespace uet::sim {

using base::Duration;

namespace {

const SimSpan kRepost = SimSpan::from(Duration::from_us(5));

}  // namespace

HostileWorld::HostileWorld(Simulation& simulation, Fabric& fabric, const SwarmPlan& plan,
                           std::vector<std::unique_ptr<Host>>& hosts, Report report,
                           MakeContext context)
    : simulation_(simulation),
      fabric_(fabric),
      plan_(plan),
      hosts_(hosts),
      report_(std::move(report)),
      context_(std::move(context)),
      lures_(plan.hosts()),
      baits_(plan.attack.baits.size()) {
  for (HostId h = 0; h < plan.hosts(); ++h) {
    taps_.push_back(std::make_unique<Wiretap>(plan.hosts()));
    fabric.port(h).set_observer(taps_.back().get());
  }
}

HostileWorld::~HostileWorld() {
  for (HostId h = 0; h < plan_.hosts(); ++h) fabric_.port(h).set_observer(nullptr);
}

void HostileWorld::start() {
  for (std::uint32_t i = 0; i < plan_.attack.attackers; ++i) {
    attackers_.push_back(std::make_unique<Attacker>(simulation_, fabric_.port(plan_.hosts() + i),
                                                    plan_.attack, i, plan_.fabric.mtu_payload,
                                                    taps_, plan_.seed * 31 + i));
  }
  for (std::size_t i = 0; i < baits_.size(); ++i)
    simulation_.events.call_at(plan_.attack.baits[i].at, [this, i] { post_bait(i); });
}

// --- Lures ----------------------------------------------------------------------------------------

void HostileWorld::open(HostId h) {
  Host& host = *hosts_[h];
  LureSide& lure = lures_[h];
  ++lure.life;
  ses::EndpointConfig config;
  config.job_id = Lure::kJob;
  config.resource_index = Lure::kIndex;
  const auto opened = host.ses().open_endpoint(host.now(), config, host);
  if (!opened.has_value()) return report_("no endpoint for attackers");
  lure.endpoint = opened.value();
  lure.memory.make(Lure::kMemoryBytes, 0);
  const iovec bytes{lure.memory.data(), lure.memory.size()};
  ses::MemoryRequest memory;
  memory.iov = {&bytes, 1};
  memory.remote_read = memory.remote_write = true;
  memory.virtual_addressing = false;
  memory.key = Lure::kKey;
  memory.endpoint = lure.endpoint;
  if (!host.ses().register_memory(memory).has_value())
    return report_("memory for attackers could not be registered");
  for (std::size_t i = 0; i < Lure::kReceives; ++i) {
    auto receive = std::make_unique<LureReceive>();
    receive->host = h;
    receive->life = lure.life;
    receive->tagged = i % 2 != 0;
    receives_.push_back(std::move(receive));
    post_lure(receives_.size() - 1);
  }
}

void HostileWorld::post_lure(std::size_t index) {
  LureReceive& r = *receives_[index];
  Host& host = *hosts_[r.host];
  if (!host.is_up() || r.life != lures_[r.host].life) return;
  r.buffer.make(Lure::kReceiveBytes, kGuard);
  const iovec bytes{r.buffer.data(), r.buffer.size()};
  ses::ReceiveRequest receive;
  receive.tagged = r.tagged;
  receive.tag = Lure::kTag;
  receive.ignore = 3;
  receive.iov = {&bytes, 1};
  receive.context = context_(false, index);
  const auto posted = host.ses().receive(host.now(), lures_[r.host].endpoint, receive);
  if (!posted.has_value()) report_("a receive for attackers was refused");
  host.node().poke();
}

/// A completion without an error promises every byte of the message, also of an attacker's.
void HostileWorld::on_lured(std::size_t index, const ses::Completion& c) {
  LureReceive& r = *receives_[index];
  if (plan_.secure.is_on) return report_("an attacker without a key delivered a message");
  if (!r.buffer.guards_intact()) return report_("an attacker wrote outside a receive");
  if (c.length > r.buffer.size())
    return report_("an attacker's message is longer than its receive");
  const bool is_whole = c.code == ses::ReturnCode::kOk || c.code == ses::ReturnCode::kTruncated;
  const auto from = r.buffer.data(), to = from + c.length;
  // Attackers never send this byte. One whose message begins behind the start of the buffer leaves a gap in front.
  if (is_whole && c.length > 0 && *from != kGuard && std::find(from, to, kGuard) != to) {
    report_(fmt::format("an attacker's message of {} bytes is complete and its byte {} never came",
                        c.length, std::find(from, to, kGuard) - from));
  }
  simulation_.events.call_at(simulation_.now() + kRepost, [this, index] { post_lure(index); });
}

// --- Baits ----------------------------------------------------------------------------------------

void HostileWorld::post_bait(std::size_t index) {
  const Bait& bait = plan_.attack.baits[index];
  BaitState& state = baits_[index];
  Host& host = *hosts_[bait.from];
  if (!host.is_up()) return;
  ses::Address address = host.address();
  address.fabric_address = address_of(plan_.hosts() + bait.attacker);
  const auto peer = host.ses().add_peer(address);
  if (!peer.has_value()) return;
  state.buffer.make_pattern(bait.bytes, 1);
  const iovec bytes{state.buffer.data(), state.buffer.size()};
  // One that finds no room now is not asked again.
  if (bait.kind == Bait::Kind::kTaggedSend) {
    ses::SendRequest send;
    send.peer = peer.value();
    send.tagged = true;
    send.tag = Bait::kTagOrKey + index;
    send.iov = {&bytes, 1};
    send.context = context_(true, index);
    (void)host.ses().send(host.now(), host.endpoint(), send).has_value();
  } else {
    ses::RmaRequest rma;
    rma.peer = peer.value();
    rma.read = bait.kind == Bait::Kind::kRead;
    rma.iov = {&bytes, 1};
    rma.key = Bait::kTagOrKey;
    rma.context = context_(true, index);
    (void)host.ses().rma(host.now(), host.endpoint(), rma).has_value();
  }
  host.node().poke();
}

void HostileWorld::on_bait(std::size_t index, const ses::Completion&) {
  BaitState& state = baits_[index];
  if (state.is_done) return report_(fmt::format("bait {} completed twice", index));
  state.is_done = true;
  if (!state.buffer.guards_intact())
    return report_(fmt::format("bait {}: bytes outside its buffer", index));
  state.buffer.poison();
}

// --- Checks ---------------------------------------------------------------------------------------

void HostileWorld::check_bounds() {
  for (HostId h = 0; h < plan_.hosts(); ++h) {
    check_answers_to_ghosts(h);
    check_turns(h);
    if (!lures_[h].memory.guards_intact()) report_("an attacker wrote outside the memory of a key");
    if (!hosts_[h]->is_up()) continue;
    const auto s = hosts_[h]->ses().gauges();
    const auto p = hosts_[h]->fep().pds().gauges();
    const fep::FepConfig& c = plan_.fep;
    const auto bound = [&](const char* what, std::uint64_t value, std::uint64_t most) {
      if (value > most)
        report_(fmt::format("host {}: {} {}, of which there may be {}", h, value, what, most));
    };
    bound("bytes of unexpected messages", s.unexpected_bytes, c.ses.overflow_bytes_total);
    bound("unexpected messages", s.unexpected_messages, c.ses.overflow_msgs_total);
    bound("messages being received", s.messages_receiving, c.ses.max_messages);
    bound("PDCs", p.pdcs_open, c.pds.max_pdc);
    bound("tombstones", p.tombstones, c.pds.max_tombstones + c.pds.max_pdc);
    bound("stored responses", p.stored_responses, c.pds.gtd_store_max + 64);
  }
  for (std::size_t i = 0; i < baits_.size(); ++i) {
    if (!baits_[i].is_done) continue;
    if (!baits_[i].buffer.guards_intact() || !baits_[i].buffer.is_all(kPoison))
      report_(fmt::format("bait {}: written after its completion", i));
  }
}

void HostileWorld::check_answers_to_ghosts(HostId h) {
  const Wiretap& tap = *taps_[h];
  const SimPort& port = fabric_.port(h);
  const std::uint64_t answers = port.dropped_unroutable();
  const std::uint64_t answer_bytes =
      port.unroutable_bytes() + answers * HostilePromises::kHeaderBytes;
  const std::uint64_t bytes =
      tap.ghost_bytes() + tap.ghost_packets() * HostilePromises::kHeaderBytes;
  const std::uint64_t most = HostilePromises::kAnswersToGhosts * tap.ghost_packets() +
                             HostilePromises::kAnswersToQuestion * tap.ghost_questions();
  const std::uint64_t most_bytes = HostilePromises::kAnswerBytesToGhosts * bytes +
                                   HostilePromises::kAnswerBytesToQuestion * tap.ghost_questions();
  if (answers > most || answer_bytes > most_bytes) {
    report_(
        fmt::format("host {}: {} packets ({} bytes) to addresses that do not exist, for {} ({} "
                    "bytes) from them",
                    h, answers, answer_bytes, tap.ghost_packets(), bytes));
  }
}

void HostileWorld::check_turns(HostId h) {
  const SimPort& port = fabric_.port(h);
  const std::uint64_t packets = port.received_packets() + port.sent_packets();
  const auto seconds = static_cast<std::uint64_t>(simulation_.now().us() * 1e-6) + 1;
  // A grant is paced by the link and sends no packet of its own; what a source may be granted that uses nothing is bounded.
  const std::uint64_t most = HostilePromises::kTurnsForStart +
                             packets * HostilePromises::kTurnsForPacket +
                             seconds * HostilePromises::kTurnsForSecond + looks_at_pdcs(h) +
                             hosts_[h]->count(base::EventId::kCreditGranted);
  const std::uint64_t turns = hosts_[h]->node().turns();
  if (turns > most)
    report_(fmt::format("host {}: {} turns for {} packets in {} s", h, turns, packets, seconds));
}

/// A PDC with work is looked at once in its idle time, which the limits of some worlds have in the hundreds of microseconds, and
/// a peer that talks may keep it at work to the end.
std::uint64_t HostileWorld::looks_at_pdcs(HostId h) const {
  const Duration idle = plan_.fep.pds.pdc_idle_time;
  if (idle <= Duration{}) return 0;
  const auto looks = static_cast<std::uint64_t>(simulation_.now().us() * 1e3) /
                     static_cast<std::uint64_t>(idle.ns());
  return hosts_[h]->count(base::EventId::kPdcOpened) * looks;
}

void HostileWorld::begin_rest() {
  turns_at_rest_.clear();
  for (const auto& host : hosts_) turns_at_rest_.push_back(host->node().turns());
}

void HostileWorld::check_rest() {
  for (HostId h = 0; h < plan_.hosts(); ++h) {
    const std::uint64_t turns = hosts_[h]->node().turns() - turns_at_rest_[h];
    if (turns > HostilePromises::kTurnsAtRest)
      report_(fmt::format("host {}: {} turns in {} s with nothing to do", h, turns,
                          HostilePromises::kRest.seconds()));
  }
}

std::uint64_t HostileWorld::packets_sent() const {
  std::uint64_t sum = 0;
  for (const auto& attacker : attackers_) sum += attacker->packets_sent();
  return sum;
}

}  // namespace uet::sim
