/// A libfabric program in the manner of MPI: ranks that exchange tagged messages for a while, check every byte's place,
/// and say what arrived when. Knows nothing of the fabric below.
///
///   traffic FOLDER RANK RANKS exchange|incast|ring SECONDS BYTES WINDOW
///
/// exchange: all send to all; incast: all send to rank 0; ring: each sends to the next. Addresses and the end are told by files in
/// FOLDER. Prints one JSON object; exit status 0 only when every message arrived and no operation failed.
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/libfabric_endpoint.h"

namespace {

namespace libfabric = uet::libfabric;

using Clock = std::chrono::steady_clock;
constexpr double kInterval = 0.5;   // seconds of one step of the timeline
constexpr double kEndTimeout = 60;  // for the last messages, and for all ranks to be done
constexpr std::uint64_t kTagLast = 1u << 16;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Settings {
  std::string folder;
  unsigned rank, ranks;
  std::string pattern;
  double seconds;
  std::size_t bytes;
  unsigned window;
};

/// One buffer in flight; libfabric keeps a pointer to it.
struct Slot {
  fi_context2 context;  // must be first
  enum Kind { kSend, kReceive, kLastSend, kLastReceive } kind;
  unsigned peer;
  std::vector<std::uint64_t> words;
};

struct Peer {
  fi_addr_t address = FI_ADDR_UNSPEC;
  std::uint64_t sent = 0, send_done = 0, received = 0, received_bytes = 0;
  std::uint64_t announced = UINT64_MAX;  ///< how many it sent in all
  bool sends_to_us = false, we_send = false, said_last = false, last_done = true;
};

class Rank {
 public:
  explicit Rank(const Settings& settings)
      : s_(settings),
        info_(find()),
        peers_(settings.ranks),
        objects_(*info_, {.cq_format = FI_CQ_FORMAT_TAGGED, .cq_size = 4096}) {}

  int run() {
    exchange_addresses();
    for (unsigned p = 0; p < s_.ranks; ++p) {
      if (p == s_.rank) continue;
      peers_[p].we_send = sends(s_.rank, p);
      peers_[p].sends_to_us = sends(p, s_.rank);
    }
    for (unsigned p = 0; p < s_.ranks; ++p) post_first_receives(p);
    start_ = Clock::now();
    transfer();
    print(finish());
    return failed_ == 0 && is_whole() ? 0 : 1;
  }

 private:
  static libfabric::Info find() {
    const libfabric::Info hints = libfabric::make_hints();
    hints->caps = FI_TAGGED;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = 0;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    libfabric::Offer offer = libfabric::get_info(FI_VERSION(1, 17), *hints);
    libfabric::check(offer.error, "fi_getinfo");
    return std::move(offer.info);
  }

  bool sends(unsigned from, unsigned to) const {
    if (s_.pattern == "incast") return to == 0;
    if (s_.pattern == "ring") return to == (from + 1) % s_.ranks;
    return true;
  }

  std::string file(unsigned rank, const char* kind) const {
    return s_.folder + "/" + std::to_string(rank) + kind;
  }

  void publish(const char* kind, const std::string& text) {
    const std::string temporary = file(s_.rank, ".new");
    std::ofstream(temporary, std::ios::binary) << text;
    std::filesystem::rename(temporary, file(s_.rank, kind));
  }

  /// Turns the provider until every rank has published; false when that takes too long.
  bool wait_for_all(const char* kind) {
    const auto begin = Clock::now();
    for (unsigned r = 0; r < s_.ranks;) {
      if (std::filesystem::exists(file(r, kind))) {
        ++r;
      } else if (seconds_since(begin) > kEndTimeout) {
        return false;
      } else {
        poll();
        usleep(1000);
      }
    }
    return true;
  }

  void exchange_addresses() {
    const std::vector<std::uint8_t> name = objects_.name();
    publish(".address", std::string(name.begin(), name.end()));
    if (!wait_for_all(".address")) libfabric::fail("not all ranks came", -FI_ETIMEDOUT);
    for (unsigned r = 0; r < s_.ranks; ++r) {
      std::ifstream in(file(r, ".address"), std::ios::binary);
      std::string other((std::istreambuf_iterator<char>(in)), {});
      if (fi_av_insert(objects_.av.get(), other.data(), 1, &peers_[r].address, 0, nullptr) != 1)
        libfabric::fail("fi_av_insert", -FI_EINVAL);
    }
  }

  Slot* new_slot(Slot::Kind kind, unsigned peer, std::size_t bytes) {
    slots_.push_back(std::make_unique<Slot>());
    Slot* slot = slots_.back().get();
    slot->kind = kind;
    slot->peer = peer;
    slot->words.resize(std::max<std::size_t>(1, bytes / 8));
    return slot;
  }

  void post_first_receives(unsigned p) {
    if (!peers_[p].sends_to_us) return;
    for (unsigned i = 0; i < s_.window; ++i) receive(new_slot(Slot::kReceive, p, s_.bytes));
    receive(new_slot(Slot::kLastReceive, p, 8));
  }

  template <typename Post>
  void post(Post&& post_one) {
    for (;;) {
      const ssize_t rc = post_one();
      if (rc == 0) return;
      if (rc != -FI_EAGAIN) libfabric::fail("posting", rc);
      poll();
    }
  }

  void receive(Slot* slot) {
    const std::uint64_t tag = slot->peer | (slot->kind == Slot::kLastReceive ? kTagLast : 0);
    post([&] {
      return fi_trecv(objects_.ep.get(), slot->words.data(), slot->words.size() * 8, nullptr,
                      FI_ADDR_UNSPEC, tag, 0, &slot->context);
    });
  }

  void send(Slot* slot) {
    Peer& peer = peers_[slot->peer];
    const bool is_last = slot->kind == Slot::kLastSend;
    const std::uint64_t first = is_last ? peer.sent : peer.sent++ << 8 | s_.rank;
    for (std::size_t i = 0; i < slot->words.size(); ++i) slot->words[i] = first + i;
    post([&] {
      return fi_tsend(objects_.ep.get(), slot->words.data(), slot->words.size() * 8, nullptr,
                      peer.address, s_.rank | (is_last ? kTagLast : 0), &slot->context);
    });
  }

  void poll() {
    fi_cq_tagged_entry entries[16];
    const ssize_t n = fi_cq_read(objects_.cq.get(), entries, 16);
    if (n == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      if (fi_cq_readerr(objects_.cq.get(), &error, 0) == 1) {
        ++failed_;
        std::fprintf(stderr, "traffic: operation failed: %s\n", fi_strerror(error.err));
      }
      return;
    }
    if (n == -FI_EAGAIN || n == 0) {
      // Ranks share cores.
      sched_yield();
      return;
    }
    if (n < 0) libfabric::fail("fi_cq_read", n);
    for (ssize_t i = 0; i < n; ++i)
      complete(static_cast<Slot*>(entries[i].op_context), entries[i].len);
  }

  void complete(Slot* slot, std::size_t bytes) {
    Peer& peer = peers_[slot->peer];
    switch (slot->kind) {
      case Slot::kSend:
        ++peer.send_done;
        idle_.push_back(slot);
        return;
      case Slot::kLastSend:
        peer.last_done = true;
        return;
      case Slot::kLastReceive:
        peer.announced = slot->words[0];
        return;
      case Slot::kReceive:
        break;
    }
    const std::uint64_t first = slot->words[0];
    bool is_right = bytes == s_.bytes && (first & 0xff) == slot->peer % 256;
    for (std::size_t i = 0; i < slot->words.size(); ++i)
      is_right = is_right && slot->words[i] == first + i;
    wrong_ += !is_right;
    ++peer.received;
    peer.received_bytes += bytes;
    const auto step = static_cast<std::size_t>(seconds_since(start_) / kInterval);
    if (timeline_.size() <= step) timeline_.resize(step + 1);
    timeline_[step] += bytes;
    receive(slot);
  }

  void transfer() {
    for (unsigned p = 0; p < s_.ranks; ++p)
      for (unsigned i = 0; peers_[p].we_send && i < s_.window; ++i)
        idle_.push_back(new_slot(Slot::kSend, p, s_.bytes));
    while (seconds_since(start_) < s_.seconds && failed_ == 0) {
      while (!idle_.empty()) {
        Slot* slot = idle_.back();
        idle_.pop_back();
        send(slot);
      }
      poll();
    }
  }

  bool is_whole() const {
    for (const Peer& p : peers_) {
      if (p.we_send && (p.send_done != p.sent || !p.last_done)) return false;
      if (p.sends_to_us && p.received != p.announced) return false;
    }
    return wrong_ == 0;
  }

  /// The last messages; then all ranks stay until all are done, so that none waits for an answer.
  bool finish() {
    ended_ = seconds_since(start_);
    const auto begin = Clock::now();
    for (unsigned p = 0; p < s_.ranks; ++p) {
      if (!peers_[p].we_send) continue;
      peers_[p].last_done = false;
      send(new_slot(Slot::kLastSend, p, 8));
    }
    while (!is_whole() && failed_ == 0 && seconds_since(begin) < kEndTimeout) poll();
    publish(".done", "");
    return wait_for_all(".done");
  }

  void print(bool all_done) {
    std::printf(
        "{\"rank\":%u,\"seconds\":%.3f,\"failed\":%llu,\"wrong\":%llu,\"whole\":%s,\"all_done\":%s,"
        "\"received\":[",
        s_.rank, ended_, static_cast<unsigned long long>(failed_),
        static_cast<unsigned long long>(wrong_), is_whole() ? "true" : "false",
        all_done ? "true" : "false");
    for (unsigned p = 0; p < s_.ranks; ++p)
      std::printf("%s%llu", p == 0 ? "" : ",",
                  static_cast<unsigned long long>(peers_[p].received_bytes));
    std::printf("],\"interval\":%.1f,\"timeline\":[", kInterval);
    for (std::size_t i = 0; i < timeline_.size(); ++i)
      std::printf("%s%llu", i == 0 ? "" : ",", static_cast<unsigned long long>(timeline_[i]));
    std::printf("]}\n");
  }

  const Settings s_;
  libfabric::Info info_;
  std::vector<Peer> peers_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> idle_;
  libfabric::Endpoint objects_;  // behind what it works on
  std::vector<std::uint64_t> timeline_;
  Clock::time_point start_ = Clock::now();
  double ended_ = 0;
  std::uint64_t failed_ = 0, wrong_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string pattern = argc == 8 ? argv[4] : "";
  if (pattern != "exchange" && pattern != "incast" && pattern != "ring") {
    std::fprintf(stderr, "traffic FOLDER RANK RANKS exchange|incast|ring SECONDS BYTES WINDOW\n");
    return 2;
  }
  const auto number = [&](int i) {
    return static_cast<unsigned>(std::strtoul(argv[i], nullptr, 10));
  };
  try {
    Rank rank({.folder = argv[1],
               .rank = number(2),
               .ranks = number(3),
               .pattern = pattern,
               .seconds = std::strtod(argv[5], nullptr),
               .bytes = std::max(8u, number(6)) / 8 * 8,
               .window = std::max(1u, number(7))});
    return rank.run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "traffic: %s\n", e.what());
    return 1;
  }
}
