/// The tests of `uet-perf fabric`.

#include <algorithm>
#include <chrono>

#include "apps/perf/lap.h"
#include "apps/perf/write_slots.h"
#include "lib/base/check.h"

namespace uet::perf {
namespace {

constexpr std::uint64_t kTag = 7;

/// Half of the time between its birth and its end goes to the result.
class RoundTrip {
 public:
  explicit RoundTrip(LapResult& result) : result_(result) {}
  RoundTrip(const RoundTrip&) = delete;
  RoundTrip& operator=(const RoundTrip&) = delete;
  ~RoundTrip() {
    result_.half_rtt_us.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - start_).count() / 2);
  }

 private:
  using Clock = std::chrono::steady_clock;
  LapResult& result_;
  const Clock::time_point start_ = Clock::now();
};

class WriteLap : public Lap {
 public:
  using Lap::Lap;

 protected:
  void prepare(bool is_client) override {
    each_target([&](std::uint64_t s) {
      const std::uint64_t from = source_of(s);
      is_client ? fill(outgoing(from), from) : fill_wrong(outgoing(s), from);
    });
  }
  void drive(LapResult&) override {
    for (std::uint64_t n = 0; n < plan_.count; ++n) {
      while (n - finished_ >= plan_.window) finished_ += fabric_.poll();
      fabric_.post([&] { return transfer(n); }, finished_);
    }
    fabric_.wait_for(finished_, plan_.count);
  }
  /// Some providers report a write before the target has it: the last byte of every slot decides.
  void attend() override {
    await_mark("sent");
    fabric_.set_waiting_for("the last bytes of a write that the provider reported as finished");
    each_target([&](std::uint64_t s) {
      while (!has_last_byte(outgoing(s), source_of(s))) fabric_.poll();
    });
  }
  void verify(bool is_client) override {
    if (!is_client)
      each_target([&](std::uint64_t s) { check(outgoing(s), source_of(s), "written"); });
  }
  virtual ssize_t transfer(std::uint64_t n) {
    const std::uint64_t to = fabric_.remote_address() + slots_.target(n) * plan_.size;
    return fi_write(fabric_.ep(), outgoing(slots_.source(n)), plan_.size, fabric_.descriptor(),
                    fabric_.peer(), to, fabric_.remote_key(), nullptr);
  }

 private:
  /// What is written to the target's slot comes from this one of the client.
  std::uint64_t source_of(std::uint64_t target) const {
    return target < plan_.window ? target + plan_.window : target - plan_.window;
  }
  template <typename Visit>
  void each_target(Visit visit) const {
    for (std::uint64_t s = 0; s < slots_.last(); ++s) visit(slots_.target(plan_.count - 1 - s));
    for (std::uint64_t s = 0; s < slots_.before(); ++s) visit(slots_.target(s));
  }

  const WriteSlots slots_{plan_.count, plan_.window};
};

class ReadLap : public WriteLap {
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
  /// A read has finished when its bytes are here.
  ssize_t transfer(std::uint64_t n) override {
    const std::uint64_t slot = n % plan_.window;
    const std::uint64_t from = fabric_.remote_address() + (plan_.window + slot) * plan_.size;
    return fi_read(fabric_.ep(), outgoing(slot), plan_.size, fabric_.descriptor(), fabric_.peer(),
                   from, fabric_.remote_key(), nullptr);
  }
};

/// One read after the other; half of what each takes.
class ReadLatencyLap final : public ReadLap {
 public:
  using ReadLap::ReadLap;

 protected:
  void drive(LapResult& result) override {
    result.half_rtt_us.reserve(plan_.count);
    for (std::uint64_t n = 0; n < plan_.count; ++n) {
      const RoundTrip trip(result);
      fabric_.post([&] { return transfer(0); }, finished_);
      fabric_.wait_for(finished_, n + 1);
    }
  }
};

/// Each side writes into the other's memory and looks there for the answer: the last byte counts the writes.
class WriteLatencyLap final : public Lap {
 public:
  using Lap::Lap;

 protected:
  void prepare(bool) override {
    fill(outgoing(0), 0);
    fill_wrong(incoming(0), 0);
    incoming(0)[plan_.size - 1] = 0;
  }
  void drive(LapResult& result) override {
    result.half_rtt_us.reserve(plan_.count);
    for (std::uint64_t n = 1; n <= plan_.count; ++n) {
      const RoundTrip trip(result);
      write(n);
      await_write(n);
    }
    fabric_.wait_for(finished_, posted_);
  }
  void attend() override {
    fabric_.set_waiting_for("the peer's next write");
    for (std::uint64_t n = 1; n <= plan_.count; ++n) {
      await_write(n);
      write(n);
    }
    fabric_.wait_for(finished_, posted_);
    await_mark("sent");
  }
  void verify(bool) override {
    std::uint8_t& last = incoming(0)[plan_.size - 1];
    if (last != static_cast<std::uint8_t>(plan_.count))
      throw std::runtime_error("wrong data: the last write is not the last that arrived");
    last = pattern(0, plan_.size - 1);
    check(incoming(0), 0, "written");
  }

 private:
  void write(std::uint64_t n) {
    fabric_.wait_for(finished_, posted_);  // the provider may still read the buffer
    outgoing(0)[plan_.size - 1] = static_cast<std::uint8_t>(n);
    const std::uint64_t target = fabric_.remote_address() + plan_.window * plan_.size;
    const bool is_small = plan_.size <= fabric_.inject_size();
    fabric_.post(
        [&] {
          return is_small ? fi_inject_write(fabric_.ep(), outgoing(0), plan_.size, fabric_.peer(),
                                            target, fabric_.remote_key())
                          : fi_write(fabric_.ep(), outgoing(0), plan_.size, fabric_.descriptor(),
                                     fabric_.peer(), target, fabric_.remote_key(), nullptr);
        },
        finished_);
    posted_ += !is_small;
  }
  void await_write(std::uint64_t n) {
    const volatile std::uint8_t* const last = incoming(0) + plan_.size - 1;
    while (*last != static_cast<std::uint8_t>(n)) finished_ += fabric_.poll();
  }

  std::uint64_t posted_ = 0;  ///< writes that tell when they have finished
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
  bool is_tagged() const { return is_tagged_; }

 private:
  const bool is_tagged_ = plan_.test.starts_with("tagged");
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
    result.half_rtt_us.reserve(plan_.count);
    for (std::uint64_t n = 0; n < plan_.count; ++n) {
      {
        const RoundTrip trip(result);
        ping();
        fabric_.wait_for(finished_, ++expected_);
      }
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
        [&] {
          return is_tagged()
                     ? fi_tinject(fabric_.ep(), outgoing(0), plan_.size, fabric_.peer(), kTag)
                     : fi_inject(fabric_.ep(), outgoing(0), plan_.size, fabric_.peer());
        },
        finished_);
  }

  std::uint64_t expected_ = 0;
};

using Maker = std::unique_ptr<Lap> (*)(const Plan&, unsigned, ControlChannel&, Patience&,
                                       FabricSession&);

template <typename Kind>
std::unique_ptr<Lap> make(const Plan& plan, unsigned number, ControlChannel& control,
                          Patience& patience, FabricSession& fabric) {
  return std::make_unique<Kind>(plan, number, control, patience, fabric);
}

struct LapOfTest {
  std::string_view test;
  Maker make;
};
constexpr LapOfTest kLaps[] = {
    {"write", make<WriteLap>},
    {"read", make<ReadLap>},
    {"send", make<StreamLap>},
    {"tagged-rate", make<StreamLap>},
    {"write-latency", make<WriteLatencyLap>},
    {"read-latency", make<ReadLatencyLap>},
    {"send-latency", make<PingPongLap>},
    {"tagged-latency", make<PingPongLap>},
};

constexpr const LapOfTest* find_lap(std::string_view test) {
  const auto* const at = std::find_if(std::begin(kLaps), std::end(kLaps),
                                      [&](const LapOfTest& lap) { return lap.test == test; });
  return at == std::end(kLaps) ? nullptr : at;
}
static_assert(std::all_of(std::begin(kTests), std::end(kTests),
                          [](std::string_view test) { return find_lap(test) != nullptr; }),
              "a test without a lap");

}  // namespace

std::unique_ptr<Lap> make_lap(const Plan& plan, unsigned number, ControlChannel& control,
                              Patience& patience, FabricSession& fabric) {
  const LapOfTest* const lap = find_lap(plan.test);
  UET_CHECK(lap != nullptr);
  return lap->make(plan, number, control, patience, fabric);
}

}  // namespace uet::perf
