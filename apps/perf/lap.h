/// One run of one test, on one of the two sides. A test is a class here; the sequence around it is the same for all.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "apps/perf/control_channel.h"
#include "apps/perf/fabric_session.h"
#include "apps/perf/plan.h"

namespace uet::perf {

struct LapResult {
  double seconds = 0;
  std::vector<double> half_rtt_us;  ///< of latency tests
};

/// Each run has bytes of its own, and what receives is filled with their complement before: data of an earlier run, or none,
/// is seen. The client's clock stops when the target holds everything, not when the provider has taken it.
class Lap {
 public:
  /// Slots to send from (or to read into), then slots to receive into.
  Lap(const Plan& plan, unsigned number, ControlChannel& control, Patience& patience,
      FabricSession& fabric)
      : plan_(plan), number_(number), control_(control), patience_(patience), fabric_(fabric) {}
  Lap(const Lap&) = delete;
  Lap& operator=(const Lap&) = delete;
  virtual ~Lap() = default;

  LapResult measure();  ///< the client's side
  void serve();         ///< the server's

 protected:
  virtual void prepare(bool is_client) = 0;
  virtual void drive(LapResult& result) = 0;  ///< client: until every operation has finished
  virtual void attend() = 0;                  ///< server: until everything is here
  virtual void verify(bool is_client) = 0;

  std::uint8_t* outgoing(std::uint64_t slot) { return fabric_.buffer() + slot * plan_.size; }
  std::uint8_t* incoming(std::uint64_t slot) {
    return fabric_.buffer() + (plan_.window + slot) * plan_.size;
  }
  std::uint64_t slots_used() const { return std::min(plan_.window, plan_.count); }
  /// The byte at `i` of `slot` in this run.
  std::uint8_t pattern(std::uint64_t slot, std::size_t i) const {
    return static_cast<std::uint8_t>(i * 131 + (slot + number_) * 29 + (i >> 12));
  }
  void fill(std::uint8_t* at, std::uint64_t slot) const;
  void fill_wrong(std::uint8_t* at, std::uint64_t slot) const;
  void check(const std::uint8_t* at, std::uint64_t slot, const char* what) const;
  bool has_last_byte(const std::uint8_t* at, std::uint64_t slot) const;
  /// The client's next mark; the provider makes progress meanwhile.
  void await_mark(const char* mark);

  const Plan& plan_;
  unsigned number_;
  ControlChannel& control_;
  Patience& patience_;
  FabricSession& fabric_;
  std::uint64_t finished_ = 0;
};

/// For a test that is_test() knows.
std::unique_ptr<Lap> make_lap(const Plan& plan, unsigned number, ControlChannel& control,
                              Patience& patience, FabricSession& fabric);

}  // namespace uet::perf
