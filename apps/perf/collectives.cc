#include "apps/perf/collectives.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace uet::perf {
namespace {

/// A tree hands on pieces of this size, so that all its levels work at once.
constexpr std::size_t kPieceBytes = std::size_t{128} << 10;
constexpr unsigned kBitsOfStep = 20;

/// One call of one operation.
struct Call {
  const CollectiveShape& shape;
  Group& group;
  std::uint64_t number;
  const std::uint8_t* in;
  std::uint8_t* out;
  std::uint8_t* scratch;

  unsigned rank = group.rank();
  unsigned size = group.size();
  std::size_t part_bytes = shape.part() * shape.elements.bytes();

  unsigned next() const { return (rank + 1) % size; }
  unsigned previous() const { return (rank + size - 1) % size; }
  /// Part `n`, counted around the ring.
  std::size_t part_at(unsigned n) const { return n % size * part_bytes; }
  std::uint64_t tag(std::uint64_t step) const { return number << kBitsOfStep | step; }
  void exchange(std::uint64_t step, const std::uint8_t* from, std::uint8_t* to) {
    const Group::Ticket in_flight = group.receive(previous(), tag(step), to, part_bytes);
    const Group::Ticket sent = group.send(next(), tag(step), from, part_bytes);
    group.wait(in_flight);
    group.wait(sent);
  }

  /// After it `place` holds part `rank` of the reduction. Partial results travel once around the ring; each is taken in at
  /// `scratch`.
  void reduce_around(std::uint8_t* place) {
    if (size == 1) {
      std::memcpy(place, in, part_bytes);
      return;
    }
    const std::uint8_t* partial = in + part_at(rank + size - 1);
    for (unsigned step = 0; step + 1 < size; ++step) {
      const bool is_last = step + 2 == size;
      std::uint8_t* const taken = is_last ? place : scratch + step % 2 * part_bytes;
      exchange(step, partial, taken);
      shape.elements.reduce(taken, in + part_at(rank + 2 * size - 2 - step), shape.part());
      partial = taken;
    }
  }
  /// Part `rank` of `out` goes around the ring, as does that of every member.
  void gather_around(std::uint64_t first_step) {
    for (unsigned step = 0; step + 1 < size; ++step)
      exchange(first_step + step, out + part_at(rank + size - step),
               out + part_at(rank + 2 * size - 1 - step));
  }
};

void all_reduce_ring(Call& c) {
  c.reduce_around(c.out + c.part_at(c.rank));
  c.gather_around(c.size);
}

void reduce_scatter(Call& c) {
  c.reduce_around(c.out);
}

void all_gather(Call& c) {
  std::memcpy(c.out + c.part_at(c.rank), c.in, c.part_bytes);
  c.gather_around(0);
}

void all_to_all(Call& c) {
  std::memcpy(c.out + c.part_at(c.rank), c.in + c.part_at(c.rank), c.part_bytes);
  std::vector<Group::Ticket> tickets;
  for (unsigned n = 1; n < c.size; ++n) {
    const unsigned from = (c.rank + c.size - n) % c.size;
    tickets.push_back(c.group.receive(from, c.tag(0), c.out + c.part_at(from), c.part_bytes));
  }
  for (unsigned n = 1; n < c.size; ++n) {
    const unsigned to = (c.rank + n) % c.size;
    tickets.push_back(c.group.send(to, c.tag(0), c.in + c.part_at(to), c.part_bytes));
  }
  for (const Group::Ticket ticket : tickets) c.group.wait(ticket);
}

/// A binary tree with member 0 at its root.
struct Tree {
  explicit Tree(const Call& c) : call(c) {
    for (const unsigned child : {2 * c.rank + 1, 2 * c.rank + 2})
      if (child < c.size) children.push_back(child);
  }
  bool is_root() const { return call.rank == 0; }
  unsigned parent() const { return (call.rank - 1) / 2; }
  std::size_t pieces() const { return (call.shape.bytes() + kPieceBytes - 1) / kPieceBytes; }
  std::size_t at(std::size_t piece) const { return piece * kPieceBytes; }
  std::size_t bytes(std::size_t piece) const {
    return std::min(kPieceBytes, call.shape.bytes() - at(piece));
  }
  std::uint64_t tag(std::size_t piece, bool is_down) const {
    return call.tag(2 * piece + (is_down ? 1 : 0));
  }

  const Call& call;
  std::vector<unsigned> children;
};

/// Receives of a member's pieces from one other, posted some pieces ahead of what is waited for.
template <typename Post>
class Ahead {
 public:
  Ahead(std::size_t pieces, Post post) : pieces_(pieces), post_(std::move(post)) { fill(0); }
  void wait(Group& group, std::size_t piece) {
    fill(piece);
    group.wait(tickets_[piece]);
  }

 private:
  static constexpr std::size_t kPosted = 16;
  void fill(std::size_t piece) {
    while (tickets_.size() < std::min(pieces_, piece + kPosted))
      tickets_.push_back(post_(tickets_.size()));
  }

  std::size_t pieces_;
  Post post_;
  std::vector<Group::Ticket> tickets_;
};

/// Piece by piece: from the children, into `out`, to the parent.
void reduce_up(Call& c, const Tree& tree) {
  std::memcpy(c.out, c.in, c.shape.bytes());
  const auto place = [&](std::size_t child, std::size_t p) {
    return c.scratch + child * c.shape.bytes() + tree.at(p);
  };
  const auto take_from = [&](std::size_t child) {
    return Ahead(tree.pieces(), [&, child](std::size_t p) {
      return c.group.receive(tree.children[child], tree.tag(p, false), place(child, p),
                             tree.bytes(p));
    });
  };
  std::vector<decltype(take_from(0))> arriving;
  for (std::size_t child = 0; child < tree.children.size(); ++child)
    arriving.push_back(take_from(child));
  std::vector<Group::Ticket> sent;
  for (std::size_t p = 0; p < tree.pieces(); ++p) {
    for (std::size_t child = 0; child < tree.children.size(); ++child) {
      arriving[child].wait(c.group, p);
      c.shape.elements.reduce(c.out + tree.at(p), place(child, p),
                              tree.bytes(p) / c.shape.elements.bytes());
    }
    if (!tree.is_root())
      sent.push_back(
          c.group.send(tree.parent(), tree.tag(p, false), c.out + tree.at(p), tree.bytes(p)));
  }
  for (const Group::Ticket ticket : sent) c.group.wait(ticket);
}

void hand_down(Call& c, const Tree& tree) {
  std::vector<Group::Ticket> sent;
  Ahead arriving(tree.is_root() ? 0 : tree.pieces(), [&](std::size_t p) {
    return c.group.receive(tree.parent(), tree.tag(p, true), c.out + tree.at(p), tree.bytes(p));
  });
  for (std::size_t p = 0; p < tree.pieces(); ++p) {
    if (!tree.is_root()) arriving.wait(c.group, p);
    for (const unsigned child : tree.children)
      sent.push_back(c.group.send(child, tree.tag(p, true), c.out + tree.at(p), tree.bytes(p)));
  }
  for (const Group::Ticket ticket : sent) c.group.wait(ticket);
}

void all_reduce_tree(Call& c) {
  const Tree tree(c);
  reduce_up(c, tree);
  hand_down(c, tree);
}

void broadcast(Call& c) {
  const Tree tree(c);
  if (tree.is_root()) std::memcpy(c.out, c.in, c.shape.bytes());
  hand_down(c, tree);
}

using CallOnce = void (*)(Call&);
constexpr std::array<CallOnce, std::size(kCollectives)> kCalls = {
    all_reduce_ring, all_reduce_tree, all_gather, reduce_scatter, broadcast, all_to_all};

}  // namespace

double CollectiveShape::given(unsigned rank, std::size_t i, unsigned seed) const {
  return static_cast<double>((i * 7 + rank * 13 + seed * 3) % 61);
}

double CollectiveShape::expected(unsigned rank, std::size_t i, unsigned seed) const {
  if (name == "broadcast") return given(0, i, seed);
  const auto from = static_cast<unsigned>(i / part());
  if (name == "all-gather") return given(from, i % part(), seed);
  if (name == "all-to-all") return given(from, rank * part() + i % part(), seed);
  const std::size_t at = name == "reduce-scatter" ? rank * part() + i : i;
  double value = given(0, at, seed);
  for (unsigned member = 1; member < members; ++member)
    value = elements.reduced(value, given(member, at, seed));
  return value;
}

double CollectiveShape::bus_factor() const {
  if (name == "broadcast") return 1;
  const double share = (members - 1.0) / members;
  return name.starts_with("all-reduce") ? 2 * share : share;
}

void run_collective(const CollectiveShape& shape, Group& group, std::uint64_t number,
                    const std::uint8_t* in, std::uint8_t* out, std::uint8_t* scratch) {
  Call call{shape, group, number, in, out, scratch};
  const auto at = std::find(std::begin(kCollectives), std::end(kCollectives), shape.name);
  kCalls[static_cast<std::size_t>(at - std::begin(kCollectives))](call);
}

void run_barrier(Group& group, std::uint64_t number, std::uint8_t* scratch) {
  for (unsigned distance = 1, step = 0; distance < group.size(); distance *= 2, ++step) {
    const std::uint64_t tag = number << kBitsOfStep | step;
    const unsigned to = (group.rank() + distance) % group.size();
    const unsigned from = (group.rank() + group.size() - distance) % group.size();
    const Group::Ticket in = group.receive(from, tag, scratch, 1);
    const Group::Ticket out = group.send(to, tag, scratch + 1, 1);
    group.wait(in);
    group.wait(out);
  }
}

}  // namespace uet::perf
