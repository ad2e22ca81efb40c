/// What is measured: said on the command line, agreed upon over the control connection.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace uet::perf {

/// Every test of `uet-perf fabric`, in the order in which help lists them.
inline constexpr std::string_view kTests[] = {"write",        "read",          "send",
                                              "tagged-rate",  "write-latency", "read-latency",
                                              "send-latency", "tagged-latency"};
bool is_test(std::string_view name);
bool is_latency_test(std::string_view name);

/// One measurement of one provider: what both sides must have alike.
struct Plan {
  std::string test = "write";
  std::uint64_t size = 1 << 20;  ///< bytes of a message
  std::uint64_t count = 0;       ///< messages of a run
  std::uint64_t window = 16;     ///< operations in flight
  bool verify = true;            ///< look at the bytes that arrived

  std::uint64_t buffer_bytes() const { return 2 * window * size; }
};

nlohmann::json to_json(const Plan& plan);
/// Null when a field is missing or beyond its bound; it comes from the network.
std::optional<Plan> plan_from_json(const nlohmann::json& json);

/// Bounds of a plan. A buffer larger than this is refused before it is asked of the system.
inline constexpr std::uint64_t kSizeMax = std::uint64_t{1} << 34;
inline constexpr std::uint64_t kWindowMax = 65536;
inline constexpr std::uint64_t kCountMax = 1'000'000'000;
inline constexpr std::uint64_t kBufferMax = std::uint64_t{1} << 36;

/// "8..4M": powers of two between them, and the last; "64,4k,1M"; a number with k, M or G (1024). Null when it is neither.
std::optional<std::vector<std::uint64_t>> parse_sizes(std::string_view text);
/// "a,b" without empty parts.
std::vector<std::string> split_list(std::string_view text);
/// Messages of a run when the user names none: 64 MiB, within bounds that give a figure in bearable time.
std::uint64_t default_count(std::string_view test, std::uint64_t size);
/// Messages before runs of `count`, of which none counts, when the user names no number: a tenth of them, 1000 at most.
std::uint64_t default_warm_up(std::uint64_t count);

/// What a server was told on its own command line: a client that asks for something else is refused.
struct Demands {
  std::vector<std::string> tests;
  std::vector<std::string> providers;
  std::vector<std::uint64_t> sizes;
  std::optional<std::uint64_t> count, window;
  std::optional<bool> ordered;
};
/// Empty, or the sentence that names the option and both values. A latency test has one operation in flight whatever the window.
std::string why_refused(const Demands& demands, const Plan& plan);
std::string why_refused(const Demands& demands, const std::string& provider, bool ordered);

}  // namespace uet::perf
