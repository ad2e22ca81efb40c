/// Single-packet messages over many open PDCs, for counting instructions; tools/packet_instructions.py does.
///
///     pdc_instructions spread|one MESSAGES PDCS
///
/// PDCs are opened to as many destinations, and stay open. spread: each message takes the next PDC; one: all take the same.
#include <cstdlib>
#include <string_view>

#include "lib/net/heap_packet_pool.h"
#include "tests/bench/pds_ends.h"

namespace uet::test {

using base::Instant;
using pds::End;

// Named in the tool that reads the profile: not to be inlined, and with names that no namespace hides.
[[gnu::noinline]] void initiator_posts(End& end, Instant now, const pds::TxMessage& m) {
  if (end.pds->submit(now, m) != pds::SubmitResult::kQueued) std::abort();
}
[[gnu::noinline]] bool initiator_sends(End& end, Instant now, net::TxPacket& tx) {
  return end.pds->poll_transmit(now, tx);
}
[[gnu::noinline]] void initiator_takes(End& end, Instant now, net::RxPacket&& rx) {
  end.pds->on_packet(now, std::move(rx));
}
[[gnu::noinline]] void initiator_waits(End& end, Instant now) {
  if (end.pds->next_deadline() <= now) end.pds->on_deadline(now);
}
[[gnu::noinline]] void target_takes(End& end, Instant now, net::RxPacket&& rx) {
  end.pds->on_packet(now, std::move(rx));
}
[[gnu::noinline]] bool target_sends(End& end, Instant now, net::TxPacket& tx) {
  return end.pds->poll_transmit(now, tx);
}
[[gnu::noinline]] void target_waits(End& end, Instant now) {
  if (end.pds->next_deadline() <= now) end.pds->on_deadline(now);
}

namespace {

/// Two ends, each under as many addresses as there are PDCs: to each of them, so many peers.
class Fan {
 public:
  explicit Fan(std::uint32_t pdcs) : pdcs_(pdcs) {}

  /// A message on this PDC, until it is answered.
  void deliver(std::uint32_t pdc) {
    pds::TxMessage m;
    m.token = ++token_;
    m.destination = net::FabricAddress::from_v4(kTargets + pdc);
    m.ses_header_bytes = 44;
    m.segment_payload = 4096;
    m.payload_bytes = 4096;
    initiator_posts(a_, now_, m);
    const std::uint64_t goal = a_.ses.answered + 1;
    for (int turns = 0; a_.ses.answered < goal; ++turns) {
      if (turns == 1000) std::abort();
      step();
      net::TxPacket tx;
      while (initiator_sends(a_, now_, tx)) {
        target_takes(b_, now_, arrived(std::move(tx), kTargets, kInitiators));
      }
      step();
      while (target_sends(b_, now_, tx)) {
        initiator_takes(a_, now_, arrived(std::move(tx), kInitiators, kTargets));
      }
    }
  }
  void step() {
    now_ = now_ + base::Duration::from_us(1);
    initiator_waits(a_, now_);
    target_waits(b_, now_);
  }
  std::uint32_t pdcs() const { return pdcs_; }
  std::uint32_t open() const { return a_.pds->gauges().pdcs_open; }

 private:
  static constexpr std::uint32_t kTargets = 0x0b000000, kInitiators = 0x0c000000;  // of PDC 0

  static net::RxPacket arrived(net::TxPacket&& tx, std::uint32_t to, std::uint32_t from) {
    net::RxPacket rx;
    rx.packet = std::move(tx.packet);
    rx.source = net::FabricAddress::from_v4(tx.destination.v4() - to + from);
    rx.destination = tx.destination;
    rx.entropy = tx.entropy;
    rx.tos = tx.tos;
    return rx;
  }

  std::uint32_t pdcs_;
  net::HeapPacketPool pool_{4096, 9000};
  End a_{0x0a000001, pool_}, b_{0x0a000002, pool_};
  Instant now_ = Instant::from_ns(1'000'000'000);
  pds::MessageToken token_ = 0;
};

}  // namespace
}  // namespace uet::test

int main(int argc, char** argv) {
  using namespace uet::test;
  if (argc != 4) return 2;
  Fan fan(static_cast<std::uint32_t>(std::atol(argv[3])));
  for (std::uint32_t pdc = 0; pdc < fan.pdcs(); ++pdc) fan.deliver(pdc);
  if (fan.open() != fan.pdcs()) return 1;
  const bool spread = std::string_view(argv[1]) == "spread";
  const auto messages = static_cast<std::uint32_t>(std::atol(argv[2]));
  for (std::uint32_t n = 0; n < messages; ++n) fan.deliver(spread ? n % fan.pdcs() : 0);
  return fan.open() == fan.pdcs() ? 0 : 1;
}
