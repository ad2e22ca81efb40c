// One-sided communication under every kind of synchronisation: fences, exclusive and shared locks, all windows at once, flushes,
// post-start-complete-wait; puts, gets and accumulates of every operation, with requests and with derived types; windows
// of every flavour. Each rank checks what it can know.
//
//   windows [no-nocheck] [no-dynamic] [sums]   without locks of MPI_MODE_NOCHECK; without dynamic windows; with sums and
//                                              replacements of one type alone: for libraries that hang or end at others

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "verdict.h"

namespace {

uet::mpi::Verdict* verdict = nullptr;
int rank, ranks;
bool sums_only = false, has_nocheck = true, has_dynamic = true;

constexpr int kSlots = 1024;

/// kSlots numbers of each rank.
template <typename T>
class Window {
 public:
  explicit Window(MPI_Datatype type) : type_(type) {
    MPI_Win_allocate(MPI_Aint{sizeof(T)} * kSlots, sizeof(T), MPI_INFO_NULL, MPI_COMM_WORLD,
                     &memory_, &window_);
  }
  ~Window() { MPI_Win_free(&window_); }
  operator MPI_Win() const { return window_; }
  MPI_Datatype type() const { return type_; }

  void fill(T value) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window_);
    std::fill_n(memory_, kSlots, value);
    MPI_Win_unlock(rank, window_);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  std::vector<T> read() {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window_);
    std::vector<T> out(memory_, memory_ + kSlots);
    MPI_Win_unlock(rank, window_);
    MPI_Barrier(MPI_COMM_WORLD);
    return out;
  }

 private:
  MPI_Datatype type_;
  MPI_Win window_{};
  T* memory_ = nullptr;
};

int next() {
  return (rank + 1) % ranks;
}
int previous() {
  return (rank + ranks - 1) % ranks;
}

/// Puts to the next rank and gets it back, between `begin` and `end` of the synchronisation, which completes the put at `middle`.
template <typename Begin, typename Middle, typename End>
void put_and_get(const char* name, Begin begin, Middle middle, End end) {
  Window<long> window(MPI_LONG);
  window.fill(-1);
  std::vector<long> out(kSlots), in(kSlots);
  for (std::size_t i = 0; i < kSlots; ++i) out[i] = rank * 10'000 + static_cast<long>(i);
  begin(window);
  MPI_Put(out.data(), kSlots, MPI_LONG, next(), 0, kSlots, MPI_LONG, window);
  middle(window);
  MPI_Get(in.data(), kSlots, MPI_LONG, next(), 0, kSlots, MPI_LONG, window);
  end(window);
  verdict->expect(in == out, std::string(name) + ": get");
  for (long& value : out) value += (previous() - rank) * 10'000;
  verdict->expect(window.read() == out, std::string(name) + ": put");
}

void synchronisations() {
  const auto fence = [](MPI_Win w) { MPI_Win_fence(0, w); };
  put_and_get("fence", fence, fence, fence);
  put_and_get(
      "fence with assertions", [](MPI_Win w) { MPI_Win_fence(MPI_MODE_NOPRECEDE, w); }, fence,
      [](MPI_Win w) { MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED, w); });
  for (const int kind : {MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED})
    for (const int assertion : {0, MPI_MODE_NOCHECK}) {
      if (assertion != 0 && !has_nocheck) continue;
      put_and_get(
          kind == MPI_LOCK_SHARED ? "shared lock" : "exclusive lock",
          [=](MPI_Win w) { MPI_Win_lock(kind, next(), assertion, w); },
          [](MPI_Win w) { MPI_Win_flush(next(), w); },
          [](MPI_Win w) { MPI_Win_unlock(next(), w); });
    }
  put_and_get(
      "lock_all", [](MPI_Win w) { MPI_Win_lock_all(0, w); },
      [](MPI_Win w) { MPI_Win_flush_all(w); }, [](MPI_Win w) { MPI_Win_unlock_all(w); });
}

/// Those who write and those who are written know each other.
void post_start() {
  Window<long> window(MPI_LONG);
  window.fill(0);
  MPI_Group world, from, to;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const int source = previous(), target = next();
  MPI_Group_incl(world, 1, &source, &from);
  MPI_Group_incl(world, 1, &target, &to);
  std::vector<long> out(kSlots, rank + 1);
  MPI_Win_post(from, 0, window);
  MPI_Win_start(to, 0, window);
  MPI_Put(out.data(), kSlots, MPI_LONG, target, 0, kSlots, MPI_LONG, window);
  MPI_Win_complete(window);
  MPI_Win_wait(window);
  verdict->expect(window.read() == std::vector<long>(kSlots, previous() + 1),
                  "post-start-complete-wait");
  MPI_Group_free(&from);
  MPI_Group_free(&to);
  MPI_Group_free(&world);
}

/// Each rank accumulates rank + 1 into rank 0 twice, once by each function.
template <typename T>
void accumulate(MPI_Datatype type, MPI_Op op, T start, T wanted, const std::string& name) {
  Window<T> window(type);
  window.fill(start);
  const std::vector<T> out(16, static_cast<T>(rank + 1));
  std::vector<T> old(16);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  MPI_Accumulate(out.data(), 16, type, 0, 0, 16, type, op, window);
  MPI_Win_flush(0, window);
  MPI_Get_accumulate(out.data(), 16, type, old.data(), 16, type, 0, 0, 16, type, op, window);
  MPI_Fetch_and_op(out.data(), old.data(), type, 0, 20, op, window);
  MPI_Win_unlock(0, window);
  const std::vector<T> got = window.read();
  if (rank != 0) return;
  verdict->expect(std::all_of(got.begin(), got.begin() + 16, [=](T v) { return v == wanted; }),
                  name);
}

long factorial(int n) {
  return n <= 1 ? 1 : n * factorial(n - 1);
}

void operations() {
  const long sum = long{ranks} * (ranks + 1) / 2;
  accumulate<long>(MPI_LONG, MPI_SUM, 5, 5 + 2 * sum, "sum of long");
  if (sums_only) return;
  long any_bits = 0;
  for (int r = 1; r <= ranks; ++r) any_bits |= r;
  const long product = factorial(ranks) * factorial(ranks);
  accumulate<int>(MPI_INT, MPI_SUM, 5, static_cast<int>(5 + 2 * sum), "sum of int");
  accumulate<double>(MPI_DOUBLE, MPI_SUM, 0.5, 0.5 + 2.0 * static_cast<double>(sum),
                     "sum of double");
  accumulate<float>(MPI_FLOAT, MPI_PROD, 1, static_cast<float>(product), "product of float");
  accumulate<long>(MPI_LONG, MPI_PROD, 1, product, "product of long");
  accumulate<short>(MPI_SHORT, MPI_MAX, 0, static_cast<short>(ranks), "max of short");
  accumulate<signed char>(MPI_SIGNED_CHAR, MPI_MIN, 100, 1, "min of char");
  accumulate<long>(MPI_LONG, MPI_BOR, 0, any_bits, "bor");
  accumulate<unsigned>(MPI_UNSIGNED, MPI_BXOR, 7, 7, "bxor");
  accumulate<long>(MPI_LONG, MPI_BAND, -1, ranks == 1 ? 1 : 0, "band");
  accumulate<int>(MPI_INT, MPI_LAND, 1, 1, "land");
  accumulate<int>(MPI_INT, MPI_LOR, 0, 1, "lor");
  accumulate<int>(MPI_INT, MPI_LXOR, 0, 0, "lxor");
}

/// The last replacement wins, whichever rank made it; every fetch sees a value that one rank wrote.
void replace() {
  Window<long> window(MPI_LONG);
  window.fill(1);
  const long value = rank + 1;
  long old = 0;
  MPI_Win_lock_all(0, window);
  for (int round = 0; round < 20; ++round) {
    MPI_Fetch_and_op(&value, &old, MPI_LONG, 0, 0, MPI_REPLACE, window);
    MPI_Win_flush_local(0, window);
    MPI_Win_flush(0, window);
    verdict->expect(old >= 1 && old <= ranks, "replaced " + std::to_string(old));
  }
  MPI_Win_unlock_all(window);
  const long last = window.read()[0];
  verdict->expect(rank != 0 || (last >= 1 && last <= ranks), "the last replacement");
}

/// One rank alone finds the slot empty.
void compare_and_swap() {
  Window<long> window(MPI_LONG);
  window.fill(0);
  const long mine = rank + 1, empty = 0;
  long old = -1, winners = 0;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  MPI_Compare_and_swap(&mine, &empty, &old, MPI_LONG, 0, 3, window);
  MPI_Win_unlock(0, window);
  const long won = old == 0;
  MPI_Allreduce(&won, &winners, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  const std::vector<long> got = window.read();
  verdict->expect(winners == 1 && (rank != 0 || (got[3] >= 1 && got[3] <= ranks)),
                  "compare and swap");
}

/// Operations that have a request of their own, waited for without a flush.
void requests() {
  Window<long> window(MPI_LONG);
  window.fill(0);
  std::vector<long> out(kSlots, rank + 1), in(kSlots), old(1);
  MPI_Request request;
  MPI_Win_lock_all(0, window);
  MPI_Rput(out.data(), kSlots - 2, MPI_LONG, next(), 0, kSlots - 2, MPI_LONG, window, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_flush(next(), window);
  MPI_Rget(in.data(), kSlots - 2, MPI_LONG, next(), 0, kSlots - 2, MPI_LONG, window, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  verdict->expect(std::equal(in.begin(), in.end() - 2, out.begin()), "rget");
  MPI_Raccumulate(out.data(), 1, MPI_LONG, 0, kSlots - 1, 1, MPI_LONG, MPI_SUM, window, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Rget_accumulate(out.data(), 1, MPI_LONG, old.data(), 1, MPI_LONG, 0, kSlots - 1, 1, MPI_LONG,
                      MPI_SUM, window, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_unlock_all(window);
  const std::vector<long> got = window.read();
  verdict->expect(got[0] == previous() + 1, "rput");
  verdict->expect(rank != 0 || got[kSlots - 1] == long{ranks} * (ranks + 1), "raccumulate");
}

/// Every other element, at the origin and at the target.
void derived_types() {
  Window<long> window(MPI_LONG);
  window.fill(-1);
  std::vector<long> out(kSlots, -2);
  for (std::size_t i = 0; i < kSlots; i += 2) out[i] = rank * 1000 + static_cast<long>(i);
  MPI_Datatype even;
  MPI_Type_vector(kSlots / 2, 1, 2, MPI_LONG, &even);
  MPI_Type_commit(&even);
  MPI_Win_fence(0, window);
  MPI_Put(out.data(), 1, even, next(), 0, 1, even, window);
  MPI_Win_fence(0, window);
  const std::vector<long> got = window.read();
  bool is_right = true;
  for (std::size_t i = 0; i < kSlots; ++i)
    is_right &= got[i] == (i % 2 == 0 ? previous() * 1000 + static_cast<long>(i) : -1);
  verdict->expect(is_right, "derived types");
  MPI_Type_free(&even);
}

/// A window over memory of the program.
void created() {
  std::vector<long> memory(kSlots, -1);
  const long value = rank;
  MPI_Win window;
  MPI_Win_create(memory.data(), MPI_Aint{sizeof(long)} * kSlots, sizeof(long), MPI_INFO_NULL,
                 MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  for (int r = 0; r < ranks; ++r) MPI_Put(&value, 1, MPI_LONG, r, rank, 1, MPI_LONG, window);
  MPI_Win_fence(0, window);
  for (int r = 0; r < ranks; ++r)
    verdict->expect(memory[static_cast<std::size_t>(r)] == r, "window of the program's memory");
  MPI_Win_free(&window);
}

/// A window that memory is attached to later.
void dynamic() {
  std::vector<long> memory(kSlots, -1);
  MPI_Win window;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_attach(window, memory.data(), MPI_Aint{sizeof(long)} * kSlots);
  MPI_Aint here = 0;
  MPI_Get_address(memory.data(), &here);
  std::vector<MPI_Aint> places(static_cast<std::size_t>(ranks));
  MPI_Allgather(&here, 1, MPI_AINT, places.data(), 1, MPI_AINT, MPI_COMM_WORLD);
  const long other = rank + 100;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next(), 0, window);
  MPI_Put(&other, 1, MPI_LONG, next(), places[static_cast<std::size_t>(next())], 1, MPI_LONG,
          window);
  MPI_Win_unlock(next(), window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  verdict->expect(memory[0] == previous() + 100, "dynamic window");
  MPI_Win_unlock(rank, window);
  MPI_Win_detach(window, memory.data());
  MPI_Win_free(&window);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  uet::mpi::Verdict judge;
  verdict = &judge;
  rank = judge.rank();
  ranks = judge.ranks();
  for (int i = 1; i < argc; ++i) {
    sums_only |= std::strcmp(argv[i], "sums") == 0;
    has_nocheck &= std::strcmp(argv[i], "no-nocheck") != 0;
    has_dynamic &= std::strcmp(argv[i], "no-dynamic") != 0;
  }
  synchronisations();
  post_start();
  operations();
  replace();
  compare_and_swap();
  requests();
  derived_types();
  created();
  if (has_dynamic) dynamic();
  return judge.finish();
}
