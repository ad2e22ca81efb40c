/// The honest processes of the hostile tests; any libfabric program would do.
///
///     lure serve [ENEMY ...]            receives and is read from until its standard input closes; calls the enemies all the time
///     lure talk NAME COUNT MS SIZE      sends COUNT numbered messages, one after the other, MS milliseconds apart
///     lure read NAME COUNT SIZE DEPTH   reads COUNT times, DEPTH reads open at a time
///
/// `serve` prints its name in hexadecimal digits, which the others take; at its end what it received. The others print how long
/// the slowest operation took.
#include <poll.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "apps/sim/attack_plan.h"
#include "tests/e2e/node.h"

using namespace uet::e2e;

namespace {

using uet::sim::Lure;

constexpr std::uint64_t kCaps = FI_MSG | FI_TAGGED | FI_RMA;
constexpr std::size_t kMemory = 4 << 20, kRoom = 64 * 1024;
constexpr std::uint64_t kMagic = 0x7ea1'1c0d'e5a1'0a11;

/// How an honest message begins.
struct Header {
  std::uint64_t magic = kMagic;
  std::uint32_t stream = 0, number = 0;
};

Name parse(const char* text) {
  Name out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    unsigned byte = 0;
    if (std::sscanf(text + 2 * i, "%2x", &byte) != 1) fail("no name: " + std::string(text));
    out[i] = static_cast<std::uint8_t>(byte);
  }
  return out;
}

/// One completion, good or bad, within `timeout_ms`.
struct Done {
  bool is_there = false, failed = false;
  void* context = nullptr;
};
Done take(Node& node, int timeout_ms) {
  fi_cq_entry entry;
  const ssize_t n = fi_cq_sread(node.cq, &entry, 1, nullptr, timeout_ms);
  if (n == 1) return {true, false, entry.op_context};
  if (n != -FI_EAVAIL) return {};
  fi_cq_err_entry error{};
  if (fi_cq_readerr(node.cq, &error, 0) != 1) return {};
  return {true, true, error.op_context};
}

class Server {
 public:
  Server() : node_(kCaps), memory_(kMemory, 0x33), receives_(kHonest + kForeign) {
    must(fi_mr_reg(node_.domain, memory_.data(), memory_.size(), FI_REMOTE_READ | FI_REMOTE_WRITE,
                   0, Lure::kKey, 0, &mr_, nullptr),
         "fi_mr_reg");
    for (auto& buffer : receives_) buffer.resize(kRoom);
    for (std::size_t i = 0; i < receives_.size(); ++i) post(i);
    for (const std::uint8_t byte : node_.name()) std::printf("%02x", byte);
    std::printf("\n");
    std::fflush(stdout);
  }

  void call(const char* enemy) {
    const std::string service = std::to_string(Lure::kIndex - 1);
    fi_addr_t peer = FI_ADDR_UNSPEC;
    if (fi_av_insertsvc(node_.av, enemy, service.c_str(), &peer, 0, nullptr) != 1)
      fail("no address: " + std::string(enemy));
    enemies_.push_back(peer);
  }

  void run() {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    double looked = seconds_now();
    for (;;) {
      const Done done = take(node_, 20);
      if (done.is_there) on_done(done);
      const double now = seconds_now();
      if (now - looked < 0.02) continue;
      looked = now;
      call_enemies();
      if (poll(&input, 1, 0) > 0) break;
    }
    std::printf("received %zu duplicates %zu missing %zu foreign %zu\n", honest_, duplicates_,
                missing(), foreign_);
  }

 private:
  static constexpr std::size_t kHonest = 64, kForeign = 16, kCalls = 32;

  void post(std::size_t i) {
    auto& buffer = receives_[i];
    std::memset(buffer.data(), 0, sizeof(Header));
    const auto ret = i < kHonest
                         ? fi_recv(node_.ep, buffer.data(), kRoom, nullptr, FI_ADDR_UNSPEC, &buffer)
                         : fi_trecv(node_.ep, buffer.data(), kRoom, nullptr, FI_ADDR_UNSPEC,
                                    Lure::kTag, 3, &buffer);
    must(static_cast<int>(ret), "fi_recv");
  }
  void on_done(const Done& done) {
    if (done.context == &calls_) {
      --calls_;
      return;
    }
    auto* const buffer = static_cast<std::vector<std::uint8_t>*>(done.context);
    if (buffer == nullptr) return;
    Header header;
    std::memcpy(&header, buffer->data(), sizeof header);
    if (done.failed || header.magic != kMagic) {
      ++foreign_;
    } else {
      ++honest_;
      if (!streams_[header.stream].insert(header.number).second) ++duplicates_;
    }
    post(static_cast<std::size_t>(buffer - receives_.data()));
  }
  /// As an honest program that trusts them would.
  void call_enemies() {
    for (const fi_addr_t enemy : enemies_) {
      if (calls_ >= kCalls) return;
      ++turn_;
      std::uint8_t* const at = memory_.data() + memory_.size() / 2;
      const std::size_t size = turn_ % 5 == 0 ? 100'000 : 1 + turn_ % 3000;
      const ssize_t ret =
          turn_ % 4 == 0   ? fi_read(node_.ep, at, size, nullptr, enemy, 0, Lure::kKey, &calls_)
          : turn_ % 4 == 1 ? fi_write(node_.ep, at, size, nullptr, enemy, 0, Lure::kKey, &calls_)
          : turn_ % 4 == 2 ? fi_tsend(node_.ep, at, size, nullptr, enemy, Lure::kTag, &calls_)
                           : fi_send(node_.ep, at, size, nullptr, enemy, &calls_);
      if (ret == 0) ++calls_;
    }
  }
  std::size_t missing() const {
    std::size_t sum = 0;
    for (const auto& [stream, numbers] : streams_) sum += *numbers.rbegin() + 1 - numbers.size();
    return sum;
  }

  Node node_;
  std::vector<std::uint8_t> memory_;
  fid_mr* mr_ = nullptr;
  std::vector<std::vector<std::uint8_t>> receives_;
  std::map<std::uint32_t, std::set<std::uint32_t>> streams_;
  std::size_t honest_ = 0, duplicates_ = 0, foreign_ = 0;
  std::vector<fi_addr_t> enemies_;
  std::size_t calls_ = 0, turn_ = 0;
};

struct Slowest {
  std::size_t done = 0, failed = 0;
  double seconds = 0;

  void add(double began, bool has_failed) {
    ++done;
    failed += has_failed;
    seconds = std::max(seconds, seconds_now() - began);
  }
  int report(const char* what) const {
    std::printf("%s %zu failed %zu slowest %.3f s\n", what, done, failed, seconds);
    return 0;
  }
};

int talk(const char* name, std::size_t count, int pause_ms, std::size_t size) {
  Node node(kCaps);
  const fi_addr_t peer = node.insert(parse(name));
  std::vector<std::uint8_t> message(std::max(size, sizeof(Header)), 0x5a);
  Header header;
  header.stream = static_cast<std::uint32_t>(getpid());
  Slowest slowest;
  for (; header.number < count; ++header.number) {
    std::memcpy(message.data(), &header, sizeof header);
    const double began = seconds_now();
    ssize_t ret;
    while ((ret = fi_send(node.ep, message.data(), message.size(), nullptr, peer, &header)) ==
           -FI_EAGAIN)
      fi_cq_read(node.cq, nullptr, 0);
    must(static_cast<int>(ret), "fi_send");
    Done done;
    while (!(done = take(node, 1000)).is_there) {
    }
    slowest.add(began, done.failed);
    const double next = seconds_now() + pause_ms / 1000.0;
    while (seconds_now() < next) take(node, std::max(1, pause_ms));
  }
  return slowest.report("talked");
}

int read(const char* name, std::size_t count, std::size_t size, std::size_t depth) {
  Node node(kCaps);
  const fi_addr_t peer = node.insert(parse(name));
  struct Read {
    std::vector<std::uint8_t> bytes;
    double began = 0;
  };
  std::vector<Read> reads(depth);
  std::size_t posted = 0;
  const auto post = [&](Read& r) {
    r.bytes.resize(size);
    r.began = seconds_now();
    ssize_t ret;
    while ((ret = fi_read(node.ep, r.bytes.data(), size, nullptr, peer, 0, Lure::kKey, &r)) ==
           -FI_EAGAIN)
      fi_cq_read(node.cq, nullptr, 0);
    must(static_cast<int>(ret), "fi_read");
    ++posted;
  };
  for (std::size_t i = 0; i < depth && posted < count; ++i) post(reads[i]);
  std::printf("reading\n");
  std::fflush(stdout);
  Slowest slowest;
  while (slowest.done < count) {
    const Done done = take(node, 1000);
    if (!done.is_there) continue;
    Read& r = *static_cast<Read*>(done.context);
    slowest.add(r.began, done.failed);
    if (posted < count) post(r);
  }
  return slowest.report("read");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const auto number = [&](int at) { return std::strtoul(argv[at], nullptr, 10); };
  if (what == "serve") {
    // Peers use its memory until the process has ended.
    auto* const server = new Server;
    for (int i = 2; i < argc; ++i) server->call(argv[i]);
    server->run();
    return 0;
  }
  if (what == "talk" && argc == 6)
    return talk(argv[2], number(3), static_cast<int>(number(4)), number(5));
  if (what == "read" && argc == 6) return read(argv[2], number(3), number(4), number(5));
  std::fprintf(
      stderr,
      "usage: lure serve [ENEMY ...] | talk NAME COUNT MS SIZE | read NAME COUNT SIZE DEPTH\n");
  return 2;
}
