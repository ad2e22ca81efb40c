// A rank that computes for seconds and calls no function of MPI, while all others send to it, wait for what it sent them before,
// and go on among themselves: it is not taken for dead, and nothing that was sent is lost.
//
//   computing [SECONDS]

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "bytes.h"
#include "verdict.h"

namespace {

constexpr int kBusy = 0;  // the rank that computes
constexpr std::array<std::size_t, 5> kSizes{0, 8, 4096, 65'536, 2 << 20};
using uet::mpi::Bytes, uet::mpi::bytes_of;

/// One message of each size to or from a rank.
class Messages {
 public:
  void send_to(int peer, int self) {
    for (const std::size_t size : kSizes) {
      bytes_.push_back(bytes_of(self, size));
      MPI_Isend(bytes_.back().data(), static_cast<int>(size), MPI_CHAR, peer, 1, MPI_COMM_WORLD,
                &requests_.emplace_back());
    }
  }
  void receive_from(int peer) {
    for (const std::size_t size : kSizes) {
      bytes_.emplace_back(size);
      MPI_Irecv(bytes_.back().data(), static_cast<int>(size), MPI_CHAR, peer, 1, MPI_COMM_WORLD,
                &requests_.emplace_back());
    }
  }
  void wait() {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }
  /// Of the messages that were received, how many are not what `peer` sent.
  int wrong_of(int peer) const {
    int wrong = 0;
    for (std::size_t i = 0; i < kSizes.size(); ++i) wrong += bytes_[i] != bytes_of(peer, kSizes[i]);
    return wrong;
  }

 private:
  std::vector<Bytes> bytes_;
  std::vector<MPI_Request> requests_;
};

double compute(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  double x = 1;
  while (std::chrono::steady_clock::now() < end)
    for (int i = 0; i < 100'000; ++i) x = x * 0.999 + 1 / x;
  return x;
}

/// The last thing it does before is to send to all.
void busy_rank(uet::mpi::Verdict& verdict, double seconds) {
  std::vector<Messages> out(static_cast<std::size_t>(verdict.ranks())), in(out.size());
  for (int peer = 1; peer < verdict.ranks(); ++peer)
    out[static_cast<std::size_t>(peer)].send_to(peer, kBusy);
  verdict.expect(compute(seconds) > 0, "a computation");
  for (int peer = 1; peer < verdict.ranks(); ++peer) {
    Messages& messages = in[static_cast<std::size_t>(peer)];
    messages.receive_from(peer);
    messages.wait();
    verdict.expect(messages.wrong_of(peer) == 0, "messages of rank " + std::to_string(peer));
    out[static_cast<std::size_t>(peer)].wait();
  }
}

/// All the time until everything has come from the busy rank and gone to it, the others pass sums around.
void other_rank(uet::mpi::Verdict& verdict, MPI_Comm others) {
  Messages out, in;
  out.send_to(kBusy, verdict.rank());
  in.receive_from(kBusy);
  for (int round = 0; round < 1000; ++round) {
    int sum = 0;
    MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, others);
    verdict.expect(sum == round * (verdict.ranks() - 1), "a sum of the others");
  }
  in.wait();
  verdict.expect(in.wrong_of(kBusy) == 0, "messages of the rank that computed");
  out.wait();
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  uet::mpi::Verdict verdict;
  MPI_Comm others;
  MPI_Comm_split(MPI_COMM_WORLD, verdict.rank() == kBusy ? 0 : 1, verdict.rank(), &others);
  if (verdict.rank() == kBusy)
    busy_rank(verdict, argc > 1 ? std::atof(argv[1]) : 12);
  else
    other_rank(verdict, others);
  MPI_Comm_free(&others);
  MPI_Barrier(MPI_COMM_WORLD);
  return verdict.finish();
}
