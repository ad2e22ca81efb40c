// An ordinary MPI program of one-sided communication: knows nothing of UET. Ranks put, get, accumulate, fetch and compare in
// each other's windows under fences, locks and post-start-complete-wait, and check every sum.

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

namespace {

int rank, ranks;

struct Window {
  explicit Window(int slots) : slots_(slots) {
    MPI_Win_allocate(static_cast<MPI_Aint>(sizeof(long)) * slots, sizeof(long), MPI_INFO_NULL,
                     MPI_COMM_WORLD, &memory, &window);
    clear();
  }
  ~Window() { MPI_Win_free(&window); }

  void clear() {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    std::fill_n(memory, slots_, 0L);
    MPI_Win_unlock(rank, window);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  long read(int slot) {
    long value = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    value = memory[slot];
    MPI_Win_unlock(rank, window);
    return value;
  }

  MPI_Win window{};
  long* memory = nullptr;

 private:
  int slots_;
};

/// Every rank adds to every window; all see the sum.
long accumulate_with_fences() {
  Window w(64);
  std::vector<long> add(64);
  std::iota(add.begin(), add.end(), 1L);
  MPI_Win_fence(0, w.window);
  for (int round = 0; round < 20; ++round)
    for (int target = 0; target < ranks; ++target)
      MPI_Accumulate(add.data(), 64, MPI_LONG, target, 0, 64, MPI_LONG, MPI_SUM, w.window);
  MPI_Win_fence(0, w.window);
  long wrong = 0;
  for (int i = 0; i < 64; ++i) wrong += w.read(i) != 20L * ranks * (i + 1);
  return wrong;
}

/// A counter at rank 0: each value is fetched by one rank alone.
long fetch_and_op() {
  constexpr int kEach = 300;
  Window w(1);
  const long one = 1;
  std::vector<long> mine(kEach);
  MPI_Win_lock_all(0, w.window);
  for (long& got : mine) {
    MPI_Fetch_and_op(&one, &got, MPI_LONG, 0, 0, MPI_SUM, w.window);
    MPI_Win_flush(0, w.window);
  }
  MPI_Win_unlock_all(w.window);
  std::vector<long> all(static_cast<std::size_t>(kEach * ranks));
  MPI_Allgather(mine.data(), kEach, MPI_LONG, all.data(), kEach, MPI_LONG, MPI_COMM_WORLD);
  std::sort(all.begin(), all.end());
  long wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) wrong += all[i] != static_cast<long>(i);
  return wrong;
}

/// A lock made of compare-and-swap guards a counter that is read and written.
long compare_and_swap() {
  constexpr int kEach = 50;
  Window w(2);
  const long self = rank + 1, no_holder = 0;
  MPI_Win_lock_all(0, w.window);
  for (int i = 0; i < kEach; ++i) {
    long holder = -1;
    while (holder != 0) {
      MPI_Compare_and_swap(&self, &no_holder, &holder, MPI_LONG, 0, 0, w.window);
      MPI_Win_flush(0, w.window);
    }
    long value = 0;
    MPI_Get(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, w.window);
    MPI_Win_flush(0, w.window);
    ++value;
    MPI_Put(&value, 1, MPI_LONG, 0, 1, 1, MPI_LONG, w.window);
    MPI_Win_flush(0, w.window);
    MPI_Compare_and_swap(&no_holder, &self, &holder, MPI_LONG, 0, 0, w.window);
    MPI_Win_flush(0, w.window);
    if (holder != self) return 1;
  }
  MPI_Win_unlock_all(w.window);
  MPI_Barrier(MPI_COMM_WORLD);
  return rank == 0 && w.read(1) != long{kEach} * ranks ? 1 : 0;
}

/// Exclusive and shared locks. Sums and replacements alone: the btl of Open MPI 4.1 ends the program at other operations.
long accumulate_under_locks() {
  Window w(4);
  const long bit = 1L << rank, value = rank + 1;
  for (int target = 0; target < ranks; ++target) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w.window);
    MPI_Accumulate(&bit, 1, MPI_LONG, target, 0, 1, MPI_LONG, MPI_SUM, w.window);
    MPI_Accumulate(&value, 1, MPI_LONG, target, 1, 1, MPI_LONG, MPI_REPLACE, w.window);
    MPI_Win_unlock(target, w.window);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w.window);
    MPI_Accumulate(&value, 1, MPI_LONG, target, 2, 1, MPI_LONG, MPI_SUM, w.window);
    long old = 0;
    MPI_Get_accumulate(&value, 1, MPI_LONG, &old, 1, MPI_LONG, target, 3, 1, MPI_LONG, MPI_SUM,
                       w.window);
    MPI_Win_unlock(target, w.window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const long sum = long{ranks} * (ranks + 1) / 2;
  const long last = w.read(1);
  return (w.read(0) != (1L << ranks) - 1) + (last < 1 || last > ranks) + (w.read(2) != sum) +
         (w.read(3) != sum);
}

/// The neighbours' windows, by put and get, under post-start-complete-wait.
long neighbours() {
  constexpr int kSlots = 4096;
  Window w(kSlots);
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  MPI_Group world, from, to;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &previous, &from);
  MPI_Group_incl(world, 1, &next, &to);
  std::vector<long> out(kSlots), back(kSlots);
  long wrong = 0;
  for (long round = 0; round < 10; ++round) {
    std::fill(out.begin(), out.end(), rank * 1000 + round);
    MPI_Win_post(from, 0, w.window);
    MPI_Win_start(to, 0, w.window);
    MPI_Put(out.data(), kSlots, MPI_LONG, next, 0, kSlots, MPI_LONG, w.window);
    MPI_Win_complete(w.window);
    MPI_Win_wait(w.window);
    for (int i = 0; i < kSlots; ++i) wrong += w.memory[i] != previous * 1000 + round;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w.window);
    MPI_Get(back.data(), kSlots, MPI_LONG, next, 0, kSlots, MPI_LONG, w.window);
    MPI_Win_unlock(next, w.window);
    wrong += back != out;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Group_free(&from);
  MPI_Group_free(&to);
  MPI_Group_free(&world);
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long wrong = accumulate_with_fences() + fetch_and_op() + compare_and_swap() +
                     accumulate_under_locks() + neighbours();
  std::printf("rank %d of %d: %ld wrong\n", rank, ranks, wrong);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
