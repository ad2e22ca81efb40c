// An ordinary MPI program: knows nothing of UET. Ranks exchange messages of all sizes in a ring, reduce, transpose and
// write into each other's windows, and check every byte.

#include <mpi.h>

#include <cstdio>
#include <numeric>
#include <vector>

namespace {

int rank, ranks;

/// Bytes of a message that differ by sender, position and size.
char byte_of(int sender, std::size_t i, std::size_t size) {
  return static_cast<char>(sender * 31 + static_cast<int>(i * 7 + size));
}

long ring() {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  long wrong = 0;
  for (std::size_t size = 1; size <= std::size_t{1} << 22; size *= 4) {
    std::vector<char> out(size), in(size);
    for (std::size_t i = 0; i < size; ++i) out[i] = byte_of(rank, i, size);
    for (int round = 0; round < 5; ++round) {
      const int n = static_cast<int>(size);
      MPI_Sendrecv(out.data(), n, MPI_CHAR, next, round, in.data(), n, MPI_CHAR, previous, round,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (std::size_t i = 0; i < size; ++i) wrong += in[i] != byte_of(previous, i, size);
    }
  }
  return wrong;
}

long all_reduce() {
  constexpr int kValues = 1 << 18;
  std::vector<double> mine(kValues), sum(kValues);
  std::iota(mine.begin(), mine.end(), rank);
  MPI_Allreduce(mine.data(), sum.data(), kValues, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  long wrong = 0;
  for (int i = 0; i < kValues; ++i)
    wrong += sum[static_cast<std::size_t>(i)] != ranks * (ranks - 1) / 2.0 + double(ranks) * i;
  return wrong;
}

long all_to_all() {
  constexpr std::size_t kEach = 65536;
  std::vector<char> out(kEach * static_cast<std::size_t>(ranks), static_cast<char>(rank)),
      in(out.size());
  MPI_Alltoall(out.data(), kEach, MPI_CHAR, in.data(), kEach, MPI_CHAR, MPI_COMM_WORLD);
  long wrong = 0;
  for (std::size_t i = 0; i < in.size(); ++i) wrong += in[i] != static_cast<char>(i / kEach);
  return wrong;
}

long put() {
  int* slots = nullptr;
  MPI_Win window;
  MPI_Win_allocate(ranks * static_cast<int>(sizeof(int)), sizeof(int), MPI_INFO_NULL,
                   MPI_COMM_WORLD, &slots, &window);
  MPI_Win_fence(0, window);
  const int value = 100 + rank;
  for (int to = 0; to < ranks; ++to) MPI_Put(&value, 1, MPI_INT, to, rank, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  long wrong = 0;
  for (int from = 0; from < ranks; ++from) wrong += slots[from] != 100 + from;
  MPI_Win_free(&window);
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long wrong = ring() + all_reduce() + all_to_all() + put();
  std::printf("rank %d of %d: %ld wrong\n", rank, ranks, wrong);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
