// Messages between ranks in every mode that MPI has: standard, synchronous, buffered and ready sends, persistent requests,
// receives from anywhere in the order of the sends, derived types, floods of unexpected messages, messages to itself.
//
//   messages [FLOOD]   messages of a flood

#include <mpi.h>

#include <array>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "bytes.h"
#include "verdict.h"

namespace {

using uet::mpi::Bytes, uet::mpi::bytes_of;

uet::mpi::Verdict* verdict = nullptr;
int rank, ranks, next_rank, previous_rank;

int length(const Bytes& bytes) {
  return static_cast<int>(bytes.size());
}

/// Sends by each mode around the ring; the receive is posted before, which a ready send needs.
void modes() {
  using Send = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  const std::array<std::pair<const char*, Send>, 4> sends{{{"isend", MPI_Isend},
                                                           {"issend", MPI_Issend},
                                                           {"ibsend", MPI_Ibsend},
                                                           {"irsend", MPI_Irsend}}};
  Bytes buffer(4 << 20);
  MPI_Buffer_attach(buffer.data(), length(buffer));
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{1} << 20})
    for (const auto& [name, send] : sends) {
      const Bytes out = bytes_of(rank, size);
      Bytes in(size);
      std::array<MPI_Request, 2> requests;
      MPI_Irecv(in.data(), length(in), MPI_CHAR, previous_rank, 1, MPI_COMM_WORLD, &requests[0]);
      MPI_Barrier(MPI_COMM_WORLD);
      send(out.data(), length(out), MPI_CHAR, next_rank, 1, MPI_COMM_WORLD, &requests[1]);
      MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
      verdict->expect(in == bytes_of(previous_rank, size), name + std::to_string(size));
    }
  void* gone = nullptr;
  int size = 0;
  MPI_Buffer_detach(&gone, &size);
}

/// A synchronous send is complete no sooner than its receive is posted.
void synchronous() {
  MPI_Request request;
  int done = 0, value = rank, got = -1;
  MPI_Issend(&value, 1, MPI_INT, next_rank, 2, MPI_COMM_WORLD, &request);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  verdict->expect(done == 0, "a synchronous send without a receive is complete");
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Recv(&got, 1, MPI_INT, previous_rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (done == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
  verdict->expect(got == previous_rank, "synchronous");
}

void persistent() {
  Bytes out(20'000), in(out.size());
  std::array<MPI_Request, 2> requests;
  MPI_Send_init(out.data(), length(out), MPI_CHAR, next_rank, 3, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(in.data(), length(in), MPI_CHAR, previous_rank, 3, MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < 10; ++round) {
    out.assign(out.size(), static_cast<char>(rank + round));
    MPI_Startall(2, requests.data());
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    verdict->expect(in == Bytes(in.size(), static_cast<char>(previous_rank + round)), "persistent");
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

/// Messages of one sender with one tag are taken in the order of the sends, by receives from any source; of every size, so
/// that long ones are overtaken if anything can overtake.
void order() {
  constexpr int kMessages = 60;
  const auto size_of = [](int i) { return i % 5 == 0 ? 300'000 : 1 + i % 3 * 3000; };
  std::vector<MPI_Request> sends;
  std::vector<Bytes> out;
  if (rank != 0)
    for (int i = 0; i < kMessages; ++i) {
      out.emplace_back(static_cast<std::size_t>(size_of(i)), static_cast<char>(i));
      MPI_Isend(out.back().data(), size_of(i), MPI_CHAR, 0, 4, MPI_COMM_WORLD,
                &sends.emplace_back());
    }
  std::vector<int> seen(static_cast<std::size_t>(ranks));
  Bytes in(300'000);
  for (int i = 0; rank == 0 && i < kMessages * (ranks - 1); ++i) {
    MPI_Status status;
    int got = 0;
    MPI_Recv(in.data(), length(in), MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_CHAR, &got);
    const int place = seen[static_cast<std::size_t>(status.MPI_SOURCE)]++;
    verdict->expect(
        got == size_of(place) && in[0] == static_cast<char>(place) &&
            in[static_cast<std::size_t>(got - 1)] == static_cast<char>(place),
        "message " + std::to_string(place) + " of " + std::to_string(status.MPI_SOURCE));
  }
  MPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Every third column of a matrix arrives as rows.
void derived_types() {
  constexpr int kRows = 300, kColumns = 30;
  std::vector<int> matrix(kRows * kColumns), in(kRows * kColumns / 3, -1);
  std::iota(matrix.begin(), matrix.end(), rank * 100'000);
  MPI_Datatype columns;
  MPI_Type_vector(kRows * kColumns / 3, 1, 3, MPI_INT, &columns);
  MPI_Type_commit(&columns);
  MPI_Sendrecv(matrix.data(), 1, columns, next_rank, 5, in.data(), static_cast<int>(in.size()),
               MPI_INT, previous_rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  bool is_right = true;
  for (std::size_t i = 0; i < in.size(); ++i)
    is_right &= in[i] == previous_rank * 100'000 + static_cast<int>(i) * 3;
  verdict->expect(is_right, "derived types");
  MPI_Type_free(&columns);
}

/// All ranks flood rank 0, which takes the messages later and backwards.
void flood(int messages) {
  std::vector<MPI_Request> sends(static_cast<std::size_t>(messages));
  std::vector<int> out(sends.size());
  for (int i = 0; i < messages; ++i) {
    const auto at = static_cast<std::size_t>(i);
    out[at] = rank * messages + i;
    MPI_Isend(&out[at], 1, MPI_INT, 0, i, MPI_COMM_WORLD, &sends[at]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = messages; rank == 0 && i-- > 0;)
    for (int r = ranks; r-- > 0;) {
      int got = -1;
      MPI_Recv(&got, 1, MPI_INT, r, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      verdict->expect(got == r * messages + i, "flood");
    }
  MPI_Waitall(messages, sends.data(), MPI_STATUSES_IGNORE);
}

/// Many receives at once, completed in the order of arrival.
void any() {
  constexpr int kMessages = 50;
  std::vector<MPI_Request> requests;
  std::vector<int> in(kMessages, -1), out(kMessages);
  std::iota(out.begin(), out.end(), rank * 100);
  for (std::size_t i = 0; i < kMessages; ++i)
    MPI_Irecv(&in[i], 1, MPI_INT, previous_rank, static_cast<int>(i), MPI_COMM_WORLD,
              &requests.emplace_back());
  for (std::size_t i = kMessages; i-- > 0;)
    MPI_Send(&out[i], 1, MPI_INT, next_rank, static_cast<int>(i), MPI_COMM_WORLD);
  for (int i = 0; i < kMessages; ++i) {
    int index = MPI_UNDEFINED;
    MPI_Waitany(kMessages, requests.data(), &index, MPI_STATUS_IGNORE);
    verdict->expect(index != MPI_UNDEFINED &&
                        in[static_cast<std::size_t>(index)] == previous_rank * 100 + index,
                    "waitany");
  }
}

/// A rank's messages to itself, and a replacement in place.
void self() {
  MPI_Request request;
  int value = rank + 7, got = -1;
  MPI_Isend(&value, 1, MPI_INT, rank, 6, MPI_COMM_WORLD, &request);
  MPI_Recv(&got, 1, MPI_INT, rank, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  verdict->expect(got == value, "to itself");
  Bytes bytes = bytes_of(rank, 100'000);
  MPI_Sendrecv_replace(bytes.data(), length(bytes), MPI_CHAR, next_rank, 6, previous_rank, 6,
                       MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  verdict->expect(bytes == bytes_of(previous_rank, bytes.size()), "sendrecv_replace");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  uet::mpi::Verdict judge;
  verdict = &judge;
  rank = judge.rank();
  ranks = judge.ranks();
  next_rank = (rank + 1) % ranks;
  previous_rank = (rank + ranks - 1) % ranks;
  modes();
  synchronous();
  persistent();
  order();
  derived_types();
  flood(argc > 1 ? std::atoi(argv[1]) : 1000);
  any();
  self();
  return judge.finish();
}
