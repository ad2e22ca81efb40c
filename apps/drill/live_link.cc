#include "apps/drill/live_link.h"

#include <poll.h>
#include <time.h>

#include <algorithm>

#include "apps/drill/borrowed_port.h"
#include "lib/net/capture_port.h"

namespace uet::drill {

namespace {

using base::Duration;
using base::Instant;

/// DSCPs of trimmed packets, which bear no CRC; switches of the peer's network may use others.
constexpr std::uint8_t kTrimmed = 26, kTrimmedLastHop = 28;
/// How long a full port is offered a packet, and how often a port that cannot wake us is asked.
constexpr Duration kSendPatience = Duration::from_ms(500);
constexpr Duration kPollPause = Duration::from_us(200);

std::int64_t read_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

}  // namespace

Instant clock_now() {
  return Instant::from_ns(read_clock(CLOCK_MONOTONIC));
}

LiveLink::LiveLink(net::Port& port, base::Trace& trace, const net::FabricAddress& peer,
                   bool has_crc)
    : port_(port),
      trace_(trace),
      peer_(peer),
      integrity_(has_crc ? fep::DataProtection::kCrc : fep::DataProtection::kNone, port.facts(),
                 kTrimmed, kTrimmedLastHop) {}

std::string LiveLink::capture_to(const std::string& path) {
  for (; burst_next_ < burst_size_; ++burst_next_) burst_[burst_next_].packet.reset();
  capture_.reset();
  if (path.empty()) return {};
  const std::int64_t wall = read_clock(CLOCK_REALTIME);
  std::string error;
  auto file = net::CaptureFile::open({.path = path,
                                      .interface_name = port_.facts().name,
                                      .files = 1,
                                      .started_ns = static_cast<std::uint64_t>(wall)},
                                     error);
  if (file == nullptr) return error;
  capture_ =
      std::make_unique<net::CapturePort>(std::make_unique<BorrowedPort>(port_), std::move(file),
                                         wall - read_clock(CLOCK_MONOTONIC), trace_);
  return {};
}

bool LiveLink::send(std::span<const std::uint8_t> bytes, const Travel& travel,
                    bool with_wrong_crc) {
  net::TxPacket tx;
  tx.packet = port_.pool().allocate();
  if (!tx.packet || tx.packet.tailroom() < bytes.size() + integrity_.overhead()) return false;
  if (!bytes.empty()) std::copy(bytes.begin(), bytes.end(), tx.packet.append(bytes.size()));
  tx.destination = peer_;
  tx.entropy = port_.wire_entropy(travel.entropy);
  tx.tos = travel.tos;
  if (integrity_.seal(tx)) return false;
  if (with_wrong_crc) tx.packet.data()[tx.packet.size() - 1] ^= 0x5a;
  const Instant until = clock_now() + kSendPatience;
  for (Instant now = clock_now(); now < until; now = clock_now()) {
    if (port_.next_deadline() <= now) port_.on_deadline(now);
    if (outer().send(now, {&tx, 1}) == 1) {
      ++counters_.sent;
      return true;
    }
    sleep_until(now + kPollPause);
  }
  return false;
}

std::optional<SeenPacket> LiveLink::receive(Instant until) {
  while (true) {
    while (burst_next_ < burst_size_)
      if (auto seen = take(burst_[burst_next_++])) return seen;
    const Instant now = clock_now();
    if (port_.next_deadline() <= now) port_.on_deadline(now);
    burst_next_ = 0;
    burst_size_ = outer().receive(now, burst_);
    if (burst_size_ > 0) continue;
    if (now >= until) return {};
    sleep_until(std::min(until, port_.next_deadline()));
  }
}

/// Nothing when it is not the peer's, or not whole.
std::optional<SeenPacket> LiveLink::take(net::RxPacket& rx) {
  std::optional<SeenPacket> seen;
  if (rx.source != peer_) {
    ++counters_.strangers;
  } else if (integrity_.open(rx)) {
    ++counters_.broken;
  } else {
    ++counters_.received;
    const auto bytes = std::as_const(rx.packet).bytes();
    seen = SeenPacket{
        .bytes = {bytes.begin(), bytes.end()}, .to = 2, .entropy = rx.entropy, .tos = rx.tos};
  }
  rx.packet.reset();
  return seen;
}

void LiveLink::sleep_until(Instant until) {
  pollfd waiting{.fd = port_.wakeup_fd(), .events = POLLIN, .revents = 0};
  Duration span = until - clock_now();
  if (waiting.fd < 0 || !port_.arm_wakeup()) span = std::min(span, kPollPause);
  if (span <= Duration{}) return;
  const timespec time{.tv_sec = static_cast<time_t>(span.ns() / 1'000'000'000),
                      .tv_nsec = static_cast<long>(span.ns() % 1'000'000'000)};
  ppoll(&waiting, waiting.fd < 0 ? 0 : 1, &time, nullptr);
}

}  // namespace uet::drill
