// Threads of each rank that communicate at once (MPI_THREAD_MULTIPLE): messages on one communicator, collectives on one for
// each thread, and messages that a thread finds by asking.
//
//   threads [ROUNDS]

#include <mpi.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "verdict.h"

namespace {

constexpr int kThreads = 4;

struct Ring {
  MPI_Comm comm;
  int rank, ranks, thread;

  int next() const { return (rank + 1) % ranks; }
  int previous() const { return (rank + ranks - 1) % ranks; }
};

/// Each thread of a rank with the same thread of its neighbours, all on one communicator.
long exchange(const Ring& ring, int rounds) {
  long wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto size = static_cast<std::size_t>(1 + round * 997 * (ring.thread + 1) % 30'000);
    const std::vector<char> out(size, static_cast<char>(ring.rank + ring.thread + round));
    std::vector<char> in(size);
    MPI_Sendrecv(out.data(), static_cast<int>(size), MPI_CHAR, ring.next(), ring.thread, in.data(),
                 static_cast<int>(size), MPI_CHAR, ring.previous(), ring.thread, ring.comm,
                 MPI_STATUS_IGNORE);
    wrong +=
        in != std::vector<char>(size, static_cast<char>(ring.previous() + ring.thread + round));
  }
  return wrong;
}

/// Reductions of all threads at once, each on a communicator of its own.
long collectives(const Ring& ring, int rounds) {
  long wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<long> in(200, ring.rank + round), out(200);
    MPI_Allreduce(in.data(), out.data(), 200, MPI_LONG, MPI_SUM, ring.comm);
    const long sum = long{ring.ranks} * (ring.ranks - 1) / 2 + long{ring.ranks} * round;
    wrong += out != std::vector<long>(200, sum);
    int first = ring.rank == round % ring.ranks ? round : -1;
    MPI_Bcast(&first, 1, MPI_INT, round % ring.ranks, ring.comm);
    wrong += first != round;
  }
  return wrong;
}

/// The threads of a rank share the messages that come for any of them: each message is found and taken by one thread.
long shared_work(const Ring& ring, int rounds, int tag) {
  long wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::vector<int> out(static_cast<std::size_t>(1 + round % 50), ring.rank);
    MPI_Request sent;
    MPI_Isend(out.data(), static_cast<int>(out.size()), MPI_INT, ring.next(), tag, ring.comm,
              &sent);
    MPI_Message message;
    MPI_Status status;
    int count = 0;
    MPI_Mprobe(MPI_ANY_SOURCE, tag, ring.comm, &message, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    std::vector<int> in(static_cast<std::size_t>(count), -1);
    MPI_Mrecv(in.data(), count, MPI_INT, &message, MPI_STATUS_IGNORE);
    wrong += in != std::vector<int>(in.size(), ring.previous());
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  uet::mpi::Verdict verdict;
  verdict.expect(provided == MPI_THREAD_MULTIPLE, "this MPI was built without MPI_THREAD_MULTIPLE");
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 50;
  std::vector<MPI_Comm> comms(kThreads);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<long> wrong(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; provided == MPI_THREAD_MULTIPLE && t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const auto at = static_cast<std::size_t>(t);
      const Ring world{MPI_COMM_WORLD, verdict.rank(), verdict.ranks(), t};
      const Ring own{comms[at], verdict.rank(), verdict.ranks(), t};
      wrong[at] =
          exchange(world, rounds) + collectives(own, rounds) + shared_work(world, rounds, 1000);
    });
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t)
    verdict.expect(
        wrong[static_cast<std::size_t>(t)] == 0,
        "thread " + std::to_string(t) + ": " + std::to_string(wrong[static_cast<std::size_t>(t)]));
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  return verdict.finish();
}
