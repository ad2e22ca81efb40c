#include "apps/perf/lap.h"

#include <fmt/core.h>

#include <chrono>
#include <stdexcept>

namespace uet::perf {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

LapResult Lap::measure() {
  LapResult result;
  fabric_.expect_length(plan_.size);
  fabric_.set_waiting_for("an operation to finish");
  prepare(true);
  await_mark("ready");
  const auto start = Clock::now();
  drive(result);
  control_.send({{"mark", "sent"}});
  await_mark("arrived");
  result.seconds = seconds_since(start);
  if (plan_.verify) verify(true);
  control_.send({{"mark", "checked"}});
  await_mark("checked");
  return result;
}

void Lap::serve() {
  fabric_.expect_length(plan_.size);
  fabric_.set_waiting_for("an operation to finish");
  prepare(false);
  control_.send({{"mark", "ready"}});
  attend();
  control_.send({{"mark", "arrived"}});
  if (plan_.verify) verify(false);
  await_mark("checked");
  control_.send({{"mark", "checked"}});
}

/// The control connection is looked at now and then: with a system call for each poll, the target of writes and reads would be
/// measured with it.
void Lap::await_mark(const char* mark) {
  constexpr int kPolls = 16;
  const nlohmann::json message =
      control_.await(fmt::format("the other side to say '{}'", mark), [&] {
        for (int n = 0; n < kPolls; ++n) finished_ += fabric_.poll();
      });
  const auto got = message.find("mark");
  if (got == message.end() || *got != mark)
    throw ControlLost("the two sides are out of step: '" + std::string(mark) + "' expected, got " +
                      message.dump());
}

void Lap::fill(std::uint8_t* at, std::uint64_t slot) const {
  for (std::size_t i = 0; i < plan_.size; ++i) at[i] = pattern(slot, i);
}

void Lap::fill_wrong(std::uint8_t* at, std::uint64_t slot) const {
  for (std::size_t i = 0; i < plan_.size; ++i) at[i] = static_cast<std::uint8_t>(~pattern(slot, i));
}

void Lap::check(const std::uint8_t* at, std::uint64_t slot, const char* what) const {
  for (std::size_t i = 0; i < plan_.size; ++i)
    if (at[i] != pattern(slot, i))
      throw std::runtime_error(
          fmt::format("wrong data: byte {} of {} of a message {} is {:#04x} and must be {:#04x}", i,
                      plan_.size, what, at[i], pattern(slot, i)));
}

bool Lap::has_last_byte(const std::uint8_t* at, std::uint64_t slot) const {
  const volatile std::uint8_t* const last = at + plan_.size - 1;  // written behind our back
  return *last == pattern(slot, plan_.size - 1);
}

}  // namespace uet::perf
