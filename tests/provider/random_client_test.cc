/// Several threads that use libfabric in any order: open, close, post, cancel, read, wait, set and get. Objects are closed only while
/// no other thread is in a call with them, as the interface demands; all else happens at once.
///
/// A failure prints its seed; UET_TEST_SEED=<seed> runs that one.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <span>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

using Clock = std::chrono::steady_clock;
using Rng = std::mt19937_64;

constexpr std::size_t kLargest = 20'000;
/// A thread that does not come back from a call for so long is stuck; the longest wait is 3 ms.
constexpr auto kStuck = std::chrono::seconds(60);

/// An operation and its memory, which every byte of a message has the same value in.
struct Operation {
  std::vector<std::uint8_t> bytes;
  bool is_receive = false;
};

/// All that belongs to one endpoint. A call with its objects holds `in_use` shared, opening and closing hold it alone.
class Place {
 public:
  explicit Place(int address) : address_(address_of(address)) {}

  void open(fi_progress progress) {
    const std::unique_lock alone(in_use_);
    if (side_.ep != nullptr) return;
    const Info hints = make_hints();
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->data_progress = progress;
    side_.cq_attr = {};
    side_.open(address_, *hints);
    if (::testing::Test::HasFatalFailure()) return;
    fi_cntr_attr cntr{};
    ASSERT_EQ(fi_cntr_open(side_.domain, &cntr, &received_, nullptr), 0);
    side_.open_endpoint();
    ASSERT_EQ(fi_mr_reg(side_.domain, memory_.data(), memory_.size(),
                        FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 0, 0, &mr_, nullptr),
              0);
    ASSERT_EQ(fi_mr_bind(mr_, &received_->fid, FI_REMOTE_WRITE), 0);
  }
  void close() {
    const std::unique_lock alone(in_use_);
    if (side_.ep == nullptr) return;
    EXPECT_EQ(fi_close(&std::exchange(mr_, nullptr)->fid), 0);
    EXPECT_EQ(fi_close(&std::exchange(side_.ep, nullptr)->fid), 0);
    EXPECT_EQ(fi_close(&std::exchange(received_, nullptr)->fid), 0);
    side_.close();
    side_.name.clear();
    outstanding_.clear();
  }

  /// One call of any kind, towards `other`.
  void call(Rng& rng, Place& other) {
    // In one order for all threads, and never waiting with one held.
    const std::shared_lock own(in_use_, std::try_to_lock);
    if (!own || side_.ep == nullptr) return;
    switch (rng() % 16) {
      case 0:
      case 1:
      case 2:
        return send(rng, other);
      case 3:
      case 4:
      case 5:
        return receive(rng);
      case 6:
        return remote(rng, other);
      case 7:
        return cancel();
      case 8:
        return wait(rng);
      case 9: {
        const int ret = fi_cntr_wait(received_, fi_cntr_read(received_) + 1, rng() % 3);
        EXPECT_TRUE(ret == 0 || ret == -FI_ETIMEDOUT) << ret;
        return;
      }
      case 10:
        EXPECT_EQ(rng() % 2 == 0 ? fi_cntr_add(received_, 1) : fi_cq_signal(side_.cq), 0);
        return;
      case 11:
        return options(rng);
      default:
        return read();
    }
  }

 private:
  /// The address of `other` in our vector; nothing while it is closed or busy opening.
  std::optional<fi_addr_t> find(Place& other) {
    std::vector<std::uint8_t> name = side_.name;
    if (&other != this) {
      const std::shared_lock theirs(other.in_use_, std::try_to_lock);
      if (!theirs || other.side_.ep == nullptr) return std::nullopt;
      name = other.side_.name;
    }
    fi_addr_t out = FI_ADDR_UNSPEC;
    EXPECT_EQ(fi_av_insert(side_.av, name.data(), 1, &out, 0, nullptr), 1);
    return out;
  }
  void forget(fi_addr_t peer) { EXPECT_EQ(fi_av_remove(side_.av, &peer, 1, 0), 0); }

  Operation* add(std::size_t bytes, std::uint8_t value, bool is_receive) {
    auto op = std::make_unique<Operation>();
    op->bytes.assign(bytes, value);
    op->is_receive = is_receive;
    Operation* const out = op.get();
    const std::lock_guard guard(mutex_);
    outstanding_.emplace(out, std::move(op));
    return out;
  }
  std::unique_ptr<Operation> take(void* context) {
    const std::lock_guard guard(mutex_);
    const auto node = outstanding_.extract(static_cast<Operation*>(context));
    EXPECT_FALSE(node.empty()) << "a completion of nothing, or a second one";
    return node.empty() ? nullptr : std::move(node.mapped());
  }
  /// What `ret` means for an operation that was to be posted.
  void posted(ssize_t ret, Operation* op) {
    if (ret == 0) return;
    EXPECT_TRUE(ret == -FI_EAGAIN) << ret;
    take(op);
  }

  void send(Rng& rng, Place& other) {
    const auto peer = find(other);
    if (!peer) return;
    const std::size_t bytes = rng() % 4 == 0 ? rng() % kLargest : rng() % 64;
    const auto value = static_cast<std::uint8_t>(rng());
    const std::uint64_t tag = rng() % 3;
    if (bytes < 64 && rng() % 2 == 0) {
      const std::vector<std::uint8_t> message(bytes, value);
      const ssize_t ret = fi_tinject(side_.ep, message.data(), bytes, *peer, tag);
      EXPECT_TRUE(ret == 0 || ret == -FI_EAGAIN) << ret;
    } else {
      Operation* const op = add(bytes, value, false);
      posted(fi_tsend(side_.ep, op->bytes.data(), bytes, nullptr, *peer, tag, op), op);
    }
    forget(*peer);
  }
  void receive(Rng& rng) {
    Operation* const op = add(kLargest, 0, true);
    posted(
        fi_trecv(side_.ep, op->bytes.data(), kLargest, nullptr, FI_ADDR_UNSPEC, rng() % 3, 0, op),
        op);
    if (rng() % 4 == 0) last_receive_ = op;
  }
  /// The region may be gone when the request arrives.
  void remote(Rng& rng, Place& other) {
    const auto peer = find(other);
    if (!peer) return;
    std::uint64_t key = 0;
    {
      const std::shared_lock theirs(other.in_use_, std::try_to_lock);
      if (theirs && other.mr_ != nullptr) key = fi_mr_key(other.mr_);
    }
    Operation* const op = add(rng() % kLargest, 1, false);
    const auto at = reinterpret_cast<std::uint64_t>(other.memory_.data());
    void* const data = op->bytes.data();
    posted(rng() % 2 == 0 ? fi_write(side_.ep, data, op->bytes.size(), nullptr, *peer, at, key, op)
                          : fi_read(side_.ep, data, op->bytes.size(), nullptr, *peer, at, key, op),
           op);
    forget(*peer);
  }
  void cancel() {
    const ssize_t ret = fi_cancel(&side_.ep->fid, last_receive_);
    EXPECT_TRUE(ret == 0 || ret == -FI_ENOENT) << ret;
  }
  void wait(Rng& rng) {
    fi_cq_tagged_entry entry;
    const ssize_t n = fi_cq_sread(side_.cq, &entry, 1, nullptr, static_cast<int>(rng() % 4));
    if (n == 1) finished(entry);
    if (n == -FI_EAVAIL) read();
  }
  void read() {
    fi_cq_tagged_entry entries[4];
    const ssize_t n = fi_cq_read(side_.cq, entries, 4);
    for (ssize_t i = 0; i < n; ++i) finished(entries[i]);
    if (n != -FI_EAVAIL) return;
    fi_cq_err_entry error{};
    if (fi_cq_readerr(side_.cq, &error, 0) == 1 && error.op_context != nullptr) {
      take(error.op_context);
    }
  }
  void finished(const fi_cq_tagged_entry& entry) {
    const auto op = take(entry.op_context);
    if (op == nullptr || !op->is_receive || entry.len == 0) return;
    const auto message = std::span(op->bytes).first(entry.len);
    EXPECT_TRUE(std::ranges::all_of(message, [&](auto b) { return b == message[0]; }))
        << "not the bytes of one message";
  }
  void options(Rng& rng) {
    std::uint64_t flags = FI_TRANSMIT;
    EXPECT_EQ(fi_control(&side_.ep->fid, FI_GETOPSFLAG, &flags), 0);
    flags = FI_TRANSMIT | (rng() % 2 == 0 ? FI_DELIVERY_COMPLETE : FI_TRANSMIT_COMPLETE);
    EXPECT_EQ(fi_control(&side_.ep->fid, FI_SETOPSFLAG, &flags), 0);
    std::size_t least = 64, length = sizeof least;
    EXPECT_EQ(fi_setopt(&side_.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, length), 0);
    EXPECT_EQ(fi_getopt(&side_.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &length),
              0);
  }

  const std::string address_;
  std::shared_mutex in_use_;
  Side side_;
  fid_cntr* received_ = nullptr;
  fid_mr* mr_ = nullptr;
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(kLargest);
  std::atomic<Operation*> last_receive_{nullptr};
  std::mutex mutex_;  ///< of what follows
  std::unordered_map<Operation*, std::unique_ptr<Operation>> outstanding_;
};

/// Two places share an address, and with that a port and a loop.
class Client {
 public:
  Client(std::uint64_t seed, fi_progress progress) : seed_(seed), progress_(progress) {
    for (const int address : {2, 2, 3, 4}) places_.push_back(std::make_unique<Place>(address));
  }
  void run(int threads, Clock::duration time) {
    const auto end = Clock::now() + time;
    std::vector<std::thread> all;
    std::vector<std::atomic<std::uint64_t>> calls(static_cast<std::size_t>(threads));
    std::atomic<int> running{threads};
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([&, t] {
        Rng rng(seed_ * 1000 + static_cast<std::uint64_t>(t));
        while (Clock::now() < end && !::testing::Test::HasFailure()) {
          step(rng);
          ++calls[static_cast<std::size_t>(t)];
        }
        --running;
      });
    }
    watch(calls, running);
    for (std::thread& thread : all) thread.join();
    for (const auto& place : places_) place->close();
    std::uint64_t sum = 0;
    for (const auto& n : calls) sum += n;
    EXPECT_GT(sum, 100u);
  }

 private:
  void step(Rng& rng) {
    Place& place = *places_[rng() % places_.size()];
    const auto what = rng() % 2000;
    if (what == 0) return place.close();
    if (what < 60) return place.open(progress_);
    place.call(rng, *places_[rng() % places_.size()]);
  }
  void watch(const std::vector<std::atomic<std::uint64_t>>& calls,
             const std::atomic<int>& running) {
    std::vector<std::uint64_t> seen(calls.size());
    auto changed = Clock::now();
    while (running > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      bool all_went_on = true;
      for (std::size_t i = 0; i < seen.size(); ++i) all_went_on &= calls[i] != seen[i];
      if (all_went_on) changed = Clock::now();
      if (all_went_on) seen.assign(calls.begin(), calls.end());
      if (Clock::now() - changed < kStuck) continue;
      std::fprintf(stderr, "seed %llu: a thread is stuck\n",
                   static_cast<unsigned long long>(seed_));
      std::abort();
    }
  }
  const std::uint64_t seed_;
  const fi_progress progress_;
  std::vector<std::unique_ptr<Place>> places_;
};

class RandomClientTest : public PairTest {
 protected:
  static void run(fi_progress progress, std::uint64_t first_seed) {
    const char* const depth = std::getenv("UET_TEST_DEPTH");
    const bool is_long = depth != nullptr && std::string_view(depth) == "long";
    const char* const one = std::getenv("UET_TEST_SEED");
    const std::uint64_t seed = one != nullptr ? std::strtoull(one, nullptr, 0) : first_seed;
    const auto time = std::chrono::seconds(is_long ? 120 : 3);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Client(seed, progress).run(4, time);
  }
};

TEST_F(RandomClientTest, four_threads__watchdog) {
  run(FI_PROGRESS_MANUAL, 11);
}
TEST_F(RandomClientTest, four_threads__automatic_progress) {
  run(FI_PROGRESS_AUTO, 12);
}
TEST_F(RandomClientTest, four_threads__no_thread_of_ours) {
  const Variable manual("FI_UET_PROGRESS", "manual");
  run(FI_PROGRESS_MANUAL, 13);
}
TEST_F(RandomClientTest, four_threads__bad_network) {
  const Variable network("FI_UET_IMPAIR", "loss=0.02,reorder=0.05,duplicate=0.02,seed=5");
  run(FI_PROGRESS_MANUAL, 14);
}

}  // namespace
}  // namespace uet::provider::testing
