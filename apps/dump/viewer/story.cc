#include "apps/dump/viewer/story.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace uet::dump {
namespace {

/// What a reader looks for first: they are not thinned together with the packets that went well.
const std::set<std::string_view> kRare = {"packet-dropped",
                                          "pdc-opened",
                                          "pdc-established",
                                          "pdc-state",
                                          "pdc-closed",
                                          "retransmitted",
                                          "duplicate",
                                          "nack-sent",
                                          "nack-received",
                                          "control-sent",
                                          "rto",
                                          "control-received",
                                          "inferred-loss",
                                          "path-evicted",
                                          "path-restored",
                                          "planes-changed",
                                          "order-gap-passed",
                                          "message-retried"};

double seconds(std::int64_t t_ns, std::int64_t base_ns) {
  return static_cast<double>(t_ns - base_ns) / 1e9;
}

template <typename T>
Json thinned(const Thinner<T>& from, const auto& row) {
  Json rows = Json::array();
  for (const T& one : from.kept()) rows.push_back(row(one));
  return {{"total", from.total()}, {"rows", std::move(rows)}};
}

}  // namespace

void Story::begin_file(const std::string& name, std::string_view kind) {
  name_ = name;
  first_ = current_ = files_.size();
  hosts_.clear();
  has_more_hosts_ = false;
  files_.emplace_back();
  file().name = name;
  file().kind = kind;
  if (kind == "capture") {
    file().is_wall_clock = true;
    ++captures_;
  }
}

void Story::add_note(const std::string& note) {
  files_[first_].notes.push_back(note);
}

// --- Event logs ---

void Story::add_line(std::string_view line) {
  current_ = first_;
  const auto event = LogLine::parse(line);
  const bool is_event = event && event->find("event") != nullptr && event->find("t") != nullptr;
  if (is_event && event->find("host") != nullptr && !turn_to_host(event->number("host"))) return;
  ++file().lines;
  if (is_event) return add_event(*event);
  add_path_line(line);
}

/// False: there are too many.
bool Story::turn_to_host(std::int64_t host) {
  auto at = hosts_.find(host);
  if (at == hosts_.end()) {
    if (hosts_.size() == kHostsMax) {
      if (!has_more_hosts_)
        add_note(fmt::format("only the first {} hosts that it has events of are shown", kHostsMax));
      has_more_hosts_ = true;
      return false;
    }
    const std::string kind = file().kind;
    if (!hosts_.empty()) files_.emplace_back();
    at = hosts_.emplace(host, hosts_.empty() ? first_ : files_.size() - 1).first;
    files_[at->second].name = fmt::format("{}, host {}", name_, host);
    files_[at->second].kind = kind;
  }
  current_ = at->second;
  return true;
}

void Story::add_event(const LogLine& line) {
  const std::string_view name = line.find("event")->text;
  const std::int64_t t = line.number("t"), pdc = line.number("pdc", -1),
                     psn = line.number("psn", -1);
  const auto id = static_cast<std::uint32_t>(pdc);
  file().first_ns = std::min(file().first_ns, t);
  const auto of_stream = [&](PsnKind kind, std::int64_t number) {
    if (pdc >= 0) note_psn(id, static_cast<std::uint32_t>(number), t, kind);
  };
  if (name == "request-sent") {
    of_stream(PsnKind::kSent, psn);
    note_sending(id, static_cast<std::uint32_t>(psn), t);
    file().choices.add({t, static_cast<double>(line.number("entropy_value")), 0});
  } else if (name == "retransmitted") {
    of_stream(PsnKind::kAgain, psn);
    file().choices.add({t, static_cast<double>(line.number("entropy_value")), 1});
  } else if (name == "ack-received") {
    of_stream(PsnKind::kCack, line.number("cack_psn"));
  } else if (name == "inferred-loss" || name == "rto") {
    of_stream(PsnKind::kLoss, psn);
  } else if (name == "duplicate") {
    of_stream(PsnKind::kCopy, psn);
  } else if (name == "request-delivered") {
    of_stream(PsnKind::kArrived, psn);
  } else if (name == "cwnd") {
    file().window.add({t, static_cast<double>(line.number("bytes")),
                       static_cast<double>(line.number("inflight_bytes"))});
  } else if (name == "credit-granted") {
    file().credit.add({t, static_cast<double>(line.number("bytes")), 0});
  }
  std::string rest;
  for (std::size_t i = 0; i < line.count; ++i) {
    const LogLine::Field& f = line.fields[i];
    if (f.key == "t" || f.key == "host" || f.key == "event" || f.key == "pdc" || f.key == "psn")
      continue;
    rest += (rest.empty() ? "" : ", ") + std::string(f.key) + " " + std::string(f.text);
  }
  (kRare.contains(name) ? rare_ : common_)
      .add({t, current_, std::string(name), std::move(rest), pdc, psn});
}

/// Also the counters at the end of an event log.
void Story::add_path_line(std::string_view line) {
  const Json read = Json::parse(line, nullptr, false);
  if (!read.is_object()) {
    ++file().wrong;
  } else if (read.contains("events") && read.contains("drops")) {
    file().counters = read;
  } else if (read.contains("peer") && read.value("t", Json()).is_number_integer()) {
    const auto t = read["t"].get<std::int64_t>();
    file().first_ns = std::min(file().first_ns, t);
    const auto number = [&](const char* key) {
      const auto at = read.find(key);
      return at != read.end() && at->is_number() ? at->get<double>() : 0.0;
    };
    file().window.add({t, number("window"), number("inflight")});
    file().rtt.add({t, number("rtt_us"), number("base_rtt_us")});
    const Json paths = read.value("paths", Json());
    const auto is_object = [](const Json& path) { return path.is_object(); };
    if (paths.is_array() && std::all_of(paths.begin(), paths.end(), is_object))
      file().paths.add(read);
  } else {
    ++file().wrong;
  }
}

/// PSNs of the two directions of a PDC have nothing to do with each other.
void Story::note_psn(std::uint32_t pdc, std::uint32_t psn, std::int64_t t_ns, PsnKind kind) {
  if (kind == PsnKind::kArrived || kind == PsnKind::kCopy) pdc += kArriving;
  auto& streams = file().streams;
  auto at = streams.find(pdc);
  if (at == streams.end()) {
    if (streams.size() >= kStreamsMax) {
      ++file().streams_left_out;
      return;
    }
    at = streams.emplace(pdc, Stream{}).first;
    at->second.first = psn;
  }
  at->second.points.add({t_ns, static_cast<std::int32_t>(psn - at->second.first), kind});
}

void Story::note_sending(std::uint32_t pdc, std::uint32_t psn, std::int64_t t_ns) {
  auto& sendings = file().sendings;
  if (sendings.size() < kSendingsMax) sendings.try_emplace({pdc, psn}, t_ns);
}

// --- Captures ---

void Story::note_ack(const Layer& pds, std::int64_t t_ns) {
  const auto pdc = static_cast<std::uint32_t>(pds.number("dpdcid"));
  note_psn(pdc, static_cast<std::uint32_t>(pds.number("cack_psn")), t_ns, PsnKind::kCack);
  for (const DerivedValue& d : pds.derived) {
    const auto psn = static_cast<std::uint32_t>(d.value);
    if (d.name == "ack_psn") {
      const auto sent = file().sendings.find({pdc, psn});
      if (sent != file().sendings.end())
        file().rtt.add({t_ns, static_cast<double>(t_ns - sent->second) / 1e3, 0});
    } else if (d.name == "sack_base") {
      const std::uint64_t bits = pds.number("sack_bitmap");
      for (std::uint32_t i = 0; i < 64; ++i)
        if (((bits >> i) & 1) != 0) note_psn(pdc, psn + i, t_ns, PsnKind::kSack);
    }
  }
}

void Story::add_packet(const DecodedPacket& packet) {
  ++file().lines;
  const auto t = static_cast<std::int64_t>(packet.captured.time_ns);
  file().first_ns = std::min(file().first_ns, t);
  const Layer* const pds = packet.report.find("pds");
  // PSNs of control packets name other packets.
  if (pds != nullptr && pds->header.ends_with("_REQ") && pds->find("psn") != nullptr &&
      pds->find("spdcid") != nullptr) {
    const auto pdc = static_cast<std::uint32_t>(pds->number("spdcid"));
    const auto psn = static_cast<std::uint32_t>(pds->number("psn"));
    const bool is_sent = packet.captured.is_outbound;
    const bool is_again = pds->number("retx") != 0;
    note_psn(pdc, psn, t,
             !is_sent   ? PsnKind::kArrived
             : is_again ? PsnKind::kAgain
                        : PsnKind::kSent);
    if (is_sent && !is_again) note_sending(pdc, psn, t);
  }
  if (pds != nullptr && pds->find("cack_psn") != nullptr && !packet.captured.is_outbound)
    note_ack(*pds, t);
  if (captures_ <= 2 &&
      !ladder_.add(captures_ == 1 ? Ladder::kLeft : Ladder::kRight, packet, lines_.summary(packet)))
    ++packets_left_out_;
}

// --- Out ---

/// What to add to the times of event logs to get those of captures: from a packet that both have.
std::int64_t Story::clock_offset() const {
  for (const FileStory& log : files_) {
    if (log.is_wall_clock) continue;
    for (const FileStory& capture : files_) {
      if (!capture.is_wall_clock) continue;
      for (const auto& [key, t] : capture.sendings)
        if (const auto at = log.sendings.find(key); at != log.sendings.end()) return t - at->second;
    }
  }
  return 0;
}

Json Story::rungs_json(std::int64_t base_ns) {
  std::vector<Ladder::Rung> all = ladder_.rungs();
  // Those that went through are thinned; what went wrong has a bound of its own.
  Thinner<const Ladder::Rung*> smooth(kRungsMax), rough(kRungsMax);
  for (const Ladder::Rung& rung : all)
    (rung.fate.empty() && rung.summary.find(" retx") == std::string::npos &&
             rung.summary.find("NACK") == std::string::npos
         ? smooth
         : rough)
        .add(&rung);
  std::vector<const Ladder::Rung*> kept(smooth.kept());
  kept.insert(kept.end(), rough.kept().begin(), rough.kept().end());
  const auto at = [](const Ladder::Rung* r) {
    return r->sent_ns != 0 ? r->sent_ns : r->arrived_ns;
  };
  std::stable_sort(kept.begin(), kept.end(), [&](auto* a, auto* b) { return at(a) < at(b); });
  Json rows = Json::array();
  const auto time = [&](std::uint64_t t) {
    return t == 0 ? Json() : Json(seconds(static_cast<std::int64_t>(t), base_ns));
  };
  for (const Ladder::Rung* r : kept)
    rows.push_back({r->from == Ladder::kLeft ? 0 : 1, time(r->sent_ns), time(r->arrived_ns),
                    r->fate, r->summary});
  return {{"names", ladder_.names()},
          {"total", all.size() + packets_left_out_},
          {"rows", std::move(rows)}};
}

Json Story::events_json(std::int64_t base_ns, std::int64_t offset_ns) const {
  std::vector<const Event*> kept;
  for (const Thinner<Event>* part : {&rare_, &common_})
    for (const Event& e : part->kept()) kept.push_back(&e);
  std::stable_sort(kept.begin(), kept.end(), [](auto* a, auto* b) { return a->t_ns < b->t_ns; });
  Json rows = Json::array();
  for (const Event* e : kept)
    rows.push_back(
        {seconds(e->t_ns + offset_ns, base_ns), e->file, e->name, e->pdc, e->psn, e->rest});
  return {{"total", rare_.total() + common_.total()}, {"rows", std::move(rows)}};
}

Json Story::file_json(const FileStory& f, std::int64_t base_ns, std::int64_t offset_ns) const {
  const auto time = [&](std::int64_t t) {
    return seconds(t + (f.is_wall_clock ? 0 : offset_ns), base_ns);
  };
  const auto pair = [&](const Point& p) { return Json{time(p.t_ns), p.a, p.b}; };
  Json streams = Json::array();
  for (const auto& [pdc, stream] : f.streams) {
    Json one = thinned(stream.points, [&](const PsnPoint& p) {
      return Json{time(p.t_ns), p.psn, static_cast<int>(p.kind)};
    });
    one["pdc"] = pdc % kArriving;
    one["arriving"] = pdc >= kArriving;
    streams.push_back(std::move(one));
  }
  return {{"name", f.name},
          {"kind", f.kind},
          {"lines", f.lines},
          {"wrong", f.wrong},
          {"streams_left_out", f.streams_left_out},
          {"notes", f.notes},
          {"streams", std::move(streams)},
          {"window", thinned(f.window, pair)},
          {"credit", thinned(f.credit, pair)},
          {"rtt", thinned(f.rtt, pair)},
          {"choices", thinned(f.choices, pair)},
          {"paths",
           thinned(f.paths,
                   [&](const Json& line) {
                     return Json{time(line["t"].get<std::int64_t>()), line["peer"], line["paths"]};
                   })},
          {"counters", f.counters}};
}

Json Story::to_json() {
  const std::int64_t offset = clock_offset();
  std::int64_t base = INT64_MAX;
  for (const FileStory& f : files_)
    if (f.first_ns != INT64_MAX) base = std::min(base, f.first_ns + (f.is_wall_clock ? 0 : offset));
  if (base == INT64_MAX) base = 0;
  Json files = Json::array();
  for (const FileStory& f : files_) files.push_back(file_json(f, base, offset));
  return {{"files", std::move(files)},
          {"packets", rungs_json(base)},
          {"events", events_json(base, offset)},
          {"clocks_agree", offset != 0 || captures_ == 0 || captures_ == files_.size()}};
}

}  // namespace uet::dump
