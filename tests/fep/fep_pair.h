/// Two whole endpoints on a link in memory and on virtual time, with one SES endpoint each.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "fep/fep.h"
#include "fep/report/event_log.h"
#include "fep/settings/settings.h"
#include "tests/fep/memory_link.h"

namespace uet::test {

/// Counts completions of operations that were posted here, and keeps them as long as a test asks for that.
class Completions final : public ses::CompletionSink {
 public:
  void on_completion(ses::EndpointId, const ses::Completion& completion) override {
    switch (completion.kind) {
      case ses::OpKind::kRemoteWrite:
      case ses::OpKind::kRemoteRead:
      case ses::OpKind::kRemoteAtomic:
      case ses::OpKind::kRemoteFetchingAtomic:
        return;
      default:
        break;
    }
    ++count_;
    if (completion.code != ses::ReturnCode::kOk) ++errors_;
    if (keep_) kept_.push_back(completion);
    if (on_each) on_each(completion);
  }
  std::function<void(const ses::Completion&)> on_each;
  std::size_t count() const { return count_; }
  std::size_t errors() const { return errors_; }
  void keep(bool yes) { keep_ = yes; }
  const std::deque<ses::Completion>& kept() const { return kept_; }
  void clear() {
    count_ = errors_ = 0;
    kept_.clear();
  }

 private:
  std::size_t count_ = 0, errors_ = 0;
  bool keep_ = true;
  std::deque<ses::Completion> kept_;
};

/// Configuration that a libfabric user gets, with `variables` set.
inline fep::FepConfig provider_config(const net::PortFacts& facts,
                                      std::map<std::string, std::string> variables = {}) {
  const auto settings =
      fep::Settings::load([&](std::string_view key) -> std::optional<std::string> {
        const auto it = variables.find(std::string(key));
        return it == variables.end() ? std::nullopt : std::optional(it->second);
      });
  EXPECT_TRUE(settings.has_value()) << settings.error();
  const auto config = settings->fep_config(facts);
  EXPECT_TRUE(config.has_value()) << config.error();
  return *config;
}

/// How sends keep their order: not at all, in an ordered context, or by numbers over all paths. [decision 141]
enum class Order { kNone, kContext, kNumbers };
inline constexpr std::array kOrders = {Order::kNone, Order::kContext, Order::kNumbers};
inline const char* name_of(Order order) {
  return std::array{"unordered", "rod", "sprayed"}[static_cast<std::size_t>(order)];
}
inline void PrintTo(Order order, std::ostream* out) {
  *out << name_of(order);
}
inline std::map<std::string, std::string> with_order(
    Order order, std::map<std::string, std::string> variables = {}) {
  variables.emplace("SPRAY_ORDERED", order == Order::kNumbers ? "1" : "0");
  return variables;
}

class FepPair {
 public:
  struct Side {
    std::unique_ptr<base::Rng> rng;
    base::Trace trace;
    std::unique_ptr<fep::Fep> fep;
    Completions completions;
    ses::EndpointId endpoint = 0;
    ses::PeerId peer = 0;  ///< the other side
  };

  /// Changes what provider_config() gives.
  using Adjust = std::function<void(std::size_t side, const net::PortFacts&, fep::FepConfig&)>;

  explicit FepPair(const LinkConfig& link_config, std::map<std::string, std::string> variables = {},
                   bool ordered = false,
                   std::optional<std::map<std::string, std::string>> variables_of_b = {},
                   bool rma_ordered = false, const Adjust& adjust = {})
      : link(link_config) {
    for (std::size_t i = 0; i < 2; ++i) {
      Side& s = sides[i];
      s.rng = std::make_unique<base::Rng>(link_config.seed * 2 + i);
      fep::FepConfig config = provider_config(
          link.port(i).facts(), i == 1 && variables_of_b ? *variables_of_b : variables);
      if (adjust) adjust(i, link.port(i).facts(), config);
      s.fep = std::make_unique<fep::Fep>(config, link.port(i), *s.rng, s.trace, now);
      const auto opened = s.fep->ses().open_endpoint(
          now,
          ses::EndpointConfig{
              .sends_ordered = ordered, .rma_ordered = rma_ordered, .atomics_ordered = rma_ordered},
          s.completions);
      EXPECT_TRUE(opened.has_value());
      s.endpoint = *opened;
    }
    for (std::size_t i = 0; i < 2; ++i) {
      const auto peer = ses(i).add_peer(ses(1 - i).address_of(sides[1 - i].endpoint));
      EXPECT_TRUE(peer.has_value());
      sides[i].peer = *peer;
    }
  }
  ~FepPair() {
    if (!testing::Test::HasFailure()) return;
    for (std::size_t i = 0; i < 2; ++i)
      std::printf("side %zu: %s\n", i, fep::counters_to_json(sides[i].trace).c_str());
  }

  ses::Ses& ses(std::size_t side) { return sides[side].fep->ses(); }
  Completions& completions(std::size_t side) { return sides[side].completions; }

  /// Turns both loops until `done`, or fails the test after `limit` of virtual time.
  template <typename Done>
  bool run_until(Done&& done, Duration limit = Duration::from_seconds(600)) {
    const Instant end = now + limit;
    int turns_here = 0;
    while (!done()) {
      bool did = false;
      for (Side& s : sides) did |= s.fep->turn(now);
      if (did && ++turns_here < 10'000) continue;
      EXPECT_LT(turns_here, 10'000) << "the loop never rests at one instant";
      turns_here = 0;
      Instant next = std::min(
          {link.next_arrival(), sides[0].fep->next_deadline(), sides[1].fep->next_deadline()});
      if (alarm > now) next = std::min(next, alarm);
      if (next <= now) next = now + Duration::from_ns(100);
      if (next.is_never() || next > end) {
        ADD_FAILURE() << "not done after " << (now - Instant()).seconds() << " s of virtual time"
                      << (next.is_never() ? ", and nothing will ever happen" : "");
        return false;
      }
      now = next;
    }
    return true;
  }
  /// Nothing to do at either side, and nothing on its way.
  bool run_until_idle() {
    return run_until([&] {
      return sides[0].fep->is_idle() && sides[1].fep->is_idle() && link.next_arrival().is_never();
    });
  }
  std::uint64_t count(std::size_t side, base::EventId id) const {
    return sides[side].trace.count(id);
  }

  MemoryLink link;
  Instant now = Instant::from_ns(1'000'000);
  Instant alarm = Instant::never();  ///< when the program looks again though nothing happens
  std::array<Side, 2> sides;
};

inline iovec iov(std::vector<std::uint8_t>& bytes) {
  return {bytes.data(), bytes.size()};
}

/// Bytes that differ at every offset and from message to message.
inline std::vector<std::uint8_t> pattern(std::size_t size, std::uint64_t seed) {
  std::vector<std::uint8_t> bytes(size);
  base::Rng rng(seed);
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t word = rng.next_u64();
    std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(8, size - i));
  }
  return bytes;
}

}  // namespace uet::test
