#include <cstring>
#include <stdexcept>

#include "apps/perf/raw_side.h"

namespace uet::perf {

namespace {

class RawServer {
 public:
  RawServer(const RawOptions& options, RawSide& side) : options_(options), side_(side) {}

  int serve() {
    base::Instant heard = clock_now();
    const base::Duration patience = base::Duration::from_seconds(options_.timeout_s);
    while (!is_over_) {
      const base::Instant now = clock_now();
      const auto burst = side_.receive(now);
      if (!burst.empty())
        heard = now;
      else if (now - heard > patience)
        throw std::runtime_error("no packet from " + options_.peer.to_string() + " for " +
                                 std::to_string(options_.timeout_s) + " s; is the client running?");
      for (net::RxPacket& rx : burst) on_packet(now, rx.packet);
    }
    return 0;
  }

 private:
  void on_packet(base::Instant now, const net::Packet& packet) {
    const auto header = RawHeader::parse(packet);
    if (!header) return;
    if (header->kind == RawKind::kStart && header->version != kRawVersion)
      throw std::runtime_error("the client runs another version of uet-perf raw");
    switch (header->kind) {
      case RawKind::kData:
        return on_data(now, *header, packet);
      case RawKind::kPing:
        return answer(RawKind::kPong, *header, packet.size());
      case RawKind::kStart:
        begin(*header);
        return say_ready(*header);
      case RawKind::kEnd:
        if (header->sequence == session_) send_report(*header);
        return;
      case RawKind::kBye:
        is_over_ = true;
        return answer(RawKind::kGone, *header, RawHeader::kSize);
      default:
        return;
    }
  }

  void on_data(base::Instant now, const RawHeader& header, const net::Packet& packet) {
    if (header.run != run_ || header.sequence != session_) return;
    if (report_.packets == 0) first_ = now;
    ++report_.packets;
    report_.bytes += packet.size();
    report_.elapsed_ns = static_cast<std::uint64_t>((now - first_).ns());
    if (copy_shift_ == 0) return;
    const std::size_t n = packet.size() - RawHeader::kSize;
    std::memcpy(sink_.next(n), packet.data() + RawHeader::kSize, n);
  }

  /// The question is repeated until it is answered. A client that comes after another one numbers its runs from the beginning as well.
  void begin(const RawHeader& start) {
    if (start.sequence == session_ && start.run == run_ && start.copy_shift == asked_shift_) return;
    session_ = start.sequence;
    run_ = start.run;
    asked_shift_ = start.copy_shift;
    report_ = RawReport{};
    const bool can = asked_shift_ >= kLeastMemoryShift && asked_shift_ <= options_.memory_shift;
    copy_shift_ = can ? asked_shift_ : std::uint8_t{0};
    if (can) sink_.resize(copy_shift_);
  }

  void say_ready(RawHeader header) {
    header.copy_shift = copy_shift_;
    answer(RawKind::kReady, header, RawHeader::kSize);
  }

  void answer(RawKind kind, RawHeader header, std::size_t size) {
    header.kind = kind;
    side_.send_one(side_.make(header, size));
  }

  void send_report(RawHeader header) {
    header.kind = RawKind::kReport;
    net::TxPacket tx = side_.make(header, RawHeader::kSize + RawReport::kSize);
    if (!tx.packet) return;
    report_.emit(tx.packet.data() + RawHeader::kSize);
    side_.send_one(std::move(tx));
  }

  const RawOptions& options_;
  RawSide& side_;
  std::uint32_t session_ = 0;
  std::uint8_t run_ = 0;
  RawReport report_;
  base::Instant first_;
  CopyBuffer sink_;
  std::uint8_t asked_shift_ = 0;  ///< by the client, for this run
  std::uint8_t copy_shift_ = 0;   ///< the same where it can be had, or 0
  bool is_over_ = false;
};

}  // namespace

int run_raw_server(const RawOptions& options, RawSide& side) {
  return RawServer(options, side).serve();
}

}  // namespace uet::perf
