/// What a test program of MPI says: every comparison that fails is counted, the first few are told, and the last line of each
/// rank is "rank R of N: W wrong".
#pragma once

#include <mpi.h>

#include <cstdio>
#include <string>

namespace uet::mpi {

class Verdict {
 public:
  Verdict() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }

  void expect(bool is_right, const std::string& what) {
    if (is_right) return;
    if (++wrong_ <= 5) std::fprintf(stderr, "rank %d: wrong: %s\n", rank_, what.c_str());
  }

  /// The exit status of main(), which calls MPI_Finalize() in between.
  int finish() const {
    std::printf("rank %d of %d: %ld wrong\n", rank_, ranks_, wrong_);
    std::fflush(stdout);
    MPI_Finalize();
    return wrong_ == 0 ? 0 : 1;
  }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

 private:
  int rank_ = 0, ranks_ = 0;
  long wrong_ = 0;
};

}  // namespace uet::mpi
