/// What the parts of the target's half work on, without a Ses or packet delivery.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "ses/rx_shared.h"
#include "tests/ses/fabric.h"
#include "tests/ses/return_carrier.h"

namespace uet::ses::testing {

/// The Transmitter that issues READs and requests to restart.
class RecordedFetcher final : public Fetcher {
 public:
  bool fetch(Instant, Fetch& fetch, const FetchRequest& request) override {
    asked.push_back({&fetch, request});
    return true;
  }
  void give_up(Instant, Fetch& fetch) override { given_up.push_back(&fetch); }

  struct Asked {
    Fetch* fetch;
    FetchRequest request;
  };
  std::vector<Asked> asked;
  std::vector<Fetch*> given_up;
};

struct RxPartsTest : ::testing::Test {
  static constexpr std::uint32_t kMtu = 1024;

  explicit RxPartsTest(const SesConfig& config = {})
      : core(config, kMtu, net::FabricAddress::from_v4(0x0a000002), rng, trace), shared(core) {
    core.carrier = &carrier;
    core.fetcher = &fetcher;
    endpoint = *core.endpoints.open(now, {}, sink);
    shared.clock.advance(now);
  }

  static net::FabricAddress source(std::uint32_t n) {
    return net::FabricAddress::from_v4(0x0a000100 + n);
  }
  PeerId add_peer(std::uint32_t n) {
    Address address;
    address.fabric_address = source(n);
    address.resource_index = 1;
    return *core.peers.add(address);
  }
  Sender& sender(std::uint32_t n) {
    return *shared.senders.find_or_make(endpoint->id, source(n), shared.clock.ns(), true);
  }
  RiSpace& space() { return endpoint->space(Space::kUntagged); }

  /// The first packet of a send of `length` bytes of source `n`. Its message id is new.
  RequestContext send_of(std::uint32_t n, std::uint32_t length, pds::Mode mode = pds::Mode::kRud) {
    return packet_of(n, next_id++, length, 0, mode);
  }
  /// The packet of that message at `offset`.
  RequestContext more_of(const RequestContext& first, std::uint32_t offset) {
    return packet_of(first.key.pdc.value, first.key.message_id, first.request.request_length,
                     offset, first.packet.mode);
  }
  RequestContext packet_of(std::uint32_t n, std::uint16_t id, std::uint32_t length,
                           std::uint32_t offset, pds::Mode mode) {
    requests.push_back({.handle = {pds::PdcRef{n}, base::Psn(1), false}, .mode = mode});
    requests.back().is_proven = true;
    requests.back().source = source(n);
    RequestContext c{now, requests.back(), {}, {source(n), pds::PdcRef{n}, id}};
    RequestView& r = c.request;
    r.form = wire::NextHdr::kRequestStd;
    r.opcode = SesOpcode::kSend;
    r.kind = OpcodeClass::kSend;
    r.rel = true;
    r.message_id = id;
    r.request_length = r.carried_length = length;
    r.message_offset = offset;
    r.covered = std::min(kMtu, length - offset);
    r.som = offset == 0;
    r.eom = offset + r.covered == length;
    r.payload = {bytes.data() + offset, r.covered};
    c.endpoint = endpoint;
    return c;
  }
  /// As the checks find it before the message begins.
  void find_place(RequestContext& c) {
    if (!c.request.is_single()) {
      ASSERT_TRUE(shared.shares.has_place(c));
    }
  }
  static ResponseView view(const pds::Answer& answer) {
    ResponseView v;
    EXPECT_EQ(answer.kind, pds::Answer::Kind::kRespond);
    EXPECT_TRUE(parse_response(answer.response.next_hdr,
                               {answer.response.header.data(), answer.response.header_bytes}, v));
    return v;
  }

  /// A receive for `length` bytes of any source, not posted.
  Receive& make_receive(std::size_t length, std::uint64_t context = 1, bool multi_recv = false) {
    const iovec iov{buffer.data(), length};
    ReceiveRequest request;
    request.iov = {&iov, 1};
    request.context = context;
    request.multi_recv = multi_recv;
    PostError error{};
    Receive* r = shared.receives.make(*endpoint, request, nullptr, error);
    EXPECT_NE(r, nullptr);
    return *r;
  }
  Receive& post(std::size_t length, std::uint64_t context = 1, bool multi_recv = false) {
    Receive& r = make_receive(length, context, multi_recv);
    space().own.post(r);
    return r;
  }
  /// A message of `length` bytes of source `n`, one packet long, that met no receive.
  UnexpectedMessage& keep(std::uint32_t n, std::uint32_t length) {
    RequestContext c = send_of(n, length);
    Sender& from = sender(n);
    UnexpectedMessage& u = *shared.store.admit(endpoint->overflow, from, length);
    EXPECT_TRUE(shared.store.capture(u, 0, c.request.payload));
    shared.senders.hold(from);
    shared.unexpected.enlist(c, space(), u, nullptr);
    return u;
  }
  /// Bytes of the buffer that are those of a message, from `at` on.
  bool has_bytes(std::size_t length, std::size_t at = 0) const {
    return std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length),
                      buffer.begin() + static_cast<std::ptrdiff_t>(at));
  }
  void wait(Duration time) {
    for (Duration done; done < time; done = done + Duration::from_seconds(1))
      shared.clock.advance(now = now + Duration::from_seconds(1));
  }

  static std::vector<std::uint8_t> pattern() {
    std::vector<std::uint8_t> all(8192);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i % 251 + 1);
    return all;
  }

  Instant now = Instant::from_ns(1'000'000);
  base::Rng rng{1};
  base::Trace trace;
  Recorder sink;
  ReturnCarrier carrier;
  RecordedFetcher fetcher;
  std::deque<pds::RxRequest> requests;
  std::uint16_t next_id = 1;
  const std::vector<std::uint8_t> bytes = pattern();
  std::vector<std::uint8_t> buffer = std::vector<std::uint8_t>(8192);
  Core core;
  Endpoint* endpoint = nullptr;
  RxShared shared;
};

}  // namespace uet::ses::testing
