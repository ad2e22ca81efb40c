// What one message costs in SES alone: no PDS, no port.
#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "lib/wire/headers.h"
#include "ses/match_list.h"
#include "ses/ses.h"
#include "ses/ways.h"

namespace uet::ses {
namespace {

constexpr std::uint32_t kMtu = 4096;

class OnePacketPool final : public net::PacketPool {
 public:
  OnePacketPool() : memory_(16384) {
    buffer_.room = memory_.data();
    buffer_.capacity = static_cast<std::uint32_t>(memory_.size());
    buffer_.pool = this;
    cache_[cached_++] = &buffer_;
  }
  std::size_t capacity() const override { return 1; }
  std::size_t available() const override { return cached_; }
  std::size_t max_packet_bytes() const override { return memory_.size() - kHeadroom; }

 protected:
  bool refill() override { return false; }
  void spill() override {}

 private:
  std::vector<std::uint8_t> memory_;
  net::PacketBuffer buffer_;
};

class NoSink final : public CompletionSink {
 public:
  void on_completion(EndpointId, const Completion&) override {}
};

/// Remembers the last message; carries nothing.
class Shelf final : public Carrier {
 public:
  pds::SubmitResult submit(Instant, const pds::TxMessage& m) override {
    last = m;
    return pds::SubmitResult::kQueued;
  }
  pds::SubmitResult submit_return(Instant, pds::RxHandle, const pds::TxMessage&) override {
    return pds::SubmitResult::kQueued;
  }
  void unlock(Instant, pds::PdcRef) override {}
  void abort(Instant, pds::MessageToken) override {}
  std::uint32_t truncate(Instant, pds::MessageToken, std::uint32_t) override { return 0; }
  pds::TxMessage last;
};

struct Bed {
  Bed() : ses(SesConfig{}, kMtu, net::FabricAddress::from_v4(1), rng, trace) {
    ses.attach(shelf);
    endpoint = *ses.open_endpoint(now, EndpointConfig{}, sink);
    self = *ses.add_peer(ses.address_of(endpoint));
  }
  base::Rng rng{1};
  base::Trace trace;
  Shelf shelf;
  NoSink sink;
  Ses ses;
  OnePacketPool pool;
  Instant now = Instant::from_ns(1);
  EndpointId endpoint = 0;
  PeerId self = 0;
};

/// Post, cut, and complete one tagged send.
void send_one_packet(benchmark::State& state) {
  Bed bed;
  std::vector<std::uint8_t> data(static_cast<std::size_t>(state.range(0)), 1);
  const iovec iov{data.data(), data.size()};
  SendRequest request;
  request.peer = bed.self;
  request.tagged = true;
  request.iov = {&iov, 1};
  for (auto _ : state) {
    (void)bed.ses.send(bed.now, bed.endpoint, request);
    net::Packet packet = bed.pool.allocate();
    bed.ses.emit_segment(bed.shelf.last.token, 0, pds::PdcRef{1}, base::Psn(1), packet);
    bed.ses.on_response(bed.now, bed.shelf.last.token, 0, 0, {});
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(send_one_packet)->Arg(8)->Arg(4096);

/// Post a receive and place one message, with `range` receives of other tags posted before it.
void receive_one_packet(benchmark::State& state) {
  Bed bed;
  std::vector<std::uint8_t> into(64);
  const iovec iov{into.data(), into.size()};
  ReceiveRequest request;
  request.tagged = true;
  request.iov = {&iov, 1};
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    request.tag = 1000 + static_cast<std::uint64_t>(i);
    (void)bed.ses.receive(bed.now, bed.endpoint, request);
  }
  request.tag = 1;
  const Address a = bed.ses.address_of(bed.endpoint);
  wire::SesStandardFirst h;
  h.opcode = wire::SesOpcode::kTaggedSend;
  h.rel = h.eom = true;
  h.job_id = 1;
  h.message_id = 1;
  h.resource_index = a.resource_index;
  h.mkey_match = 1;
  h.request_length = 8;
  std::array<std::uint8_t, wire::SesStandardFirst::kSize + 8> bytes{};
  wire::emit(h, bytes.data());
  pds::RxRequest packet;
  packet.handle.pdc = pds::PdcRef{1};
  packet.next_hdr = static_cast<std::uint8_t>(wire::NextHdr::kRequestStd);
  packet.bytes = bytes;
  for (auto _ : state) {
    (void)bed.ses.receive(bed.now, bed.endpoint, request);
    benchmark::DoNotOptimize(bed.ses.on_request(bed.now, packet));
  }
}
BENCHMARK(receive_one_packet)->Arg(0)->Arg(16)->Arg(1024);

/// Matching alone, with wildcards of one mask as MPI libraries post them.
void match_with_ignore_bits(benchmark::State& state) {
  MatchList list(true);
  std::vector<Receive> receives(static_cast<std::size_t>(state.range(0)));
  for (std::size_t i = 0; i < receives.size(); ++i) {
    receives[i].filter.tag = i;
    receives[i].filter.ignore = 0xff00'0000'0000'0000;
    list.post(receives[i]);
  }
  Incoming message;
  std::uint64_t tag = 0;
  for (auto _ : state) {
    message.tag = 0x1200'0000'0000'0000 | (tag++ % receives.size());
    benchmark::DoNotOptimize(list.find(message));
  }
}
BENCHMARK(match_with_ignore_bits)->Arg(4)->Arg(64)->Arg(4096);

}  // namespace
}  // namespace uet::ses

BENCHMARK_MAIN();
