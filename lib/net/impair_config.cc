#include <charconv>
#include <cstdio>
#include <optional>
#include <vector>

#include "lib/base/quantity.h"
#include "lib/net/impair_port.h"

namespace uet::net {

using base::Duration;

namespace {

std::optional<double> parse_probability(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, code] = std::from_chars(text.data(), end, value);
  const bool is_number = code == std::errc() && at == end;
  return is_number && value >= 0 && value <= 1 ? std::optional(value) : std::nullopt;
}

std::optional<Duration> parse_wait(const std::string& text) {
  const auto wait = base::parse_duration(text);
  return wait && *wait <= Duration::from_seconds(10) ? wait : std::nullopt;
}

template <typename T>
bool assign(std::optional<T> value, T& to) {
  if (value) to = *value;
  return value.has_value();
}

constexpr const char* kKnownKeys =
    "loss, reorder, duplicate, corrupt (0 to 1), delay, jitter (e.g. 100us), each also as rx_... "
    "or tx_..., "
    "dir=rx|tx|both, seed";

enum class Outcome { kDone, kBadValue, kUnknownKey };

Outcome set(Impairment& what, const std::string& key, const std::string& value) {
  const auto outcome = [](bool ok) { return ok ? Outcome::kDone : Outcome::kBadValue; };
  if (key == "loss") return outcome(assign(parse_probability(value), what.loss));
  if (key == "reorder") return outcome(assign(parse_probability(value), what.reorder));
  if (key == "duplicate" || key == "dup")
    return outcome(assign(parse_probability(value), what.duplicate));
  if (key == "corrupt") return outcome(assign(parse_probability(value), what.corrupt));
  if (key == "delay") return outcome(assign(parse_wait(value), what.delay));
  if (key == "jitter") return outcome(assign(parse_wait(value), what.jitter));
  return Outcome::kUnknownKey;
}

struct ParseState {
  Impairment both;  ///< of the keys without direction
  bool for_rx = true;
  bool for_tx = true;
};

bool has_direction(const std::string& key) {
  return key.starts_with("rx_") || key.starts_with("tx_");
}

Outcome set_directed(ImpairConfig& config, const std::string& key, const std::string& value) {
  return set(key.starts_with("rx_") ? config.rx : config.tx, key.substr(3), value);
}

Outcome set_common(ImpairConfig& config, ParseState& state, const std::string& key,
                   const std::string& value) {
  if (key == "dir") {
    state.for_rx = value == "rx" || value == "both";
    state.for_tx = value == "tx" || value == "both";
    return state.for_rx || state.for_tx ? Outcome::kDone : Outcome::kBadValue;
  }
  if (key == "seed") {
    const char* const end = value.data() + value.size();
    const auto [at, code] = std::from_chars(value.data(), end, config.seed);
    return code == std::errc() && at == end ? Outcome::kDone : Outcome::kBadValue;
  }
  return set(state.both, key, value);
}

struct Part {
  std::string key, value;
};

/// "key=value,key=value". False: `error` says what is wrong.
bool split(const std::string& text, std::vector<Part>& out, std::string& error) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    at = comma + 1;
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      error = "FI_UET_IMPAIR: '" + part + "' is not key=value; known are " + kKnownKeys;
      return false;
    }
    out.push_back({part.substr(0, equals), part.substr(equals + 1)});
  }
  return true;
}

std::string describe(const Impairment& i) {
  std::string out;
  const auto add = [&](const char* name, double value, const char* unit) {
    if (value == 0) return;
    char text[64];
    std::snprintf(text, sizeof text, "%s%s %g%s", out.empty() ? "" : ", ", name, value, unit);
    out += text;
  };
  add("loss", i.loss * 100, " %");
  add("reorder", i.reorder * 100, " %");
  add("duplicate", i.duplicate * 100, " %");
  add("corrupt", i.corrupt * 100, " %");
  add("delay", i.delay.seconds() * 1e6, " us");
  add("jitter", i.jitter.seconds() * 1e6, " us");
  return out.empty() ? "nothing" : out;
}

}  // namespace

bool ImpairConfig::parse(const std::string& text, ImpairConfig& config, std::string& error) {
  config = ImpairConfig();
  std::vector<Part> parts;
  if (!split(text, parts, error)) return false;
  ParseState state;
  const auto set_all = [&](bool directed) {
    for (const Part& part : parts) {
      if (has_direction(part.key) != directed) continue;
      const Outcome outcome = directed ? set_directed(config, part.key, part.value)
                                       : set_common(config, state, part.key, part.value);
      if (outcome == Outcome::kDone) continue;
      error = outcome == Outcome::kBadValue
                  ? "FI_UET_IMPAIR: bad value in '" + part.key + "=" + part.value + "'; known are "
                  : "FI_UET_IMPAIR: unknown key '" + part.key + "'; known are ";
      error += kKnownKeys;
      return false;
    }
    return true;
  };
  // A key with direction wins over one without, wherever it stands: those without go first.
  if (!set_all(false)) return false;
  if (state.for_rx) config.rx = state.both;
  if (state.for_tx) config.tx = state.both;
  return set_all(true);
}

std::string ImpairConfig::to_string() const {
  return "receive: " + describe(rx) + "; send: " + describe(tx) + "; seed " + std::to_string(seed);
}

std::unique_ptr<Port> impair(std::unique_ptr<Port> port, const std::string& text,
                             base::Trace& trace, std::string& error) {
  if (text.empty()) return port;
  ImpairConfig config;
  if (!ImpairConfig::parse(text, config, error)) return nullptr;
  std::fprintf(stderr, "uet: FI_UET_IMPAIR damages packets of port %s on purpose: %s\n",
               port->facts().name.c_str(), config.to_string().c_str());
  return std::make_unique<ImpairPort>(std::move(port), config, trace);
}

}  // namespace uet::net
