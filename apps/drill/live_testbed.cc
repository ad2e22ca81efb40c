#include "apps/drill/live_testbed.h"

#include "apps/drill/headers.h"
#include "lib/wire/enums.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace uet::drill {

namespace {

using base::Duration;
using base::Instant;

/// A secured target takes a PDC whose start is behind those it has seen of us, in half of the number space. [TSS 11.2]
/// A step is more than one script spends: SES-042 opens a hundred PDCs 2^16 apart. 250 steps fit.
constexpr std::uint32_t kStartMin = 1u << 16, kFirstStartEnd = 1u << 24, kStartStep = 1u << 23;

/// Steps that only an endpoint of ours inside the harness can take, and what they do.
constexpr std::array<std::pair<std::string_view, std::string_view>, 26> kOwnSteps = {{
    {"write", "posts an operation of our own endpoint"},
    {"send", "posts an operation of our own endpoint"},
    {"read", "posts an operation of our own endpoint"},
    {"receive", "posts an operation of our own endpoint"},
    {"message", "drives the layer above packet delivery"},
    {"answers", "drives the layer above packet delivery"},
    {"answer", "drives the layer above packet delivery"},
    {"return", "drives the layer above packet delivery"},
    {"truncate", "drives the layer above packet delivery"},
    {"abort", "drives the layer above packet delivery"},
    {"unlock", "drives the layer above packet delivery"},
    {"close", "drives the layer above packet delivery"},
    {"delivered", "asks the layer above packet delivery"},
    {"response", "asks the layer above packet delivery"},
    {"done", "asks the layer above packet delivery"},
    {"open", "asks the layer above packet delivery"},
    {"failed", "asks the layer above packet delivery"},
    {"gone", "asks the layer above packet delivery"},
    {"resumed", "asks the layer above packet delivery"},
    {"secure", "sets up the security of our own endpoint"},
    {"count", "reads counters inside the endpoint"},
    {"drops", "reads counters inside the endpoint"},
    {"gauge", "reads gauges inside the endpoint"},
    {"port", "holds up the port of our own endpoint"},
    {"from", "speaks as other hosts"},
    {"set", "sets parameters of our own endpoint"},
}};

std::string why_not_live(const Script& script) {
  for (const Step& s : script.settings)
    if (s.words[0] == "layer")
      return fmt::format("line {}: plays against our packet delivery without its upper layer",
                         s.line);
  for (const auto* const steps : {&script.settings, &script.steps})
    for (const Step& s : *steps)
      for (const auto& [word, what] : kOwnSteps)
        if (s.words[0] == word) return fmt::format("line {}: '{}' {}", s.line, word, what);
  return "has no line 'live' in its head, as scripts for endpoints at an address do: it is taken "
         "for one of virtual time, in which "
         "identifiers, PSNs and the moment of each answer are fixed";
}

/// `@to`: whom requests address. `@request / @body`: a request of one packet that the endpoint has no reason to refuse.
void define_requests(const Peer& peer, Definitions& definitions) {
  const std::vector<std::string> to = {peer.relative ? "rel=1" : "rel=0",
                                       fmt::format("job_id={}", peer.job_id),
                                       fmt::format("pid_on_fep={}", peer.pid_on_fep),
                                       fmt::format("resource_index={}", peer.resource_index),
                                       fmt::format("initiator={}", peer.initiator)};
  std::vector<std::string> request = {"standard_som1", "eom=1"};
  request.insert(request.end(), to.begin(), to.end());
  if (peer.can.contains("memory")) {
    request.insert(request.end(),
                   {"opcode=WRITE", "mkey_match=$key", "buffer_offset=$base", "request_length=64"});
    definitions["body"] = {"payload", "64"};
  } else {
    request.emplace_back("opcode=NO_OP");
    definitions["body"] = {"payload", "0"};
  }
  definitions["to"] = to;
  definitions["request"] = std::move(request);
}

}  // namespace

LiveTestbed::LiveTestbed(LiveLink& link, const Peer& peer, const Timing& timing, std::uint64_t seed)
    : link_(link), peer_(peer), timing_(timing), rng_(seed), patience_(timing.patience) {
  next_id_ = static_cast<std::uint16_t>(rng_.next_u64());
  next_message_ = static_cast<std::uint16_t>(rng_.next_u64());
  next_start_ = kStartMin + static_cast<std::uint32_t>(rng_.next_u64()) % kFirstStartEnd;
}

std::string LiveTestbed::lacks(const Script& script) {
  if (!script.is_live) return why_not_live(script);
  for (const std::string& need : script.needs) {
    const Capability* const c = find_capability(need);
    if (c == nullptr) return fmt::format("needs '{}', which no endpoint is known for", need);
    if (!peer_.can.contains(need) || (need == "openings" && challenges_))
      return fmt::format("needs {}: {}; {}", need, c->meaning, c->without);
  }
  return {};
}

/// Never 0, and none that an earlier script had.
std::uint16_t LiveTestbed::new_id() {
  if (++next_id_ == 0) ++next_id_;
  return next_id_;
}

void LiveTestbed::begin(const Script& script, Variables& variables, Definitions& definitions) {
  variables_ = &variables;
  lines_.clear();
  kept_.clear();
  trouble_.clear();
  initiate_trouble_.clear();
  reset_sealing();
  patience_ = timing_.patience;
  const std::array<std::uint16_t, 3> ids = {new_id(), new_id(), new_id()};
  ledger_.begin({ids.begin(), ids.end()});
  variables.set("id", ids[0]);
  variables.set("id2", ids[1]);
  variables.set("id3", ids[2]);
  variables.set("start", new_start());
  next_message_ = static_cast<std::uint16_t>(next_message_ + 16);
  if (next_message_ < 16) next_message_ = 16;
  variables.set("msg", next_message_);
  variables.set("key", peer_.key);
  variables.set("base", peer_.base);
  variables.set("mtu", peer_.payload_mtu);
  define_requests(peer_, definitions);
  if (challenges_) take_up_challenge(script, variables, definitions);
}

void LiveTestbed::end() {
  command_.end();
  initiate_trouble_ = command_.take_trouble();
  constexpr Duration kFarewell = Duration::from_ms(500);
  say_farewell(now() + std::min(patience_, kFarewell));
}

/// Ends what the script left open, so that the next one finds the endpoint at rest.
void LiveTestbed::say_farewell(Instant until) {
  reset_sealing();
  for (const auto& packet : ledger_.farewells()) send(packet, {});
  while (ledger_.is_anything_open()) {
    const auto packet = receive(until);
    if (!packet) return;
    const auto answer = ledger_.answer_at_the_end(packet->bytes);
    if (!answer.empty()) send(answer, {});
  }
}

void LiveTestbed::note(bool is_ours, std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kLinesMost = 400;
  if (lines_.size() == kLinesMost) lines_.pop_front();
  lines_.push_back({now(), is_ours, show_packet(bytes)});
}

bool LiveTestbed::send(std::span<const std::uint8_t> bytes, const Travel& travel) {
  note(true, bytes);
  const bool is_taken = !manner_.is_spoilt && !(manner_.is_in_clear && link_.sealing() != nullptr);
  if (is_taken) ledger_.on_sent(bytes);
  return link_.send(bytes, travel, manner_);
}

void LiveTestbed::arrive(std::span<const std::uint8_t> bytes, const Travel& travel) {
  if (!send(bytes, travel)) trouble_ = "our port does not take the packet";
}

/// The next packet that is meant for this script.
std::optional<SeenPacket> LiveTestbed::receive(Instant until) {
  while (auto packet = link_.receive(until)) {
    if (ledger_.is_of_the_past(packet->bytes)) {
      const auto answer = ledger_.answer_to_the_past(packet->bytes);
      if (!answer.empty()) link_.send(answer, {}, {});
      if (now() >= until) return {};
      continue;
    }
    note(false, packet->bytes);
    ledger_.on_received(packet->bytes);
    return packet;
  }
  return {};
}

std::optional<SeenPacket> LiveTestbed::next(Instant until) {
  if (kept_.empty()) {
    auto packet = receive(until);
    if (packet) patience_ = timing_.patience;  // the person has done it
    return packet;
  }
  SeenPacket packet = std::move(kept_.front());
  kept_.erase(kept_.begin());
  return packet;
}

void LiveTestbed::pass(Duration span) {
  constexpr std::size_t kKeptMost = 4096;
  const Instant until = now() + span;
  while (auto packet = receive(until))
    if (kept_.size() < kKeptMost) kept_.push_back(std::move(*packet));
}

StepResult LiveTestbed::step(Words words) {
  if (words[0] == "initiate") return {.why = initiate(words.subspan(1))};
  if (words[0] == "crc" && words.size() == 2) {
    manner_.is_spoilt = words[1] == "wrong";
    return {.why = words[1] == "wrong" || words[1] == "right" ? "" : "crc wrong, or crc right"};
  }
  if (words[0] == "tss" && words.size() == 2) return {.why = seal(words.subspan(1))};
  return {.is_known = false};
}

/// What is special about our packets from now on, and sealed ones out of turn.
std::string LiveTestbed::seal(Words words) {
  const std::string& what = words[0];
  Sealing* const sealing = link_.sealing();
  if (sealing == nullptr) return "there are no keys: --keys";
  if (what == "clear" || what == "sealed") {
    manner_.is_in_clear = what == "clear";
    return "";
  }
  if (what == "other-key" || what == "usual-key") return sealing->use_other_key(what[0] == 'o');
  if (what == "jump") return sealing->jump();
  if (what == "remember") {
    link_.remember();
    return "";
  }
  if (what == "again") return link_.send_remembered() ? "" : "our port does not take the packet";
  return "tss clear, sealed, other-key, usual-key, jump, remember or again";
}

void LiveTestbed::reset_sealing() {
  manner_ = {};
  if (link_.sealing() != nullptr) link_.sealing()->use_other_key(false);
}

std::uint32_t LiveTestbed::new_start() {
  if (link_.sealing() == nullptr) return static_cast<std::uint32_t>(rng_.next_u64());
  return next_start_ += kStartStep;
}

std::string LiveTestbed::initiate(Words words) {
  std::string why;
  const auto bytes = words.size() == 2 ? variables_->read(words[1], why) : std::nullopt;
  if (!bytes) return why.empty() ? "initiate OPERATION BYTES" : why;
  const std::string address = link_.facts().address.to_string();
  if (!peer_.is_by_hand)
    return command_.start(peer_.initiate, words[0], fmt::to_string(*bytes), address);
  fmt::print(stderr, "uet-drill: now let the endpoint {} {} bytes {} {}\n", words[0], *bytes,
             words[0] == "read" ? "from" : "to", address);
  patience_ = timing_.by_hand;
  return {};
}

}  // namespace uet::drill
