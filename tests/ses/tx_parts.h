/// The parts of the initiator's half, without a Ses, a Receiver or packet delivery.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ses/posting.h"
#include "ses/tx_responses.h"
#include "tests/ses/fabric.h"

namespace uet::ses::testing {

/// A carrier that takes as much as the test says, and delivers nothing.
class SendCarrier final : public pds::Carrier {
 public:
  pds::SubmitResult submit(Instant, const pds::TxMessage& message) override {
    if (taken.size() >= room) return pds::SubmitResult::kAgain;
    taken.push_back(message);
    return pds::SubmitResult::kQueued;
  }
  pds::SubmitResult submit_return(Instant, pds::RxHandle, const pds::TxMessage&) override {
    return pds::SubmitResult::kNever;
  }
  void unlock(Instant, pds::PdcRef) override { ++unlocked; }
  void abort(Instant, pds::MessageToken token) override { aborted.push_back(token); }
  std::uint32_t truncate(Instant, pds::MessageToken, std::uint32_t) override { return sent; }

  void hurry(Instant, pds::MessageToken token) override { hurried.push_back(token); }

  std::vector<pds::TxMessage> taken;
  std::vector<pds::MessageToken> hurried;
  std::size_t room = 1'000'000;
  std::uint32_t sent = 0;  ///< segments of a message that is truncated
  std::vector<pds::MessageToken> aborted;
  int unlocked = 0;
};

inline EndpointConfig with_ordered_sends() {
  EndpointConfig c;
  c.sends_ordered = true;
  return c;
}
inline SesConfig with_sprayed_order() {
  SesConfig c;
  c.spray_ordered = true;
  return c;
}

struct TxPartsTest : ::testing::Test {
  static constexpr std::uint32_t kMtu = 1024;

  explicit TxPartsTest(const SesConfig& config = {}, const EndpointConfig& endpoint_config = {})
      : core(config, kMtu, net::FabricAddress::from_v4(0x0a000001), rng, trace) {
    core.carrier = &carrier;
    endpoint = *core.endpoints.open(now, endpoint_config, sink);
    peer = add_peer(2, kFetchesRendezvous | kRestoresOrder | kTakesSmall | 0b100);
  }
  PeerId add_peer(std::uint32_t n, std::uint16_t fep_cap) {
    Address address;
    address.fabric_address = net::FabricAddress::from_v4(0x0a000000 + n);
    address.resource_index = 1;
    address.fep_cap = fep_cap;
    return *core.peers.add(address);
  }

  /// A send of the first bytes of `memory`, posted; its operation.
  TxOp& send(std::size_t length, std::uint64_t context = 0, bool fence = false) {
    const iovec iov{memory.data(), length};
    SendRequest r;
    r.peer = peer;
    r.iov = {&iov, 1};
    r.context = context;
    r.fence = fence;
    EXPECT_TRUE(posting.send(now, *endpoint, r));
    return operations.by_age().back();
  }
  TxOp& read(std::size_t length, std::uint64_t key = 1) {
    const iovec iov{memory.data(), length};
    RmaRequest r;
    r.peer = peer;
    r.read = true;
    r.iov = {&iov, 1};
    r.key = key;
    EXPECT_TRUE(posting.rma(now, *endpoint, r));
    return operations.by_age().back();
  }
  TxOp& write(std::size_t length, std::uint64_t key = 1) {
    const iovec iov{memory.data(), length};
    RmaRequest r;
    r.peer = peer;
    r.iov = {&iov, 1};
    r.key = key;
    EXPECT_TRUE(posting.rma(now, *endpoint, r));
    return operations.by_age().back();
  }
  /// Order in which operations went, by their place in the pool.
  std::vector<std::uint32_t> went() const {
    std::vector<std::uint32_t> order;
    for (const pds::TxMessage& m : carrier.taken) order.push_back(index_of(m.token));
    return order;
  }
  void TearDown() override {
    std::vector<TxOp*> all;
    for (TxOp& op : operations.by_age()) all.push_back(&op);
    for (TxOp* op : all) {
      if (op->state != OpState::kCarried) queues.take_out(*op);
      responses.forget(*op);
      queues.leave(*op);
      operations.release(*op);
    }
  }

  Instant now = Instant::from_ns(1'000'000);
  base::Rng rng{1};
  base::Trace trace;
  SendCarrier carrier;
  Recorder sink;
  HeapPool pool{4};
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(8192, 1);
  Core core;
  Endpoint* endpoint = nullptr;
  PeerId peer = 0;
  RendezvousSources sources{core};
  Operations operations{core, sources};
  ResponseReader responses{operations.max(), trace};
  SendQueues queues{core, operations, sources};
  Posting posting{core, operations, sources, queues};
};

}  // namespace uet::ses::testing
