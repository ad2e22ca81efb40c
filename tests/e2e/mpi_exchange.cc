// An ordinary MPI program: knows nothing of UET. Ranks exchange messages of all sizes in a ring, reduce, transpose, probe,
// cancel and write into each other's windows, and check every byte. With the argument "threads", several threads of each
// rank exchange messages at once instead.

#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <numeric>
#include <thread>
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

/// Messages of a length that the receiver learns by asking: MPI_Probe, MPI_Iprobe, MPI_Mprobe and MPI_Improbe in turn.
long probe() {
  constexpr int kMessages = 40;
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  const auto length_of = [](int i) { return static_cast<std::size_t>(1 + i * i * 97 % 150'000); };
  std::vector<std::vector<char>> out;
  std::vector<MPI_Request> sends(kMessages);
  for (int i = 0; i < kMessages; ++i) {
    out.emplace_back(length_of(i), static_cast<char>(rank + i));
    MPI_Isend(out.back().data(), static_cast<int>(out.back().size()), MPI_CHAR, next, i,
              MPI_COMM_WORLD, &sends[static_cast<std::size_t>(i)]);
  }
  long wrong = 0;
  for (int i = kMessages; i-- > 0;) {  // backwards: most have to be looked for among others
    MPI_Status status;
    MPI_Message message = MPI_MESSAGE_NULL;
    int found = 0, length = 0;
    switch (i % 4) {
      case 0:
        MPI_Probe(previous, i, MPI_COMM_WORLD, &status);
        break;
      case 1:
        while (found == 0) MPI_Iprobe(MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &found, &status);
        break;
      case 2:
        MPI_Mprobe(MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &message, &status);
        break;
      default:
        while (found == 0) MPI_Improbe(previous, i, MPI_COMM_WORLD, &found, &message, &status);
    }
    MPI_Get_count(&status, MPI_CHAR, &length);
    std::vector<char> in(static_cast<std::size_t>(length));
    if (message != MPI_MESSAGE_NULL)
      MPI_Mrecv(in.data(), length, MPI_CHAR, &message, MPI_STATUS_IGNORE);
    else
      MPI_Recv(in.data(), length, MPI_CHAR, previous, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wrong += in != std::vector<char>(length_of(i), static_cast<char>(previous + i));
  }
  MPI_Waitall(kMessages, sends.data(), MPI_STATUSES_IGNORE);
  return wrong;
}

/// A receive that is taken back takes no message; the one behind it does.
long cancel() {
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  int taken_back = -1, kept = -1, cancelled = 0;
  MPI_Request first, second;
  MPI_Irecv(&taken_back, 1, MPI_INT, previous, 7, MPI_COMM_WORLD, &first);
  MPI_Irecv(&kept, 1, MPI_INT, previous, 7, MPI_COMM_WORLD, &second);
  MPI_Status status;
  MPI_Cancel(&first);
  MPI_Wait(&first, &status);
  MPI_Test_cancelled(&status, &cancelled);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&rank, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
  MPI_Wait(&second, MPI_STATUS_IGNORE);
  return (cancelled == 0) + (taken_back != -1) + (kept != previous);
}

/// Four threads of each rank talk to their counterparts at the same time.
long threads(int provided) {
  if (provided < MPI_THREAD_MULTIPLE) {
    std::fprintf(stderr, "this MPI was built without MPI_THREAD_MULTIPLE\n");
    return 1;
  }
  constexpr int kThreads = 4, kRounds = 200;
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  std::vector<long> wrong(kThreads);
  std::vector<std::thread> all;
  for (int t = 0; t < kThreads; ++t)
    all.emplace_back([=, &wrong] {
      for (int round = 0; round < kRounds; ++round) {
        const auto size = static_cast<std::size_t>(1 + round * 53 * (t + 1) % 20'000);
        std::vector<char> out(size, static_cast<char>(rank + t + round)), in(size);
        MPI_Sendrecv(out.data(), static_cast<int>(size), MPI_CHAR, next, 100 + t, in.data(),
                     static_cast<int>(size), MPI_CHAR, previous, 100 + t, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        wrong[static_cast<std::size_t>(t)] +=
            in != std::vector<char>(size, static_cast<char>(previous + t + round));
      }
    });
  for (std::thread& t : all) t.join();
  return std::accumulate(wrong.begin(), wrong.end(), 0L);
}

}  // namespace

int main(int argc, char** argv) {
  const bool in_threads = argc > 1 && std::strcmp(argv[1], "threads") == 0;
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, in_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const long wrong = in_threads ? threads(provided)
                                : ring() + all_reduce() + all_to_all() + put() + probe() + cancel();
  std::printf("rank %d of %d: %ld wrong\n", rank, ranks, wrong);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
