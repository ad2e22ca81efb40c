#include "apps/perf/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/base/quantity.h"

namespace uet::perf {
namespace {

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const auto size = base::parse_byte_size(text, kSizeMax);
  return size == 0u ? std::nullopt : size;
}

/// A whole number within [1, most].
std::optional<std::uint64_t> number(const nlohmann::json& json, const char* key,
                                    std::uint64_t most) {
  const auto at = json.find(key);
  if (at == json.end() || !at->is_number_unsigned()) return std::nullopt;
  const auto value = at->get<std::uint64_t>();
  return value >= 1 && value <= most ? std::optional(value) : std::nullopt;
}

std::string differs(const char* option, const std::string& ours, const std::string& theirs) {
  return fmt::format(
      "the server was started with {} {}, the client asks for {}: leave {} out at the server, or "
      "give both the same",
      option, ours, theirs, option);
}

template <typename T>
std::string joined(const std::vector<T>& list) {
  return fmt::format("{}", fmt::join(list, ","));
}

template <typename T>
bool has(const std::vector<T>& list, const T& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

bool is_test(std::string_view name) {
  return std::find(std::begin(kTests), std::end(kTests), name) != std::end(kTests);
}

bool is_latency_test(std::string_view name) {
  return name.ends_with("-latency");
}

nlohmann::json to_json(const Plan& plan) {
  return {{"test", plan.test},
          {"size", plan.size},
          {"count", plan.count},
          {"window", plan.window},
          {"verify", plan.verify}};
}

std::optional<Plan> plan_from_json(const nlohmann::json& json) {
  if (!json.is_object()) return std::nullopt;
  const auto test = json.find("test"), verify = json.find("verify");
  const auto size = number(json, "size", kSizeMax), count = number(json, "count", kCountMax),
             window = number(json, "window", kWindowMax);
  if (test == json.end() || !test->is_string() || verify == json.end() || !verify->is_boolean() ||
      !size || !count || !window)
    return std::nullopt;
  return Plan{test->get<std::string>(), *size, *count, *window, verify->get<bool>()};
}

std::optional<std::vector<std::uint64_t>> parse_sizes(std::string_view text) {
  std::vector<std::uint64_t> sizes;
  const std::vector<std::string> parts = split_list(text);
  for (const std::string& part : parts) {
    const auto dots = part.find("..");
    const auto first = parse_size(std::string_view(part).substr(0, dots));
    const auto last =
        dots == std::string::npos ? first : parse_size(std::string_view(part).substr(dots + 2));
    if (!first || !last || *first > *last) return std::nullopt;
    for (std::uint64_t size = *first; size < *last; size *= 2) sizes.push_back(size);
    sizes.push_back(*last);
  }
  if (sizes.empty()) return std::nullopt;
  return sizes;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    if (comma > 0) out.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

std::uint64_t default_count(std::string_view test, std::uint64_t size) {
  constexpr std::uint64_t kBytesOfRun = std::uint64_t{64} << 20;
  const std::uint64_t most = is_latency_test(test) ? 1000 : 10'000;
  return std::clamp<std::uint64_t>(kBytesOfRun / size, 16, most);
}

std::uint64_t default_warm_up(std::uint64_t count) {
  return std::min<std::uint64_t>(count / 10 + 1, 1000);
}

std::string why_refused(const Demands& demands, const Plan& plan) {
  if (!is_test(plan.test))
    return fmt::format("the server knows no test '{}', only {}", plan.test,
                       fmt::join(kTests, ", "));
  if (!has(demands.tests, plan.test)) return differs("test", joined(demands.tests), plan.test);
  if (!has(demands.sizes, plan.size))
    return differs("--size", joined(demands.sizes), std::to_string(plan.size));
  if (demands.count && *demands.count != plan.count)
    return differs("--count", std::to_string(*demands.count), std::to_string(plan.count));
  if (demands.window && *demands.window != plan.window && !is_latency_test(plan.test))
    return differs("--window", std::to_string(*demands.window), std::to_string(plan.window));
  return {};
}

std::string why_refused(const Demands& demands, const std::string& provider, bool ordered) {
  if (!has(demands.providers, provider))
    return differs("--provider", joined(demands.providers), provider);
  if (demands.ordered && *demands.ordered != ordered)
    return "the server was started with --ordered and the client without it: give it to both, or "
           "to the client alone";
  return {};
}

}  // namespace uet::perf
