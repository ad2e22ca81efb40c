#include "apps/drill/live_link.h"

#include <fmt/format.h>
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
constexpr net::TrimmedDscps kTrimmed = {.in_fabric = 26, .last_hop = 28};
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
                   bool has_crc, Sealing* sealing)
    : port_(port),
      trace_(trace),
      peer_(peer),
      sealing_(sealing),
      integrity_(sealing != nullptr ? fep::DataProtection::kTss
                 : has_crc          ? fep::DataProtection::kCrc
                                    : fep::DataProtection::kNone,
                 port.facts(), kTrimmed, sealing != nullptr ? &sealing->domain() : nullptr) {}

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
  capture_ = std::make_unique<net::CapturePort>(
      std::make_unique<BorrowedPort>(port_), std::move(file),
      [] { return read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC); }, trace_);
  return {};
}

/// A null packet when the pool has none, or none so large.
net::TxPacket LiveLink::packet_for(std::span<const std::uint8_t> bytes, std::uint16_t entropy,
                                   net::TosByte tos) {
  net::TxPacket tx;
  tx.packet = port_.pool().allocate();
  if (tx.packet && tx.packet.tailroom() < bytes.size() + integrity_.overhead()) tx.packet.reset();
  if (tx.packet && !bytes.empty())
    std::copy(bytes.begin(), bytes.end(), tx.packet.append(bytes.size()));
  tx.destination = peer_;
  tx.entropy = entropy;
  tx.tos = tos;
  return tx;
}

bool LiveLink::send(std::span<const std::uint8_t> bytes, const Travel& travel, Manner manner) {
  if (sealing_ != nullptr) sealing_->service(clock_now());
  net::TxPacket tx = packet_for(bytes, port_.wire_entropy(travel.entropy), travel.tos);
  if (!tx.packet) return false;
  if (!manner.is_in_clear && integrity_.seal(tx)) return false;
  if (manner.is_spoilt) tx.packet.data()[tx.packet.size() - 1] ^= 0x5a;
  const auto sealed = std::as_const(tx.packet).bytes();
  last_ = {.bytes = {sealed.begin(), sealed.end()}, .entropy = tx.entropy, .tos = tx.tos};
  return offer(tx);
}

bool LiveLink::send_remembered() {
  if (!remembered_) return false;
  net::TxPacket tx = packet_for(remembered_->bytes, remembered_->entropy, remembered_->tos);
  return tx.packet && offer(tx);
}

bool LiveLink::offer(net::TxPacket& tx) {
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

std::string LiveLink::refused() const {
  std::string text;
  for (std::size_t i = 0; i < base::kDropReasonCount; ++i) {
    const auto reason = static_cast<base::DropReason>(i);
    if (refusals_[i] > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", refusals_[i], base::name_of(reason));
  }
  return text;
}

std::optional<SeenPacket> LiveLink::receive(Instant until) {
  while (true) {
    while (burst_next_ < burst_size_)
      if (auto seen = take(burst_[burst_next_++])) return seen;
    const Instant now = clock_now();
    if (sealing_ != nullptr) sealing_->service(now);
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
  } else if (const auto refusal = integrity_.open(rx)) {
    ++counters_.broken;
    ++refusals_[static_cast<std::size_t>(*refusal)];
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
