// Once the pools are warm, nothing on the way of a message asks for memory.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <new>

#include "ses/coverage.h"
#include "ses/delivery_index.h"
#include "ses/match_list.h"
#include "ses/sender_table.h"
#include "tests/ses/pair_test.h"

namespace {

bool is_counting = false;
bool is_short = false;    ///< there is no memory
int left_when_short = 0;  ///< but for so many more allocations
std::size_t allocations = 0;

bool has_memory() {
  return !is_short || left_when_short-- > 0;
}

}  // namespace

// Not inlined: otherwise the compiler sees malloc() and free() behind new and delete and warns of a mismatch.
#define UET_TEST_NOINLINE __attribute__((noinline))

UET_TEST_NOINLINE void* operator new(std::size_t n) {
  if (is_counting) ++allocations;
  if (void* p = has_memory() ? std::malloc(n) : nullptr) return p;
  throw std::bad_alloc();
}
UET_TEST_NOINLINE void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
  if (is_counting) ++allocations;
  return has_memory() ? std::malloc(n) : nullptr;
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
    left_when_short = 0;
    Receive* const found = list.find(message);
    is_short = false;
    ASSERT_EQ(found, &receives[wanted]);
    list.remove(*found);
  }
  while (Receive* r = list.front()) list.remove(*r);
}

/// A packet whose place cannot be noted comes again.
TEST(Allocation, coverage__without_memory_a_packet_out_of_order_comes_again) {
  for (const std::uint32_t count : {40u, 70'000u}) {
    CoveragePool pool(4, 4);
    Coverage coverage;
    const std::uint64_t length = std::uint64_t{count} * kM;
    is_short = true;
    left_when_short = 0;
    const auto out_of_order = coverage.look(2 * kM, kM, length, pool);
    const auto in_order = coverage.look(0, kM, length, pool);
    is_short = false;
    EXPECT_EQ(out_of_order, Coverage::Look::kTooFar);
    EXPECT_EQ(in_order, Coverage::Look::kNew);
    EXPECT_EQ(coverage.look(2 * kM, kM, length, pool), Coverage::Look::kNew);
    is_short = true;
    coverage.add(2 * kM, kM, length, pool);
    is_short = false;
    coverage.clear(pool);
  }
}

/// Peers fill these tables. `add` the object of each number, with memory for no more than its chunk.
template <typename Add>
bool fill_without_memory(std::uint32_t count, std::uint32_t chunk, Add add) {
  bool has_all = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    is_short = true;
    left_when_short = i % chunk == 0 ? 1 : 0;
    has_all = add(i) && has_all;
    is_short = false;
  }
  return has_all;
}

TEST(Allocation, tables_of_what_comes__get_longer_chains_without_memory) {
  constexpr std::uint32_t kMany = 512;
  const base::HashKey key{base::Rng(1)};
  const auto address = [](std::uint32_t i) { return net::FabricAddress::from_v4(i); };
  SenderTable senders(kMany, 1, Duration::from_seconds(60), key);
  EXPECT_TRUE(fill_without_memory(kMany, 16, [&](std::uint32_t i) {
    return senders.find_or_make(0, address(i), 0, true) != nullptr;
  }));
  RxMessageTable messages(kMany, key);
  Sender& sender = *senders.find(0, address(1));
  EXPECT_TRUE(fill_without_memory(kMany, 32, [&](std::uint32_t i) {
    return messages.create({address(i), pds::PdcRef{i}, 1}, {}, 0, sender, true) != nullptr;
  }));
  for (std::uint32_t i = 0; i < kMany; ++i) {
    EXPECT_NE(senders.find(0, address(i)), nullptr);
    RxMessage* const m = messages.find({address(i), pds::PdcRef{i}, 1});
    ASSERT_NE(m, nullptr);
    messages.release(*m);
  }
}

TEST(Allocation, delivery_index__gets_longer_chains_without_memory) {
  const base::HashKey key{base::Rng(1)};
  std::vector<UnexpectedMessage> messages(512);
  DeliveryIndex index(key);
  is_short = true;
  left_when_short = 0;
  for (std::uint32_t i = 0; i < messages.size(); ++i) {
    messages[i].message_id = static_cast<std::uint16_t>(i + 1);
    index.add(messages[i]);
  }
  is_short = false;
  for (UnexpectedMessage& m : messages) EXPECT_EQ(index.find(m.header, m.message_id), &m);
}

}  // namespace
}  // namespace uet::ses::testing
