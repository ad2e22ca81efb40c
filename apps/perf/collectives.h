/// The collective operations of `uet-perf collective`, over whatever moves bytes between the members of a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "apps/perf/elements.h"

namespace uet::perf {

/// In the order in which help lists them.
inline constexpr std::string_view kCollectives[] = {"all-reduce-ring", "all-reduce-tree",
                                                    "all-gather",      "reduce-scatter",
                                                    "broadcast",       "all-to-all"};

/// Members that send to each other. One member is one thread of control.
class Group {
 public:
  /// Names an operation under way until wait() returns.
  using Ticket = std::size_t;

  virtual ~Group() = default;
  virtual unsigned rank() const = 0;
  virtual unsigned size() const = 0;
  /// The memory stays with the operation until wait(). Two members use a tag once, in each direction.
  virtual Ticket send(unsigned to, std::uint64_t tag, const std::uint8_t* from,
                      std::size_t bytes) = 0;
  virtual Ticket receive(unsigned from, std::uint64_t tag, std::uint8_t* to, std::size_t bytes) = 0;
  virtual void wait(Ticket ticket) = 0;
};

/// What an operation moves, and how its result and its time are judged.
struct CollectiveShape {
  std::string name;  ///< of kCollectives
  Elements elements;
  std::size_t count = 0;  ///< elements in all; a multiple of the members
  unsigned members = 1;

  std::size_t part() const { return count / members; }
  std::size_t bytes() const { return count * elements.bytes(); }
  std::size_t scratch_bytes() const { return 2 * bytes(); }
  bool reduces() const { return name.starts_with("all-reduce") || name == "reduce-scatter"; }
  /// Elements that a member gives, and that it holds in the end.
  std::size_t count_in() const { return name == "all-gather" ? part() : count; }
  std::size_t count_out() const { return name == "reduce-scatter" ? part() : count; }
  /// What member `rank` gives at `i` in run `seed`.
  double given(unsigned rank, std::size_t i, unsigned seed) const;
  /// What member `rank` must hold at `i` after it.
  double expected(unsigned rank, std::size_t i, unsigned seed) const;
  /// Bus bandwidth over algorithm bandwidth: the share of all bytes that each link carries, whatever the number of members.
  double bus_factor() const;
};

/// What tells the runs of a group apart. Members refuse what is above the bounds: below them both begin anew, when nothing of
/// the first runs is under way any more.
class RunNumbers {
 public:
  static constexpr std::uint64_t kNumbers = std::uint64_t{1} << 33;
  static constexpr unsigned kSeeds = 1'000'000;
  struct Run {
    std::uint64_t number = 0;  ///< of its barrier; each call takes the next
    unsigned seed = 0;         ///< of its data
  };

  Run next(std::uint64_t calls) {
    if (calls >= kNumbers - next_number_) next_number_ = 1;
    const Run run{next_number_, next_seed_};
    next_number_ += calls + 1;
    next_seed_ = (next_seed_ + 1) % kSeeds;
    return run;
  }

 private:
  std::uint64_t next_number_ = 1;
  unsigned next_seed_ = 0;
};

/// The operation between `in` and `out`, which do not overlap; called by all members alike. `scratch` has
/// scratch_bytes(). `number`
/// counts the calls of this group, so that messages of one are not taken for those of another. The result is in `out`
/// when it returns.
void run_collective(const CollectiveShape& shape, Group& group, std::uint64_t number,
                    const std::uint8_t* in, std::uint8_t* out, std::uint8_t* scratch);
/// Returns when all members have called it. `scratch` has two bytes.
void run_barrier(Group& group, std::uint64_t number, std::uint8_t* scratch);

}  // namespace uet::perf
