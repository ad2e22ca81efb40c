// Every collective operation of MPI, blocking and not, with results that each rank computes for itself: on the world, on
// halves of it in both orders of ranks, and on a communicator of one; from every root; with empty, small and long vectors.
//
//   collectives [LONGEST]   values of the longest vector

#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "verdict.h"

namespace {

using Values = std::vector<long>;

uet::mpi::Verdict* verdict = nullptr;

/// One communicator and one length; what rank r puts in at i is value(r, i).
struct Run {
  MPI_Comm comm;
  int rank, ranks, n;
  std::string name;

  static long value(int r, int i) { return (r + 1) * 1000L + i * 7L; }
  /// Also without elements it has an address of its own: MPICH takes two null pointers for one buffer that is given twice.
  static Values buffer() {
    Values out;
    out.reserve(1);
    return out;
  }
  Values mine(int count) const {
    Values out = buffer();
    for (int i = 0; i < count; ++i) out.push_back(value(rank, i));
    return out;
  }
  Values mine() const { return mine(n); }
  Values empty(int blocks = 1) const {
    Values out = buffer();
    out.resize(static_cast<std::size_t>(n) * static_cast<std::size_t>(blocks), -1L);
    return out;
  }
  /// Sum over the ranks of [0, end).
  Values sum(int end) const {
    Values out = empty();
    for (int i = 0; i < n; ++i) {
      long& total = out[static_cast<std::size_t>(i)];
      total = 0;
      for (int r = 0; r < end; ++r) total += value(r, i);
    }
    return out;
  }
  /// The vectors of all ranks in a row.
  Values all() const {
    Values out;
    for (int r = 0; r < ranks; ++r)
      for (int i = 0; i < n; ++i) out.push_back(value(r, i));
    return out;
  }
  void same(const Values& got, const Values& wanted, const char* what) const {
    verdict->expect(got == wanted, std::string(what) + " on " + name + ", " + std::to_string(n));
  }
};

void wait(MPI_Request& request) {
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void broadcast(const Run& run) {
  MPI_Request request;
  for (int root = 0; root < run.ranks; ++root) {
    Values wanted = run.empty();
    for (int i = 0; i < run.n; ++i) wanted[static_cast<std::size_t>(i)] = Run::value(root, i);
    Values got = run.rank == root ? run.mine() : run.empty();
    MPI_Bcast(got.data(), run.n, MPI_LONG, root, run.comm);
    run.same(got, wanted, "bcast");
    got = run.rank == root ? run.mine() : run.empty();
    MPI_Ibcast(got.data(), run.n, MPI_LONG, root, run.comm, &request);
    wait(request);
    run.same(got, wanted, "ibcast");
  }
}

void reduce(const Run& run) {
  const Values in = run.mine();
  MPI_Request request;
  for (int root = 0; root < run.ranks; ++root) {
    Values got = run.empty();
    MPI_Reduce(in.data(), got.data(), run.n, MPI_LONG, MPI_SUM, root, run.comm);
    if (run.rank == root) run.same(got, run.sum(run.ranks), "reduce");
    got = run.empty();
    MPI_Ireduce(in.data(), got.data(), run.n, MPI_LONG, MPI_SUM, root, run.comm, &request);
    wait(request);
    if (run.rank == root) run.same(got, run.sum(run.ranks), "ireduce");
  }
  Values got = run.empty();
  MPI_Allreduce(in.data(), got.data(), run.n, MPI_LONG, MPI_SUM, run.comm);
  run.same(got, run.sum(run.ranks), "allreduce");
  got = in;
  MPI_Allreduce(MPI_IN_PLACE, got.data(), run.n, MPI_LONG, MPI_MAX, run.comm);
  Values largest = run.empty();
  for (int i = 0; i < run.n; ++i)
    largest[static_cast<std::size_t>(i)] = Run::value(run.ranks - 1, i);
  run.same(got, largest, "allreduce in place");
  MPI_Iallreduce(in.data(), got.data(), run.n, MPI_LONG, MPI_SUM, run.comm, &request);
  wait(request);
  run.same(got, run.sum(run.ranks), "iallreduce");
}

void scan(const Run& run) {
  const Values in = run.mine();
  Values got = run.empty();
  MPI_Request request;
  MPI_Scan(in.data(), got.data(), run.n, MPI_LONG, MPI_SUM, run.comm);
  run.same(got, run.sum(run.rank + 1), "scan");
  got = run.empty();
  MPI_Iscan(in.data(), got.data(), run.n, MPI_LONG, MPI_SUM, run.comm, &request);
  wait(request);
  run.same(got, run.sum(run.rank + 1), "iscan");
  got = run.empty();
  MPI_Exscan(in.data(), got.data(), run.n, MPI_LONG, MPI_SUM, run.comm);
  if (run.rank > 0) run.same(got, run.sum(run.rank), "exscan");
}

void reduce_scatter(const Run& run) {
  const Values in = run.mine(run.n * run.ranks);
  Values wanted = run.empty(), got = run.empty();
  for (int i = 0; i < run.n; ++i) {
    long& total = wanted[static_cast<std::size_t>(i)];
    total = 0;
    for (int r = 0; r < run.ranks; ++r) total += Run::value(r, run.rank * run.n + i);
  }
  MPI_Reduce_scatter_block(in.data(), got.data(), run.n, MPI_LONG, MPI_SUM, run.comm);
  run.same(got, wanted, "reduce_scatter_block");
  got = run.empty();
  const std::vector<int> counts(static_cast<std::size_t>(run.ranks), run.n);
  MPI_Reduce_scatter(in.data(), got.data(), counts.data(), MPI_LONG, MPI_SUM, run.comm);
  run.same(got, wanted, "reduce_scatter");
}

void gather(const Run& run) {
  const Values in = run.mine();
  MPI_Request request;
  for (int root = 0; root < run.ranks; ++root) {
    Values got = run.empty(run.ranks);
    MPI_Gather(in.data(), run.n, MPI_LONG, got.data(), run.n, MPI_LONG, root, run.comm);
    if (run.rank == root) run.same(got, run.all(), "gather");
    Values part = run.empty();
    const Values all = run.all();
    MPI_Scatter(all.data(), run.n, MPI_LONG, part.data(), run.n, MPI_LONG, root, run.comm);
    run.same(part, in, "scatter");
    part = run.empty();
    MPI_Iscatter(all.data(), run.n, MPI_LONG, part.data(), run.n, MPI_LONG, root, run.comm,
                 &request);
    wait(request);
    run.same(part, in, "iscatter");
  }
  Values got = run.empty(run.ranks);
  MPI_Allgather(in.data(), run.n, MPI_LONG, got.data(), run.n, MPI_LONG, run.comm);
  run.same(got, run.all(), "allgather");
  got = run.empty(run.ranks);
  MPI_Iallgather(in.data(), run.n, MPI_LONG, got.data(), run.n, MPI_LONG, run.comm, &request);
  wait(request);
  run.same(got, run.all(), "iallgather");
}

/// Blocks of another length from every rank, and holes between them.
void uneven(const Run& run) {
  const auto ranks = static_cast<std::size_t>(run.ranks);
  std::vector<int> counts(ranks), places(ranks);
  int length = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    counts[r] = run.n + static_cast<int>(r);
    places[r] = length;
    length += counts[r] + 1;
  }
  Values wanted(static_cast<std::size_t>(length), -1L);
  for (std::size_t r = 0; r < ranks; ++r)
    for (int i = 0; i < counts[r]; ++i)
      wanted[static_cast<std::size_t>(places[r] + i)] = Run::value(static_cast<int>(r), i);
  const int own = counts[static_cast<std::size_t>(run.rank)];
  const Values in = run.mine(own);
  Values got(wanted.size(), -1L);
  MPI_Allgatherv(in.data(), own, MPI_LONG, got.data(), counts.data(), places.data(), MPI_LONG,
                 run.comm);
  run.same(got, wanted, "allgatherv");
  const int root = run.ranks - 1;
  got.assign(wanted.size(), -1L);
  MPI_Gatherv(in.data(), own, MPI_LONG, got.data(), counts.data(), places.data(), MPI_LONG, root,
              run.comm);
  if (run.rank == root) run.same(got, wanted, "gatherv");
  Values part(static_cast<std::size_t>(own), -1L);
  MPI_Scatterv(wanted.data(), counts.data(), places.data(), MPI_LONG, part.data(), own, MPI_LONG,
               root, run.comm);
  run.same(part, in, "scatterv");
}

void all_to_all(const Run& run) {
  const auto ranks = static_cast<std::size_t>(run.ranks);
  const Values in = run.mine(run.n * run.ranks);
  Values wanted, got = run.empty(run.ranks);
  for (int r = 0; r < run.ranks; ++r)
    for (int i = 0; i < run.n; ++i) wanted.push_back(Run::value(r, run.rank * run.n + i));
  MPI_Alltoall(in.data(), run.n, MPI_LONG, got.data(), run.n, MPI_LONG, run.comm);
  run.same(got, wanted, "alltoall");
  std::vector<int> counts(ranks, run.n), places(ranks), bytes(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    places[r] = static_cast<int>(r) * run.n;
    bytes[r] = places[r] * static_cast<int>(sizeof(long));
  }
  got = run.empty(run.ranks);
  MPI_Alltoallv(in.data(), counts.data(), places.data(), MPI_LONG, got.data(), counts.data(),
                places.data(), MPI_LONG, run.comm);
  run.same(got, wanted, "alltoallv");
  got = run.empty(run.ranks);
  const std::vector<MPI_Datatype> types(ranks, MPI_LONG);
  MPI_Request request;
  MPI_Ialltoallw(in.data(), counts.data(), bytes.data(), types.data(), got.data(), counts.data(),
                 bytes.data(), types.data(), run.comm, &request);
  wait(request);
  run.same(got, wanted, "ialltoallw");
}

/// (a, b) after (c, d) is the map x -> a * (c * x + d) + b: associative, and no other order gives the same.
void compose(void* in, void* inout, int* n, MPI_Datatype*) {
  const long* const first = static_cast<long*>(in);
  long* const second = static_cast<long*>(inout);
  for (int i = 0; i < *n; ++i) {
    const long a = second[2 * i], b = second[2 * i + 1];
    second[2 * i] = a * first[2 * i] % 10007;
    second[2 * i + 1] = (a * first[2 * i + 1] + b) % 10007;
  }
}

void own_operation(const Run& run) {
  MPI_Op op;
  MPI_Datatype pair;
  MPI_Op_create(compose, 0, &op);
  MPI_Type_contiguous(2, MPI_LONG, &pair);
  MPI_Type_commit(&pair);
  Values wanted{1, 0};
  for (int r = 0; r < run.ranks; ++r) {
    wanted[0] = (r + 2) * wanted[0] % 10007;
    wanted[1] = ((r + 2) * wanted[1] + r) % 10007;
  }
  const Values in{run.rank + 2L, run.rank};
  Values got(2);
  MPI_Allreduce(in.data(), got.data(), 1, pair, op, run.comm);
  run.same(got, wanted, "an operation that does not commute");
  MPI_Type_free(&pair);
  MPI_Op_free(&op);
}

/// Each rank of a ring gets the vectors of its two neighbours.
void neighbours(const Run& run) {
  MPI_Comm ring;
  const int periodic = 1;
  MPI_Cart_create(run.comm, 1, &run.ranks, &periodic, 0, &ring);
  const Values in = run.mine();
  Values got = run.empty(2), wanted;
  MPI_Neighbor_allgather(in.data(), run.n, MPI_LONG, got.data(), run.n, MPI_LONG, ring);
  for (const int r : {(run.rank + run.ranks - 1) % run.ranks, (run.rank + 1) % run.ranks})
    for (int i = 0; i < run.n; ++i) wanted.push_back(Run::value(r, i));
  run.same(got, wanted, "neighbor_allgather");
  MPI_Comm_free(&ring);
}

void everything(MPI_Comm comm, const std::string& name, int longest) {
  Run run{comm, 0, 0, 0, name};
  MPI_Comm_rank(comm, &run.rank);
  MPI_Comm_size(comm, &run.ranks);
  for (const int n : {0, 1, 17, longest}) {
    run.n = n;
    for (const auto collective :
         {broadcast, reduce, scan, reduce_scatter, gather, uneven, all_to_all, neighbours})
      collective(run);
    MPI_Barrier(comm);
  }
  own_operation(run);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  uet::mpi::Verdict judge;
  verdict = &judge;
  const int longest = argc > 1 ? std::atoi(argv[1]) : 3000;
  everything(MPI_COMM_WORLD, "the world", longest);
  MPI_Comm half;
  for (const int sign : {1, -1}) {
    MPI_Comm_split(MPI_COMM_WORLD, judge.rank() % 2, sign * judge.rank(), &half);
    everything(half, sign > 0 ? "a half" : "a half backwards", 100);
    MPI_Comm_free(&half);
  }
  everything(MPI_COMM_SELF, "a rank alone", 100);
  return judge.finish();
}
