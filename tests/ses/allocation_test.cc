// Once the pools are warm, nothing on the way of a message asks for memory.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <new>

#include "ses/match_list.h"
#include "tests/ses/pair_test.h"

namespace {

bool is_counting = false;
bool is_short = false;  ///< there is no memory
std::size_t allocations = 0;

}  // namespace

// Not inlined: otherwise the compiler sees malloc() and free() behind new and delete and warns of a mismatch.
#define UET_TEST_NOINLINE __attribute__((noinline))

UET_TEST_NOINLINE void* operator new(std::size_t n) {
  if (is_counting) ++allocations;
  if (void* p = is_short ? nullptr : std::malloc(n)) return p;
  throw std::bad_alloc();
}
UET_TEST_NOINLINE void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  if (is_counting) ++allocations;
  return is_short ? nullptr : std::malloc(n);
}
UET_TEST_NOINLINE void* operator new[](std::size_t n) {
  return operator new(n);
}
UET_TEST_NOINLINE void* operator new[](std::size_t n, const std::nothrow_t& t) noexcept {
  return operator new(n, t);
}
UET_TEST_NOINLINE void operator delete(void* p) noexcept {
  std::free(p);
}
UET_TEST_NOINLINE void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
UET_TEST_NOINLINE void operator delete[](void* p) noexcept {
  std::free(p);
}
UET_TEST_NOINLINE void operator delete[](void* p, std::size_t) noexcept {
  std::free(p);
}

namespace uet::ses::testing {
namespace {

class Silence final : public CompletionSink {
 public:
  void on_completion(EndpointId, const Completion& c) override {
    ++count;
    if (c.code != ReturnCode::kOk) ++errors;
  }
  std::size_t count = 0, errors = 0;
};

/// Hands every segment straight to the other Ses and every answer straight back.
class Wire final : public Carrier {
 public:
  pds::SubmitResult submit(Instant, const pds::TxMessage& m) override {
    queue[queued++] = {m, false, {}};
    return pds::SubmitResult::kQueued;
  }
  pds::SubmitResult submit_return(Instant, pds::RxHandle request,
                                  const pds::TxMessage& m) override {
    queue[queued++] = {m, true, request};
    return pds::SubmitResult::kQueued;
  }
  void unlock(Instant, pds::PdcRef) override {}
  void abort(Instant, pds::MessageToken) override {}
  std::uint32_t truncate(Instant, pds::MessageToken, std::uint32_t) override { return 0; }

  void run(Instant now) {
    for (std::size_t i = 0; i < queued; ++i)
      for (std::uint32_t s = 0; s < queue[i].message.segments; ++s) carry(now, queue[i], s);
    queued = 0;
  }

  struct Item {
    pds::TxMessage message;
    bool is_return = false;
    pds::RxHandle request;
  };
  Ses* self = nullptr;
  HeapPool* pool = nullptr;
  std::array<Item, 4096> queue{};
  std::size_t queued = 0;

 private:
  // Both directions of one PDC of an endpoint that talks to itself.
  void carry(Instant now, const Item& item, std::uint32_t segment) {
    net::Packet packet = pool->allocate();
    const auto info =
        self->emit_segment(item.message.token, segment, pds::PdcRef{1}, base::Psn(segment), packet);
    pds::RxRequest r;
    r.handle = {pds::PdcRef{1}, base::Psn(segment), item.is_return};
    r.mode = item.message.mode;
    r.next_hdr = info.next_hdr;
    r.source = net::FabricAddress::from_v4(1);
    r.is_proven = true;
    r.bytes = packet.bytes();
    const pds::Answer a = self->on_request(now, r);
    std::array<std::uint8_t, 64> bytes{};
    std::copy_n(a.response.header.begin(), a.response.header_bytes, bytes.begin());
    std::copy(a.response.data.begin(), a.response.data.end(),
              bytes.begin() + a.response.header_bytes);
    self->on_response(now, item.message.token, segment, a.response.next_hdr,
                      {bytes.data(), a.response.header_bytes + a.response.data.size()});
  }
};

TEST(AllocationTest, warm__no_operation_allocates) {
  base::Rng rng(1);
  base::Trace trace;
  HeapPool pool;
  Silence sink;
  const auto address = net::FabricAddress::from_v4(1);
  const auto wire = std::make_unique<Wire>();
  Ses ses(SesConfig{}, kM, address, rng, trace);
  ses.attach(*wire);
  wire->self = &ses;
  wire->pool = &pool;
  Instant now = Instant::from_ns(1);
  EndpointConfig config;
  const EndpointId e = *ses.open_endpoint(now, config, sink);
  const PeerId self = *ses.add_peer(ses.address_of(e));
  Bytes data = pattern(5 * kM), into(5 * kM), memory(8 * kM);
  const iovec to = piece(into), from = piece(data), region = piece(memory);
  MemoryRequest m;
  m.iov = {&region, 1};
  m.remote_read = m.remote_write = true;
  m.virtual_addressing = false;
  const auto key = *ses.register_memory(m);
  const auto round = [&](bool unexpected) {
    now = now + Duration::from_us(1);
    ReceiveRequest rr;
    rr.tagged = true;
    rr.iov = {&to, 1};
    SendRequest sr;
    sr.peer = self;
    sr.tagged = true;
    sr.iov = {&from, 1};
    RmaRequest write, read;
    write.peer = read.peer = self;
    write.key = read.key = key;
    write.iov = {&from, 1};
    read.iov = {&to, 1};
    read.read = true;
    bool ok = true;
    if (!unexpected) ok = ses.receive(now, e, rr).has_value();
    ok = ok && ses.send(now, e, sr).has_value();
    wire->run(now);
    if (unexpected) ok = ok && ses.receive(now, e, rr).has_value();
    ok = ok && ses.rma(now, e, write).has_value() && ses.rma(now, e, read).has_value();
    wire->run(now);
    if (ses.next_deadline() <= now) ses.on_deadline(now);
    return ok;
  };
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(round(i % 2 == 0));
  const std::size_t before = sink.count;
  is_counting = true;
  bool ok = true;
  for (int i = 0; i < 1000; ++i) ok = round(i % 2 == 0) && ok;
  is_counting = false;
  EXPECT_TRUE(ok);
  EXPECT_EQ(allocations, 0u);
  EXPECT_EQ(sink.errors, 0u);
  // Send, receive, write, remote write, read, remote read.
  EXPECT_EQ(sink.count - before, 6000u);
}

/// A packet is at hand, and cannot be refused for that.
TEST(Allocation, match_list__finds_without_memory_what_it_finds_with_it) {
  MatchList list(true);
  std::array<Receive, 24> receives;
  for (std::size_t i = 0; i < receives.size(); ++i) {
    receives[i].filter.tag = i;
    receives[i].filter.ignore = std::uint64_t{0xff00} << (i % 3);
    list.post(receives[i]);
  }
  for (const std::size_t wanted : {23u, 7u, 11u}) {
    Incoming message;
    message.tag = wanted;
    is_short = true;
    Receive* const found = list.find(message);
    is_short = false;
    ASSERT_EQ(found, &receives[wanted]);
    list.remove(*found);
  }
  while (Receive* r = list.front()) list.remove(*r);
}

}  // namespace
}  // namespace uet::ses::testing
