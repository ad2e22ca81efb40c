// An MPI program that runs until a file appears: in each round rank 0 sends rank 1 a window of messages that all have one tag,
// so that they are told apart by their order alone, and all ranks reduce. Every value that arrives is checked.
//
//     mpi_stream STOP-FILE

#include <mpi.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

constexpr int kWindow = 16, kWords = 4096, kTag = 1;

int rank, ranks;

std::uint64_t word_of(std::uint64_t message, std::size_t i) {
  return message * 1'000'003 + i;
}

long send_window(std::uint64_t first) {
  static std::array<std::vector<std::uint64_t>, kWindow> buffers;
  std::array<MPI_Request, kWindow> requests;
  long wrong = 0;
  for (std::size_t m = 0; m < kWindow; ++m) {
    auto& words = buffers[m];
    words.resize(kWords);
    for (std::size_t i = 0; i < kWords; ++i) words[i] = rank == 0 ? word_of(first + m, i) : 0;
    if (rank == 0)
      MPI_Isend(words.data(), kWords, MPI_UINT64_T, 1, kTag, MPI_COMM_WORLD, &requests[m]);
    else
      MPI_Irecv(words.data(), kWords, MPI_UINT64_T, 0, kTag, MPI_COMM_WORLD, &requests[m]);
  }
  MPI_Waitall(kWindow, requests.data(), MPI_STATUSES_IGNORE);
  for (std::size_t m = 0; m < kWindow; ++m)
    for (std::size_t i = 0; i < kWords; ++i) wrong += buffers[m][i] != word_of(first + m, i);
  return wrong;
}

long reduce(std::uint64_t round) {
  constexpr std::size_t kValues = 1024;
  std::vector<std::uint64_t> mine(kValues), sum(kValues);
  const auto n = static_cast<std::uint64_t>(ranks);
  for (std::size_t i = 0; i < kValues; ++i) mine[i] = round + i * static_cast<std::uint64_t>(rank);
  MPI_Allreduce(mine.data(), sum.data(), kValues, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  long wrong = 0;
  for (std::size_t i = 0; i < kValues; ++i) wrong += sum[i] != n * round + i * (n * (n - 1) / 2);
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  long wrong = 0;
  int goes_on = argc == 2;
  for (std::uint64_t round = 0; goes_on != 0; ++round) {
    if (rank < 2) wrong += send_window(round * kWindow);
    wrong += reduce(round);
    if (rank == 0) goes_on = access(argv[1], F_OK) != 0;
    MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  std::printf("rank %d of %d: %ld wrong\n", rank, ranks, wrong);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
