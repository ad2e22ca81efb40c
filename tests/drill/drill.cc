// One script: its steps in order, on virtual time.

#include "tests/drill/drill.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <map>
#include <sstream>
#include <vector>

#include "pds/parameters.h"
#include "tests/drill/endpoint.h"
#include "tests/drill/packet_text.h"

namespace uet::drill {

namespace {

using base::Duration;
using base::Instant;

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string w; in >> w;) words.push_back(w);
  return words;
}

class Script {
 public:
  Script();
  std::string run(std::istream& in);

 private:
  void start();
  void turn();
  void pass(Duration span);
  void step(Words words);
  void set(Words words);
  void set_parameter(const pds::Parameter& parameter, const std::string& text);
  void packet_in(Words words);
  void packet_out(Words words);
  void packet_out_somewhere(Words words);
  void count(Words words);
  void drops(Words words);
  void gauge(Words words);
  void fail(const std::string& why) {
    if (failure_.empty()) failure_ = why;
  }
  std::uint64_t number_at(Words words, std::size_t i) {
    if (i < words.size()) return variables_.read(words[i], failure_).value_or(0);
    fail("a number is missing");
    return 0;
  }

  fep::FepConfig config_;
  bool is_pds_alone_ = false;
  DrillPort port_;
  Variables variables_;
  std::unique_ptr<Endpoint> endpoint_;
  Instant now_ = Instant::from_ns(1'000'000'000);
  net::TosByte arriving_tos_ = net::TosByte::of(0, 2);
  std::uint16_t arriving_entropy_ = 0x1234;
  std::uint64_t arriving_from_ = 2;
  std::string failure_;
};

Script::Script() {
  config_.protection = fep::DataProtection::kNone;
  config_.payload_mtu = 1024;
  config_.cc.algorithm = cc::Algorithm::kNone;
  config_.cc.load_balancing = cc::LoadBalancing::kSingle;
  config_.pds.forced_start_psn = 1000;
  config_.pds.pdc_idle_time = Duration{};  // scripts about idle PDCs say so
}

std::string Script::run(std::istream& in) {
  std::string line;
  for (unsigned at = 1; std::getline(in, line); ++at) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty()) continue;
    if (words[0] == "set") {
      set(Words(words).subspan(1));
    } else if (words[0] == "layer") {
      is_pds_alone_ = words.size() == 2 && words[1] == "pds";
      if (!is_pds_alone_ || endpoint_) fail("'layer pds' stands before the first step");
    } else {
      if (!endpoint_) start();
      if (failure_.empty()) step(words);
    }
    if (!failure_.empty()) return fmt::format("line {}: {}\n    {}", at, line, failure_);
  }
  return {};
}

void Script::start() {
  const std::string wrong = pds::check_parameters(config_.pds);
  if (!wrong.empty()) return fail(wrong);
  endpoint_ = is_pds_alone_ ? make_pds_endpoint(config_, port_, variables_)
                            : make_fep_endpoint(config_, port_, variables_, now_);
}

void Script::turn() {
  constexpr int kEnough = 10'000;
  for (int i = 0; i < kEnough; ++i)
    if (!endpoint_->turn(now_)) return;
  fail("the endpoint finds no end");
}

void Script::pass(Duration span) {
  const Instant end = now_ + span;
  constexpr int kEnough = 100'000;
  for (int i = 0; i < kEnough; ++i) {
    turn();
    const Instant next = endpoint_->next_deadline();
    if (next > end) break;
    now_ = std::max(now_ + Duration::from_ns(1), next);
  }
  now_ = end;
  turn();
}

void Script::step(Words words) {
  const std::string& what = words[0];
  const Words rest = words.subspan(1);
  if (what == "wait") {
    const auto span = rest.empty() ? std::nullopt : duration(rest[0]);
    if (!span) return fail("wait needs a time: 10us, 2ms");
    pass(*span);
  } else if (what == "<") {
    packet_in(rest);
  } else if (what == ">") {
    packet_out(rest);
  } else if (what == ">>") {
    packet_out_somewhere(rest);
  } else if (what == "count") {
    count(rest);
  } else if (what == "drops") {
    drops(rest);
  } else if (what == "gauge") {
    gauge(rest);
  } else if (what == "dscp") {
    arriving_tos_ =
        net::TosByte::of(static_cast<std::uint8_t>(number_at(rest, 0)), arriving_tos_.ecn());
  } else if (what == "ecn") {
    arriving_tos_ =
        net::TosByte::of(arriving_tos_.dscp(), static_cast<std::uint8_t>(number_at(rest, 0)));
  } else if (what == "entropy") {
    arriving_entropy_ = static_cast<std::uint16_t>(number_at(rest, 0));
  } else if (what == "from") {
    arriving_from_ = number_at(rest, 0);
  } else if (what == "let") {
    if (rest.size() != 2) return fail("let NAME VALUE");
    variables_.set(rest[0], number_at(rest, 1));
  } else if (what == "skip") {
    port_.sent.clear();
  } else if (what == "port" && !rest.empty()) {
    if (rest[0] == "free") {
      port_.drain();
    } else if (rest[0] == "takes") {
      port_.leave_room_for(number_at(rest, 1));
    } else {
      return fail("port takes NUMBER, or port free");
    }
    turn();
  } else {
    const auto result = endpoint_->step(now_, words);
    if (!result) return fail(fmt::format("'{}' begins no step", what));
    if (!result->empty()) return fail(*result);
    turn();
  }
}

/// Besides the parameters of packet delivery.
void Script::set(Words words) {
  if (endpoint_) return fail("settings come before the first step");
  if (words.size() != 2) return fail("set NAME VALUE");
  const std::string& name = words[0];
  if (const pds::Parameter* p = pds::find_parameter(name)) return set_parameter(*p, words[1]);
  const std::uint64_t v = number_at(words, 1);
  if (name == "payload") {
    config_.payload_mtu = static_cast<std::uint32_t>(v);
  } else if (name == "congestion_control") {
    config_.cc.algorithm = v != 0 ? cc::Algorithm::kNscc : cc::Algorithm::kNone;
  } else if (name == "paths") {
    config_.cc.load_balancing = cc::LoadBalancing::kOblivious;
    config_.cc.paths = static_cast<std::uint16_t>(v);
  } else {
    fail("there is no such setting");
  }
}

void Script::set_parameter(const pds::Parameter& parameter, const std::string& text) {
  std::int64_t value = 0;
  if (parameter.unit == pds::Parameter::Unit::kTime) {
    const auto time = duration(text);
    if (!time) return fail("a time is needed: 10us, 2ms");
    value = time->ns();
  } else {
    value = static_cast<std::int64_t>(variables_.read(text, failure_).value_or(0));
  }
  fail(pds::set_parameter(config_.pds, parameter, value));
}

void Script::packet_in(Words words) {
  const auto bytes = build_packet(words, variables_, failure_);
  if (!failure_.empty()) return;
  port_.inject(bytes, arriving_from_, arriving_tos_, arriving_entropy_);
  turn();
}

void Script::packet_out(Words words) {
  if (words.empty()) return fail("which packet?");
  if (words[0] == "nothing") {
    if (!port_.sent.empty())
      fail("sent: " + show_packet(std::as_const(port_.sent.front().packet).bytes()));
    return;
  }
  if (port_.sent.empty()) return fail("nothing was sent");
  const net::TxPacket tx = std::move(port_.sent.front());
  port_.sent.pop_front();
  const std::string difference = match_packet(words, tx, variables_);
  if (!difference.empty())
    fail(difference + "\n    sent: " + show_packet(std::as_const(tx.packet).bytes()));
}

void Script::packet_out_somewhere(Words words) {
  std::string seen;
  while (!port_.sent.empty()) {
    const net::TxPacket tx = std::move(port_.sent.front());
    port_.sent.pop_front();
    Variables tried = variables_;
    if (match_packet(words, tx, tried).empty()) {
      variables_ = tried;
      return;
    }
    seen += "\n    sent: " + show_packet(std::as_const(tx.packet).bytes());
  }
  fail("no such packet was sent" + seen);
}

void Script::count(Words words) {
  if (words.size() != 2) return fail("count EVENT VALUE");
  for (std::size_t i = 0; i < base::kEventCount; ++i) {
    const auto id = static_cast<base::EventId>(i);
    if (base::describe(id).name != words[0]) continue;
    const std::uint64_t n = endpoint_->trace().count(id);
    if (n != number_at(words, 1)) fail(fmt::format("{} happened {} times", words[0], n));
    return;
  }
  fail("there is no such event");
}

void Script::drops(Words words) {
  if (words.size() != 2) return fail("drops REASON VALUE");
  for (std::size_t i = 0; i < base::kDropReasonCount; ++i) {
    const auto reason = static_cast<base::DropReason>(i);
    if (base::name_of(reason) != words[0]) continue;
    const std::uint64_t n = endpoint_->trace().drops(reason);
    if (n != number_at(words, 1)) fail(fmt::format("{} packets were dropped for {}", n, words[0]));
    return;
  }
  fail("there is no such reason");
}

void Script::gauge(Words words) {
  if (words.size() != 2) return fail("gauge NAME VALUE");
  const pds::Pds::Gauges g = endpoint_->pds().gauges();
  const std::map<std::string_view, std::size_t> gauges = {
      {"pdcs_open", g.pdcs_open},
      {"pdcs_unproven", g.pdcs_unproven},
      {"unproven_evicted", g.unproven_evicted},
      {"pdcs_half_open", g.pdcs_half_open},
      {"outstanding", g.outstanding_packets},
      {"queued_messages", g.queued_messages},
      {"stored_responses", g.stored_responses},
      {"tombstones", g.tombstones},
      {"rudi_outstanding", g.rudi_outstanding},
      {"buffers_in_use", port_.buffers_in_use()}};
  const auto at = gauges.find(words[0]);
  if (at == gauges.end()) return fail("there is no such gauge");
  if (at->second != number_at(words, 1)) fail(fmt::format("{} is {}", words[0], at->second));
}

}  // namespace

std::string run_script(std::istream& script) {
  return std::make_unique<Script>()->run(script);
}

}  // namespace uet::drill
