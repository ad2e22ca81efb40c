#include "sim/traffic_matrix.h"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <sstream>

namespace uet::sim {

namespace {

constexpr std::uint32_t kMaxNodes = 65536;
constexpr std::uint64_t kMaxFlowBytes = 0xffff'ffffull;

/// Reads one line word by word and remembers what went wrong.
class Line {
 public:
  Line(const std::string& text, unsigned number) : in_(text), number_(number) {}

  bool next(std::string& word) { return static_cast<bool>(in_ >> word); }
  template <typename T>
  std::optional<T> number_after(std::string_view what) {
    std::string word;
    if (!next(word)) {
      fail(fmt::format("a number must follow '{}'", what));
      return {};
    }
    return number_in<T>(word, what);
  }
  template <typename T>
  std::optional<T> number_in(std::string_view word, std::string_view what) {
    T value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) {
      fail(fmt::format("'{}' is not a number that '{}' can have", word, what));
      return {};
    }
    return value;
  }
  void fail(const std::string& why) {
    if (error_.empty()) error_ = fmt::format("line {}: {}", number_, why);
  }
  const std::string& error() const { return error_; }

 private:
  std::istringstream in_;
  unsigned number_;
  std::string error_;
};

void parse_flow(Line& line, std::string_view arrow, TrafficMatrix& matrix) {
  Flow flow;
  flow.id = static_cast<std::uint32_t>(matrix.flows.size() + 1);
  const std::size_t cut = arrow.find("->");
  const auto source = line.number_in<HostId>(arrow.substr(0, cut), "source");
  const auto destination = line.number_in<HostId>(arrow.substr(cut + 2), "destination");
  if (!source || !destination) return;
  flow.source = *source;
  flow.destination = *destination;
  bool has_size = false;
  bool has_start = false;
  for (std::string key; line.next(key);) {
    const auto value = line.number_after<std::uint64_t>(key);
    if (!value) return;
    const auto id = static_cast<std::uint32_t>(*value);
    if (key == "id") {
      flow.id = id;
    } else if (key == "size") {
      flow.bytes = *value;
      has_size = true;
    } else if (key == "start") {
      if (*value > static_cast<std::uint64_t>(SimTime::never().ps() / 2)) {
        return line.fail("start lies too far in the future");
      }
      flow.start = SimTime::from_ps(static_cast<std::int64_t>(*value));
      has_start = true;
    } else if (key == "trigger") {
      flow.started_by = id;
    } else if (key == "send_done_trigger") {
      flow.fires_when_sent = id;
    } else if (key == "recv_done_trigger") {
      flow.fires_when_received = id;
    } else if (key != "prio") {  // priorities mean nothing here: all flows are equal
      return line.fail(fmt::format("'{}' is not known in a flow", key));
    }
  }
  if (!has_size) return line.fail("the flow has no size");
  if (flow.bytes == 0 || flow.bytes > kMaxFlowBytes) {
    return line.fail(fmt::format("size must lie between 1 and {}", kMaxFlowBytes));
  }
  if (has_start && flow.started_by) return line.fail("a flow has a start or a trigger, not both");
  if (flow.source == flow.destination) return line.fail("source and destination are one host");
  matrix.flows.push_back(flow);
}

void parse_trigger(Line& line, TrafficMatrix& matrix) {
  Trigger trigger;
  std::string word;
  if (!line.next(word) || word != "id") return line.fail("'id' must follow 'trigger'");
  const auto id = line.number_after<std::uint32_t>("id");
  if (!id) return;
  trigger.id = *id;
  if (!line.next(word)) return line.fail("the trigger has no kind: oneshot, multishot or barrier");
  if (word == "oneshot") {
    trigger.kind = Trigger::Kind::kOneShot;
  } else if (word == "multishot") {
    trigger.kind = Trigger::Kind::kMultiShot;
  } else if (word == "barrier") {
    trigger.kind = Trigger::Kind::kBarrier;
    if (!line.next(word) || word != "count") return line.fail("'count' must follow 'barrier'");
    const auto count = line.number_after<std::uint32_t>("count");
    if (!count) return;
    if (*count == 0) return line.fail("a barrier needs a count of at least 1");
    trigger.count = *count;
  } else {
    return line.fail(
        fmt::format("'{}' is not a kind of trigger: oneshot, multishot or barrier", word));
  }
  if (line.next(word)) return line.fail(fmt::format("'{}' after the end of the trigger", word));
  matrix.triggers.push_back(trigger);
}

/// What no single line shows.
std::string check_whole(const TrafficMatrix& matrix, std::optional<std::size_t> connections,
                        std::optional<std::size_t> triggers) {
  if (matrix.nodes == 0) return "there is no 'Nodes' line";
  if (connections && *connections != matrix.flows.size()) {
    return fmt::format("'Connections' says {}, but there are {} flows", *connections,
                       matrix.flows.size());
  }
  if (triggers && *triggers != matrix.triggers.size()) {
    return fmt::format("'Triggers' says {}, but there are {} triggers", *triggers,
                       matrix.triggers.size());
  }
  std::set<std::uint32_t> trigger_ids;
  for (const Trigger& t : matrix.triggers) {
    if (!trigger_ids.insert(t.id).second) return fmt::format("trigger {} is there twice", t.id);
  }
  std::set<std::uint32_t> flow_ids;
  for (const Flow& f : matrix.flows) {
    if (f.source >= matrix.nodes || f.destination >= matrix.nodes) {
      return fmt::format("flow {}: {}->{} needs more than {} nodes", f.id, f.source, f.destination,
                         matrix.nodes);
    }
    if (!flow_ids.insert(f.id).second) return fmt::format("flow {} is there twice", f.id);
    for (const auto& t : {f.started_by, f.fires_when_sent, f.fires_when_received}) {
      if (t && !trigger_ids.contains(*t)) {
        return fmt::format("flow {}: there is no trigger {}", f.id, *t);
      }
    }
  }
  for (const Trigger& t : matrix.triggers) {
    std::uint32_t most = 0;
    for (const Flow& f : matrix.flows)
      most += (f.fires_when_sent == t.id ? 1 : 0) + (f.fires_when_received == t.id ? 1 : 0);
    if (t.kind == Trigger::Kind::kBarrier && t.count > most)
      return fmt::format("trigger {}: its barrier counts to {}, and flows fire it {} times", t.id,
                         t.count, most);
  }
  return {};
}

}  // namespace

base::Result<TrafficMatrix, std::string> parse_matrix(std::istream& in) {
  TrafficMatrix matrix;
  std::optional<std::size_t> connections, triggers;
  std::string text;
  for (unsigned number = 1; std::getline(in, text); ++number) {
    Line line(text, number);
    std::string word;
    if (!line.next(word) || word[0] == '#') continue;
    if (word == "Nodes") {
      const auto n = line.number_after<std::uint32_t>(word);
      if (n && (*n < 2 || *n > kMaxNodes)) {
        line.fail(fmt::format("Nodes must lie between 2 and {}", kMaxNodes));
      }
      matrix.nodes = n.value_or(0);
    } else if (word == "Connections") {
      connections = line.number_after<std::size_t>(word);
    } else if (word == "Triggers") {
      triggers = line.number_after<std::size_t>(word);
    } else if (word == "Failures") {
      const auto n = line.number_after<std::size_t>(word);
      if (n && *n != 0)
        line.fail("failures in a matrix are not supported: use --fail or --degrade");
    } else if (word == "failure") {
      line.fail("failures in a matrix are not supported: use --fail or --degrade");
    } else if (word == "trigger") {
      parse_trigger(line, matrix);
    } else if (word.find("->") != std::string::npos) {
      parse_flow(line, word, matrix);
    } else {
      line.fail(fmt::format("'{}' begins no line of a traffic matrix", word));
    }
    if (!line.error().empty()) return line.error();
  }
  if (const std::string error = check_whole(matrix, connections, triggers); !error.empty()) {
    return error;
  }
  return matrix;
}

}  // namespace uet::sim
