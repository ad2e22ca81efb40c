/// Latency, bandwidth and all-reduce of an MPI between two ranks, for ./bench. Rank 0 prints one JSON object with the rows of
/// `uet-perf fabric --json`.
///
///     mpirun -np 2 mpi_bench RUNS BYTES,BYTES,... [CPU,CPU]
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int kWindow = 16;
constexpr int kTag = 7;
constexpr std::size_t kBytesOfRun = std::size_t{64} << 20;

int rank = 0, runs = 3;
bool is_first_row = true;

int messages_of(std::size_t size, int most) {
  const int n = static_cast<int>(std::min<std::size_t>(kBytesOfRun / size, 1u << 20));
  return std::clamp(n, kWindow, most) / kWindow * kWindow;
}

/// The rules of lib/base/percentile.h, which this program is compiled without.
double median(const std::vector<double>& sorted) {
  return (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
}

void print_tail(const std::vector<double>& sorted, const char* name, std::size_t permille) {
  if (sorted.size() * (1000 - permille) < 1000) return;
  std::printf(",\"%s\":%.4f", name, sorted[(sorted.size() * permille + 999) / 1000 - 1]);
}

/// `each`: the value of each run; `all`: every sample, or nothing.
void print(const char* test, std::size_t size, const char* metric, std::vector<double> each,
           std::vector<double> all = {}) {
  std::sort(each.begin(), each.end());
  std::printf("%s{\"test\":\"%s\",\"size\":%zu,\"%s\":{\"min\":%.4f,\"median\":%.4f,\"max\":%.4f",
              is_first_row ? "" : ",\n", test, size, metric, each.front(), median(each),
              each.back());
  std::sort(all.begin(), all.end());
  print_tail(all, "p90", 900);
  print_tail(all, "p99", 990);
  print_tail(all, "p99.9", 999);
  std::printf("}}");
  is_first_row = false;
}

void latency(std::size_t size) {
  const int count = messages_of(size, 2000);
  std::vector<char> buffer(size, 1);
  const int length = static_cast<int>(size);
  std::vector<double> medians, all;
  for (int run = -1; run < runs; ++run) {
    std::vector<double> half_rtts;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int n = 0; n < count; ++n) {
      const double start = MPI_Wtime();
      if (rank == 0) MPI_Send(buffer.data(), length, MPI_BYTE, 1, kTag, MPI_COMM_WORLD);
      MPI_Recv(buffer.data(), length, MPI_BYTE, 1 - rank, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(buffer.data(), length, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
      half_rtts.push_back((MPI_Wtime() - start) * 1e6 / 2);
    }
    if (run < 0) continue;
    std::sort(half_rtts.begin(), half_rtts.end());
    medians.push_back(median(half_rtts));
    all.insert(all.end(), half_rtts.begin(), half_rtts.end());
  }
  if (rank == 0) print("mpi-latency", size, "half_rtt_us", medians, all);
}

/// One way, kWindow messages at a time, each window answered.
void bandwidth(std::size_t size) {
  const int count = messages_of(size, 10'000);
  std::vector<char> buffer(size * kWindow, 1);
  std::vector<double> rates;
  MPI_Request requests[kWindow];
  for (int run = -1; run < runs; ++run) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int n = 0; n < count; n += kWindow) {
      for (int i = 0; i < kWindow; ++i) {
        char* const at = buffer.data() + static_cast<std::size_t>(i) * size;
        if (rank == 0)
          MPI_Isend(at, static_cast<int>(size), MPI_BYTE, 1, kTag, MPI_COMM_WORLD, &requests[i]);
        else
          MPI_Irecv(at, static_cast<int>(size), MPI_BYTE, 0, kTag, MPI_COMM_WORLD, &requests[i]);
      }
      MPI_Waitall(kWindow, requests, MPI_STATUSES_IGNORE);
    }
    char answer = 0;
    if (rank == 0)
      MPI_Recv(&answer, 1, MPI_BYTE, 1, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Send(&answer, 1, MPI_BYTE, 0, kTag, MPI_COMM_WORLD);
    if (run >= 0) rates.push_back(static_cast<double>(size) * count * 8e-9 / (MPI_Wtime() - start));
  }
  if (rank == 0) print("mpi-bandwidth", size, "gbit_per_s", rates);
}

void all_reduce(std::size_t size) {
  const int count = messages_of(size, 1000);
  const std::size_t floats = std::max<std::size_t>(size / sizeof(float), 1);
  std::vector<float> in(floats), out(floats);
  for (std::size_t i = 0; i < floats; ++i) in[i] = static_cast<float>(i % 1000 + 1);
  std::vector<double> times;
  for (int run = -1; run < runs; ++run) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int n = 0; n < count; ++n)
      MPI_Allreduce(in.data(), out.data(), static_cast<int>(floats), MPI_FLOAT, MPI_SUM,
                    MPI_COMM_WORLD);
    if (run >= 0) times.push_back((MPI_Wtime() - start) * 1e6 / count);
  }
  for (std::size_t i = 0; i < floats; ++i)
    if (out[i] != 2 * in[i]) {
      std::fprintf(stderr, "mpi_bench: wrong sum at element %zu of %zu\n", i, floats);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  if (rank == 0) print("mpi-allreduce", size, "time_us", times);
}

/// Before the MPI starts threads of its own.
void pin(const std::string& cpus) {
  const char* const local = std::getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  const auto comma = cpus.find(',');
  if (local == nullptr || comma == std::string::npos) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(std::atoi(std::atoi(local) == 0 ? cpus.c_str() : cpus.c_str() + comma + 1), &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  if (argc > 3) pin(argv[3]);
  MPI_Init(&argc, &argv);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  runs = std::max(std::atoi(argv[1]), 1);
  if (ranks != 2) MPI_Abort(MPI_COMM_WORLD, 2);
  if (rank == 0) std::printf("{\"complete\":true,\"results\":[");
  for (char* at = argv[2]; *at != 0;) {
    const std::size_t size = std::max(std::strtoul(at, &at, 10), 1ul);
    latency(size);
    bandwidth(size);
    if (size >= sizeof(float)) all_reduce(size);
    if (*at == ',')
      ++at;
    else
      break;
  }
  if (rank == 0) std::printf("]}\n");
  MPI_Finalize();
}
