#include "tests/drill/virtual_testbed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "lib/base/quantity.h"

namespace uet::drill {

using base::Duration;
using base::Instant;

VirtualTestbed::VirtualTestbed() {
  config_.protection = fep::DataProtection::kNone;
  config_.payload_mtu = 1024;
  config_.ses.spray_ordered = true;
  config_.cc.link_rate =
      base::BitRate::from_gbps(10);  // a window too short for a Probe that samples the base RTT
  config_.cc.algorithm = cc::Algorithm::kNone;
  config_.cc.load_balancing = cc::LoadBalancing::kSingle;
  config_.pds.forced_start_psn = 1000;
  config_.pds.pdc_idle_time = Duration{};  // scripts about idle PDCs say so
}

std::string VirtualTestbed::lacks(const Script& script) {
  constexpr std::array<std::string_view, 3> kMissing = {"crc", "idle-close", "secured"};
  for (const std::string& need : script.needs)
    if (std::find(kMissing.begin(), kMissing.end(), need) != kMissing.end())
      return fmt::format("the virtual harness has no {}", need);
  return {};
}

void VirtualTestbed::begin(const Script& script, Variables& variables, Definitions& definitions) {
  variables_ = &variables;
  for (const Step& setting : script.settings) {
    take_setting(setting.words);
    if (!trouble_.empty()) return fail_at(setting);
  }
  start();
  if (!script.is_live || !endpoint_) return;
  patience_ = Duration::from_seconds(5);
  quiet_ = Duration::from_ms(20);
  for (const auto& [name, value] : std::map<std::string, std::uint64_t>{{"id", 9},
                                                                        {"id2", 10},
                                                                        {"id3", 11},
                                                                        {"start", 5000},
                                                                        {"msg", 1},
                                                                        {"base", 0},
                                                                        {"mtu", 1024}})
    variables.set(name, value);
  definitions["to"] = {"rel=1", "job_id=1", "pid_on_fep=0", "resource_index=1", "initiator=77"};
  definitions["request"] = {"standard_som1",    "eom=1",        "rel=1",        "job_id=1",
                            "resource_index=1", "initiator=77", "opcode=WRITE", "mkey_match=$key",
                            "request_length=64"};
  definitions["body"] = {"payload", "64"};
  constexpr int kReceives = 16;
  const std::array<std::string, 2> receive = {"receive", "4096"};
  for (int i = 0; i < kReceives; ++i) endpoint_step(receive);
}

void VirtualTestbed::take_setting(Words words) {
  if (words[0] == "set") return set(words.subspan(1));
  is_pds_alone_ = words.size() == 2 && words[1] == "pds";
  if (!is_pds_alone_) fail("the only layer is pds");
}

void VirtualTestbed::start() {
  const std::string wrong = pds::check_parameters(config_.pds);
  if (!wrong.empty()) return fail(wrong);
  endpoint_ = is_pds_alone_ ? make_pds_endpoint(config_, port_, *variables_)
                            : make_fep_endpoint(config_, port_, *variables_, now_);
}

void VirtualTestbed::turn() {
  constexpr int kEnough = 10'000;
  for (int i = 0; i < kEnough; ++i)
    if (!endpoint_->turn(now_)) return;
  fail("the endpoint finds no end");
}

/// Time goes on to the next timer, and no further than `end`. False: there is none before.
bool VirtualTestbed::pass_to_deadline(Instant end) {
  const Instant next = endpoint_->next_deadline();
  if (next > end) return false;
  now_ = std::max(now_ + Duration::from_ns(1), next);
  turn();
  return true;
}

void VirtualTestbed::pass(Duration span) {
  const Instant end = now_ + span;
  turn();
  constexpr int kEnough = 100'000;
  for (int i = 0; i < kEnough && pass_to_deadline(end); ++i) {
  }
  now_ = end;
  turn();
}

void VirtualTestbed::arrive(std::span<const std::uint8_t> bytes, const Travel& travel) {
  port_.inject(bytes, travel.from, travel.tos, travel.entropy);
  turn();
}

std::optional<SeenPacket> VirtualTestbed::next(Instant until) {
  while (port_.sent.empty() && now_ < until && pass_to_deadline(until)) {
  }
  if (port_.sent.empty()) {
    now_ = std::max(now_, until);
    return {};
  }
  const net::TxPacket tx = std::move(port_.sent.front());
  port_.sent.pop_front();
  const auto bytes = std::as_const(tx.packet).bytes();
  return SeenPacket{.bytes = {bytes.begin(), bytes.end()},
                    .to = DrillPort::host_of(tx.destination),
                    .entropy = tx.entropy,
                    .tos = tx.tos};
}

StepResult VirtualTestbed::step(Words words) {
  const std::string& what = words[0];
  const Words rest = words.subspan(1);
  is_unknown_ = false;
  if (what == "count") {
    count(rest);
  } else if (what == "drops") {
    drops(rest);
  } else if (what == "gauge") {
    gauge(rest);
  } else if (what == "port") {
    port(rest);
  } else if (what == "initiate") {
    initiate(rest);
  } else {
    endpoint_step(words);
  }
  return {.is_known = !is_unknown_, .why = trouble()};
}

void VirtualTestbed::endpoint_step(Words words) {
  const auto result = endpoint_->step(now_, words);
  is_unknown_ = !result;
  if (!result) return;
  fail(*result);
  if (result->empty()) turn();
}

/// The endpoint begins an operation of its own.
void VirtualTestbed::initiate(Words words) {
  if (words.size() != 2) return fail("initiate OPERATION BYTES");
  const std::array<std::string, 2> step = {words[0], fmt::to_string(number_at(words, 1))};
  if (trouble_.empty()) endpoint_step(step);
}

void VirtualTestbed::port(Words words) {
  if (!words.empty() && words[0] == "free") {
    port_.drain();
  } else if (!words.empty() && words[0] == "takes") {
    port_.leave_room_for(number_at(words, 1));
  } else {
    return fail("port takes NUMBER, or port free");
  }
  turn();
}

/// Besides the parameters of packet delivery.
void VirtualTestbed::set(Words words) {
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

void VirtualTestbed::set_parameter(const pds::Parameter& parameter, const std::string& text) {
  std::int64_t value = 0;
  if (parameter.unit == pds::Parameter::Unit::kTime) {
    const auto time = base::parse_duration(text);
    if (!time) return fail("a time is needed: 10us, 2ms");
    value = time->ns();
  } else {
    value = static_cast<std::int64_t>(variables_->read(text, trouble_).value_or(0));
  }
  fail(pds::set_parameter(config_.pds, parameter, value));
}

void VirtualTestbed::count(Words words) {
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

void VirtualTestbed::drops(Words words) {
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

void VirtualTestbed::gauge(Words words) {
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

}  // namespace uet::drill
