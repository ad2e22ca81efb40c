/// The tests of `uet-perf fabric`.

#include <algorithm>
#include <chrono>

#include "apps/perf/lap.h"

namespace uet::perf {
namespace {

constexpr std::uint64_t kTag = 7;

class WriteLap : public Lap {
 public:
  using Lap::Lap;

 protected:
  void prepare(bool is_client) override {
    for (std::uint64_t s = 0; s < slots_used(); ++s)
      is_client ? fill(outgoing(s), s) : fill_wrong(incoming(s), s);
  }
  void drive(LapResult&) override {
    const std::uint64_t target = fabric_.remote_address() + plan_.window * plan_.size;
    for (std::uint64_t n = 0; n < plan_.count; ++n) {
      const std::uint64_t slot = n % plan_.window;
      while (n - finished_ >= plan_.window) finished_ += fabric_.poll();
      fabric_.post([&] { return transfer(slot, target + slot * plan_.size); }, finished_);
    }
    fabric_.wait_for(finished_, plan_.count);
  }
  /// Some providers report a write before the target has it: the last byte of every slot decides.
  void attend() override {
    await_mark("sent");
    fabric_.set_waiting_for("the last bytes of a write that the provider reported as finished");
    for (std::uint64_t s = 0; s < slots_used(); ++s)
      while (!has_last_byte(incoming(s), s)) fabric_.poll();
  }
  void verify(bool is_client) override {
    for (std::uint64_t s = 0; s < slots_used() && !is_client; ++s) check(incoming(s), s, "written");
  }
  virtual ssize_t transfer(std::uint64_t slot, std::uint64_t to) {
    return fi_write(fabric_.ep(), outgoing(slot), plan_.size, fabric_.descriptor(), fabric_.peer(),
                    to, fabric_.remote_key(), nullptr);
  }
};

class ReadLap final : public WriteLap {
 public:
  using WriteLap::WriteLap;

 protected:
  void prepare(bool is_client) override {
    for (std::uint64_t s = 0; s < slots_used(); ++s)
      is_client ? fill_wrong(outgoing(s), s) : fill(incoming(s), s);
  }
  void attend() override { await_mark("sent"); }
  void verify(bool is_client) override {
    for (std::uint64_t s = 0; s < slots_used() && is_client; ++s) check(outgoing(s), s, "read");
  }
  ssize_t transfer(std::uint64_t slot, std::uint64_t from) override {
    return fi_read(fabric_.ep(), outgoing(slot), plan_.size, fabric_.descriptor(), fabric_.peer(),
                   from, fabric_.remote_key(), nullptr);
  }
};

/// Posting of messages, tagged or not. Messages may overtake each other, so that all slots hold the same.
class MessageLap : public Lap {
 public:
  using Lap::Lap;

 protected:
  void post_receive(std::uint64_t slot) {
    fabric_.post(
        [&] {
          return is_tagged() ? fi_trecv(fabric_.ep(), incoming(slot), plan_.size,
                                        fabric_.descriptor(), FI_ADDR_UNSPEC, kTag, 0, nullptr)
                             : fi_recv(fabric_.ep(), incoming(slot), plan_.size,
                                       fabric_.descriptor(), FI_ADDR_UNSPEC, nullptr);
        },
        finished_);
  }
  void post_send(std::uint64_t slot) {
    fabric_.post(
        [&] {
          return is_tagged() ? fi_tsend(fabric_.ep(), outgoing(slot), plan_.size,
                                        fabric_.descriptor(), fabric_.peer(), kTag, nullptr)
                             : fi_send(fabric_.ep(), outgoing(slot), plan_.size,
                                       fabric_.descriptor(), fabric_.peer(), nullptr);
        },
        finished_);
  }

 private:
  bool is_tagged() const { return plan_.test != "send"; }
};

/// One direction, many messages; the receiver keeps `window` receives posted.
class StreamLap final : public MessageLap {
 public:
  using MessageLap::MessageLap;

 protected:
  void prepare(bool is_client) override {
    for (std::uint64_t s = 0; s < slots_used(); ++s)
      is_client ? fill(outgoing(s), 0) : fill_wrong(incoming(s), 0);
    for (std::uint64_t s = 0; s < slots_used() && !is_client; ++s) post_receive(s);
  }
  void drive(LapResult&) override {
    for (std::uint64_t n = 0; n < plan_.count; ++n) {
      while (n - finished_ >= plan_.window) finished_ += fabric_.poll();
      post_send(n % plan_.window);
    }
    fabric_.wait_for(finished_, plan_.count);
  }
  void attend() override {
    for (std::uint64_t posted = slots_used(); finished_ < plan_.count;) {
      finished_ += fabric_.poll();
      for (; posted < std::min(plan_.count, finished_ + plan_.window); ++posted)
        post_receive(posted % plan_.window);
    }
    await_mark("sent");
  }
  void verify(bool is_client) override {
    for (std::uint64_t s = 0; s < slots_used() && !is_client; ++s) check(incoming(s), 0, "sent");
  }
};

class PingPongLap final : public MessageLap {
 public:
  using MessageLap::MessageLap;

 protected:
  void prepare(bool) override {
    fill(outgoing(0), 0);
    fill_wrong(incoming(0), 0);
    post_receive(0);
  }
  void drive(LapResult& result) override {
    using Clock = std::chrono::steady_clock;
    result.half_rtt_us.reserve(plan_.count);
    for (std::uint64_t n = 0; n < plan_.count; ++n) {
      const auto start = Clock::now();
      ping();
      fabric_.wait_for(finished_, ++expected_);
      result.half_rtt_us.push_back(
          std::chrono::duration<double, std::micro>(Clock::now() - start).count() / 2);
      if (n + 1 < plan_.count) post_receive(0);
    }
  }
  void attend() override {
    for (std::uint64_t n = 0; n < plan_.count; ++n) {
      fabric_.wait_for(finished_, ++expected_);
      if (n + 1 < plan_.count) post_receive(0);
      ping();
      fabric_.wait_for(finished_, expected_);
    }
    await_mark("sent");
  }
  void verify(bool) override { check(incoming(0), 0, "sent"); }

 private:
  /// Small messages are injected: no completion of their own, so that only the answer is waited for.
  void ping() {
    if (plan_.size > fabric_.inject_size()) {
      post_send(0);
      ++expected_;
      return;
    }
    fabric_.post(
        [&] { return fi_tinject(fabric_.ep(), outgoing(0), plan_.size, fabric_.peer(), kTag); },
        finished_);
  }

  std::uint64_t expected_ = 0;
};

}  // namespace

std::unique_ptr<Lap> make_lap(const Plan& plan, unsigned number, ControlChannel& control,
                              Patience& patience, FabricSession& fabric) {
  if (plan.test == "write")
    return std::make_unique<WriteLap>(plan, number, control, patience, fabric);
  if (plan.test == "read")
    return std::make_unique<ReadLap>(plan, number, control, patience, fabric);
  if (plan.test == "tagged-latency")
    return std::make_unique<PingPongLap>(plan, number, control, patience, fabric);
  return std::make_unique<StreamLap>(plan, number, control, patience, fabric);
}

}  // namespace uet::perf
