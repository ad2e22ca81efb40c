#include "apps/fabric/match_rules.h"

#include <algorithm>
#include <array>
#include <utility>

#include "apps/fabric/values.h"
#include "apps/fabric/words.h"
#include "lib/base/quantity.h"
#include "lib/wire/codec.h"
#include "lib/wire/headers.h"

namespace uet::fabric {

namespace {

using Rule = base::Result<MatchRule, std::string>;

constexpr std::array<std::string_view, 6> kActions = {"drop",      "trim",  "corrupt",
                                                      "duplicate", "delay", "mark"};

template <typename H>
std::optional<H> decode(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < H::kSize) return std::nullopt;
  return wire::decode<H>(bytes.data());
}

std::optional<wire::PdsType> type_named(std::string_view name) {
  const auto lower = [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); };
  for (const wire::EnumEntry& entry : wire::enum_entries<wire::PdsType>())
    if (std::ranges::equal(entry.name, name, {}, lower, lower))
      return static_cast<wire::PdsType>(entry.value);
  return std::nullopt;
}

/// Sets what one key=value says; a sentence when it says nothing sensible.
std::optional<std::string> set(MatchRule& rule, std::string_view key, std::string_view value,
                               const std::vector<std::string>& legs) {
  const auto number = parse_number(value);
  const std::string bad = std::string(key) + ": \"" + std::string(value) + "\" is not ";
  if (key == "from" || key == "to") {
    const auto leg = std::ranges::find(legs, value);
    if (leg == legs.end()) return bad + "the name of a leg";
    (key == "from" ? rule.from : rule.to) = static_cast<std::size_t>(leg - legs.begin());
  } else if (key == "type") {
    rule.type = type_named(value);
    if (!rule.type) return bad + "a PDS type, as rud_req, ack_cc or nack";
  } else if (key == "psn") {
    if (!number || *number > UINT32_MAX) return bad + "a PSN";
    rule.psn = static_cast<std::uint32_t>(*number);
  } else if (key == "pdc" || key == "entropy") {
    if (!number || *number > UINT16_MAX) return bad + "a number of 16 bits";
    (key == "pdc" ? rule.pdc : rule.entropy) = static_cast<std::uint16_t>(*number);
  } else if (key == "skip" || key == "count") {
    if (!number) return bad + "a number";
    (key == "skip" ? rule.skip : rule.count) = *number;
  } else if (key == "do") {
    const std::string_view action = value.substr(0, value.find(':'));
    const auto known = std::ranges::find(kActions, action == "dup" ? "duplicate" : action);
    if (known == kActions.end())
      return bad + "drop, trim, corrupt, duplicate, mark or delay:<time>";
    rule.action = static_cast<MatchAction>(known - kActions.begin());
    if (rule.action != MatchAction::kDelay) return std::nullopt;
    const auto delay =
        base::parse_duration(value.substr(std::min(value.size(), action.size() + 1)));
    if (!delay) return bad + "delay:<time>, as delay:5ms";
    rule.delay = *delay;
  } else {
    return "unknown key \"" + std::string(key) +
           "\"; a rule has from, to, type, pdc, psn, entropy, skip, count and do";
  }
  return std::nullopt;
}

}  // namespace

PacketFacts facts_of(std::span<const std::uint8_t> uet_packet) {
  using wire::PdsType;
  PacketFacts facts{.is_uet = true};
  const auto start = decode<wire::PdsPrologue>(uet_packet);
  if (!start) return facts;
  facts.type = start->type;
  const auto ends = [&](const auto& header) {
    facts.spdcid = header.spdcid;
    facts.dpdcid = header.dpdcid;
  };
  switch (start->type) {
    case PdsType::kRudReq:
    case PdsType::kRodReq:
    case PdsType::kRudCcReq:
    case PdsType::kRodCcReq:
      if (const auto h = decode<wire::PdsRequest>(uet_packet)) {
        facts.psn = h->psn.value();
        ends(*h);
        if (h->syn) facts.dpdcid.reset();  // the field says something else
      }
      break;
    case PdsType::kAck:
    case PdsType::kAckCc:
    case PdsType::kAckCcx:
      if (const auto h = decode<wire::PdsAck>(uet_packet)) {
        facts.psn = h->cack_psn.value();
        ends(*h);
      }
      break;
    case PdsType::kNack:
    case PdsType::kNackCcx:
      if (const auto h = decode<wire::PdsNack>(uet_packet)) {
        facts.psn = h->nack_psn.value();
        ends(*h);
      }
      break;
    case PdsType::kControl:
      if (const auto h = decode<wire::PdsControl>(uet_packet)) {
        facts.psn = h->psn.value();
        ends(*h);
        if (h->syn) facts.dpdcid.reset();
      }
      break;
    default:
      break;
  }
  return facts;
}

bool MatchRule::agrees(const PacketFacts& p) const {
  if (from && *from != p.from) return false;
  if (to && *to != p.to) return false;
  if (type && (!p.type || *type != *p.type)) return false;
  if (psn && (!p.psn || *psn != *p.psn)) return false;
  if (pdc && pdc != p.spdcid && pdc != p.dpdcid) return false;
  if (entropy && *entropy != p.entropy) return false;
  return p.is_uet || (!type && !psn && !pdc);
}

Rule MatchRules::parse(std::string_view text, const std::vector<std::string>& legs) {
  MatchRule rule;
  rule.text = text;
  bool has_action = false;
  for (const std::string_view word : words_of(text)) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return "\"" + std::string(word) + "\" is no key=value";
    const std::string_view key = word.substr(0, equals);
    if (const auto problem = set(rule, key, word.substr(equals + 1), legs)) return *problem;
    has_action = has_action || key == "do";
  }
  if (!has_action) return std::string("a rule needs do=drop, or another action");
  return rule;
}

std::optional<std::uint32_t> MatchRules::add(MatchRule rule) {
  if (rules_.size() == kMax) {
    // What has done its work makes room.
    const auto spent = std::ranges::find_if(rules_, &MatchRule::is_spent);
    if (spent == rules_.end()) return std::nullopt;
    rules_.erase(spent);
  }
  rule.id = next_id_++;
  rules_.push_back(std::move(rule));
  return rules_.back().id;
}

bool MatchRules::remove(std::uint32_t id) {
  return std::erase_if(rules_, [id](const MatchRule& r) { return r.id == id; }) != 0;
}

const MatchRule* MatchRules::find(const PacketFacts& packet) {
  for (MatchRule& rule : rules_) {
    if (rule.is_spent() || !rule.agrees(packet)) continue;
    if (++rule.agreed <= rule.skip) continue;
    ++rule.applied;
    return &rule;
  }
  return nullptr;
}

}  // namespace uet::fabric
