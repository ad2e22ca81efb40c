#include "apps/dump/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace uet::dump {

namespace {

constexpr std::size_t kTextWidth = 62;
// Both ends stamp whole bursts, so that a packet may seem to arrive a little before it was sent.
constexpr std::size_t kCopiesMax = 64;
constexpr std::uint64_t kClockSlackNs = 1'000'000;

/// The same at both ends, whatever happened to link, IP and payload on the way.
std::string key_of(const DecodedPacket& packet) {
  std::string key = source_text(packet.report, "?") + '>' + destination_text(packet.report, "?");
  const auto data = packet.captured.data;
  for (const Layer& layer : packet.report.layers)
    if (layer.layer == "tss" || layer.layer == "pds" || layer.layer == "ses" ||
        layer.layer == "ext") {
      const auto bytes = data.subspan(std::min(layer.offset, data.size()));
      key.append(reinterpret_cast<const char*>(bytes.data()), std::min(layer.length, bytes.size()));
    }
  return key;
}

std::string drop_of(const std::string& comment) {
  constexpr std::string_view kMark = " drop ";
  const auto at = comment.find(kMark);
  return at == std::string::npos ? "" : comment.substr(at + kMark.size());
}

std::string fit(const std::string& text) {
  return text.size() <= kTextWidth ? text : text.substr(0, kTextWidth - 3) + "...";
}

}  // namespace

bool Ladder::add(Side side, const DecodedPacket& packet, const std::string& summary) {
  if (sent_[side].size() + received_[side].size() >= kPacketsMax) return false;
  const bool is_sent = packet.captured.is_outbound;
  if (names_[side].empty())
    names_[side] = is_sent ? source_text(packet.report, "?") : destination_text(packet.report, "?");
  first_ns_[side] = std::min(first_ns_[side], packet.captured.time_ns);
  (is_sent ? sent_ : received_)[side].push_back(
      {packet.captured.time_ns, key_of(packet), summary, drop_of(packet.captured.comment)});
  return true;
}

/// Copies are alike: each arrival belongs to the latest sending before it that has none yet.
void Ladder::pair_up(Side from) {
  const Side to = from == kLeft ? kRight : kLeft;
  std::map<std::string_view, std::vector<std::size_t>> by_key;
  for (std::size_t i = 0; i < sent_[from].size(); ++i)
    if (sent_[from][i].drop.empty()) by_key[sent_[from][i].key].push_back(i);
  for (std::size_t i = 0; i < received_[to].size(); ++i) {
    Seen& arrival = received_[to][i];
    const auto it = by_key.find(arrival.key);
    if (it == by_key.end()) continue;
    // The earliest ones first, of which a bounded number is looked at: equal packets are few in what our endpoints send.
    auto& candidates = it->second;
    std::size_t best = kNone;
    for (std::size_t c = 0; c < std::min(candidates.size(), kCopiesMax); ++c)
      if (best == kNone || sent_[from][candidates[c]].time_ns <= arrival.time_ns + kClockSlackNs)
        best = c;
    if (best == kNone) continue;
    arrival.partner = candidates[best];
    sent_[from][arrival.partner].partner = i;
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(best));
  }
}

void Ladder::add_sent(std::vector<Row>& rows, Side side, bool colour) {
  const Side other = side == kLeft ? kRight : kLeft;
  for (const Seen& sent : sent_[side]) {
    const Seen* arrival = sent.partner == kNone ? nullptr : &received_[other][sent.partner];
    std::string fate;
    if (arrival != nullptr) {
      const auto took =
          static_cast<double>(static_cast<std::int64_t>(arrival->time_ns - sent.time_ns));
      fate = fmt::format("{:+.1f} us", took / 1e3);
      if (!arrival->drop.empty()) fate += ", dropped: " + arrival->drop;
    } else if (sent.time_ns < first_ns_[other] && sent.drop.empty()) {
      fate = "before that capture";
    } else {
      fate = sent.drop.empty() ? "lost" : "lost: " + sent.drop;
      ++lost_;
    }
    const bool is_through = arrival != nullptr && arrival->drop.empty();
    const bool is_unknown = fate == "before that capture";
    std::string text = side == kLeft ? fmt::format("{:<{}} {} {}", fit(sent.summary), kTextWidth,
                                                   is_through   ? "----------->"
                                                   : is_unknown ? "- - - - - ->"
                                                                : "-----X      ",
                                                   fate)
                                     : fmt::format("{:>{}} {} {}", fate, kTextWidth,
                                                   is_through   ? "<-----------"
                                                   : is_unknown ? "<- - - - - -"
                                                                : "      X-----",
                                                   fit(sent.summary));
    if (colour && !is_through && !is_unknown) text = "\033[31m" + text + "\033[0m";
    rows.push_back({sent.time_ns, std::move(text)});
  }
}

/// Arrivals whose sending the other capture does not have: it began later, or lost its beginning.
void Ladder::add_unsent(std::vector<Row>& rows, Side side) const {
  for (const Seen& arrival : received_[side]) {
    if (arrival.partner != kNone) continue;
    rows.push_back({arrival.time_ns,
                    side == kLeft
                        ? fmt::format("{:<{}} <------?", fit(arrival.summary), kTextWidth)
                        : fmt::format("{:>{}} ?------> {}", "", kTextWidth, fit(arrival.summary))});
  }
}

std::vector<Ladder::Rung> Ladder::rungs() {
  std::vector<Rung> out;
  for (const Side side : {kLeft, kRight}) pair_up(side);
  for (const Side side : {kLeft, kRight}) {
    const Side other = side == kLeft ? kRight : kLeft;
    const bool is_seen_there = !sent_[other].empty() || !received_[other].empty();
    for (const Seen& sent : sent_[side]) {
      Rung rung{.from = side, .sent_ns = sent.time_ns, .fate = sent.drop, .summary = sent.summary};
      if (sent.partner != kNone) {
        rung.arrived_ns = received_[other][sent.partner].time_ns;
        rung.fate = received_[other][sent.partner].drop;
      } else if (is_seen_there && sent.time_ns >= first_ns_[other] && rung.fate.empty()) {
        rung.fate = "lost";
      }
      out.push_back(std::move(rung));
    }
    for (const Seen& arrival : received_[other])
      if (arrival.partner == kNone)
        out.push_back({.from = side,
                       .arrived_ns = arrival.time_ns,
                       .fate = sent_[side].empty() ? arrival.drop
                                                   : "a copy, or sent before the capture began",
                       .summary = arrival.summary});
  }
  return out;
}

std::string Ladder::to_text(bool colour) {
  std::vector<Row> rows;
  lost_ = 0;
  for (const Side side : {kLeft, kRight}) pair_up(side);
  for (const Side side : {kLeft, kRight}) {
    add_sent(rows, side, colour);
    add_unsent(rows, side);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.time_ns < b.time_ns; });
  std::string out = fmt::format("{:>13} {:<{}} {:12} {}\n", "seconds", names_[kLeft], kTextWidth,
                                "", names_[kRight]);
  const std::uint64_t first = std::min(first_ns_[kLeft], first_ns_[kRight]);
  for (const Row& row : rows)
    out += fmt::format("{:>13.9f} {}\n", static_cast<double>(row.time_ns - first) / 1e9, row.text);
  return out;
}

}  // namespace uet::dump
