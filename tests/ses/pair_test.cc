#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

template <typename H>
void fill(const RawRequest& r, H& h) {
  h.opcode = r.opcode;
  h.version = r.version;
  h.dc = r.dc;
  h.ie = r.ie;
  h.rel = r.rel;
  h.hd = r.hd;
  h.som = r.som;
  h.eom = r.eom;
  h.ri_generation = r.generation;
  h.job_id = r.job;
  h.pid_on_fep = r.pid;
  h.resource_index = r.ri;
}

template <typename H>
Bytes finish(const H& h, const Bytes& payload) {
  Bytes out(H::kSize);
  wire::emit(h, out.data());
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

}  // namespace

Bytes encode(const RawRequest& r) {
  if (r.rendezvous) {
    RawRequest inner = r;
    inner.rendezvous.reset();
    inner.covered = r.covered.value_or(static_cast<std::uint16_t>(r.payload.size()));
    inner.payload.resize(wire::ExtRendezvous::kSize);
    wire::emit(*r.rendezvous, inner.payload.data());
    inner.payload.insert(inner.payload.end(), r.payload.begin(), r.payload.end());
    return encode(inner);
  }
  if (r.som) {
    wire::SesStandardFirst h;
    fill(r, h);
    h.message_id = r.message_id;
    h.buffer_offset = r.buffer_offset;
    h.initiator = r.initiator;
    h.mkey_match = r.key;
    h.header_data = r.header_data;
    h.request_length = r.length;
    return finish(h, r.payload);
  }
  wire::SesStandardNext h;
  fill(r, h);
  h.message_id = r.message_id;
  h.buffer_offset = r.buffer_offset;
  h.initiator = r.initiator;
  h.mkey_match = r.key;
  h.payload_length = r.covered.value_or(static_cast<std::uint16_t>(r.payload.size()));
  h.message_offset = r.offset;
  h.request_length = r.length;
  return finish(h, r.payload);
}

Bytes encode_medium(const RawRequest& r) {
  wire::SesMedium h;
  fill(r, h);
  h.request_length = static_cast<std::uint16_t>(r.length);
  h.hdr_or_offset = r.hd ? r.header_data : r.buffer_offset;
  h.initiator = r.initiator;
  h.mkey_match = r.key;
  return finish(h, r.payload);
}

Bytes encode_small(const RawRequest& r) {
  wire::SesSmall h;
  fill(r, h);
  h.request_length = static_cast<std::uint16_t>(r.length);
  h.buffer_offset = r.buffer_offset;
  return finish(h, r.payload);
}

PairTest::PairTest(const SesConfig& config, std::uint64_t seed)
    : fabric(seed, kM), a(fabric.add_node(config)), b(fabric.add_node(config)) {}

EndpointConfig PairTest::standard_endpoint() {
  EndpointConfig c;
  c.job_id = 7;
  c.resource_index = 5;
  return c;
}

void PairTest::open(EndpointConfig config) {
  if (config.resource_index == 0) {
    config.job_id = 7;
    config.resource_index = 5;
  }
  config.initiator_id = 3;
  ea = *a.ses.open_endpoint(fabric.now, config, at_a);
  config.initiator_id = 4;
  eb = *b.ses.open_endpoint(fabric.now, config, at_b);
  b_of_a = *a.ses.add_peer(b.ses.address_of(eb));
  a_of_b = *b.ses.add_peer(a.ses.address_of(ea));
}

pds::Answer PairTest::inject(const RawRequest& r, pds::Mode mode) {
  return inject_bytes(encode(r), wire::NextHdr::kRequestStd, mode);
}

pds::Answer PairTest::inject_bytes(const Bytes& bytes, wire::NextHdr form, pds::Mode mode) {
  pds::RxRequest r;
  r.handle = {raw_pdc, base::Psn(next_raw_psn++), false};
  r.mode = mode;
  r.next_hdr = static_cast<std::uint8_t>(form);
  r.source = net::FabricAddress::from_v4(0x0a000063);
  r.is_proven = raw_is_proven;
  r.bytes = bytes;
  return b.ses.on_request(fabric.now, r);
}

ResponseView PairTest::view(const pds::Answer& answer) {
  EXPECT_EQ(answer.kind, pds::Answer::Kind::kRespond);
  static Bytes bytes;
  bytes.assign(answer.response.header.begin(),
               answer.response.header.begin() + answer.response.header_bytes);
  bytes.insert(bytes.end(), answer.response.data.begin(), answer.response.data.end());
  ResponseView v;
  EXPECT_TRUE(parse_response(answer.response.next_hdr, bytes, v));
  return v;
}

void PairTest::send(const Bytes& bytes, std::uint64_t context, std::optional<std::uint64_t> data) {
  kept.push_back(std::make_unique<Bytes>(bytes));
  const iovec iov = piece(*kept.back());
  SendRequest r;
  r.peer = b_of_a;
  r.iov = {&iov, 1};
  r.context = context;
  r.data = data;
  ASSERT_TRUE(a.ses.send(fabric.now, ea, r).has_value());
}

void PairTest::tsend(const Bytes& bytes, std::uint64_t tag, std::uint64_t context,
                     std::optional<std::uint64_t> data) {
  kept.push_back(std::make_unique<Bytes>(bytes));
  const iovec iov = piece(*kept.back());
  SendRequest r;
  r.peer = b_of_a;
  r.tagged = true;
  r.tag = tag;
  r.iov = {&iov, 1};
  r.context = context;
  r.data = data;
  ASSERT_TRUE(a.ses.send(fabric.now, ea, r).has_value());
}

void PairTest::post(Bytes& bytes, std::uint64_t context) {
  const iovec iov = piece(bytes);
  ReceiveRequest r;
  r.iov = {&iov, 1};
  r.context = context;
  ASSERT_TRUE(b.ses.receive(fabric.now, eb, r).has_value());
}

void PairTest::tpost(Bytes& bytes, std::uint64_t tag, std::uint64_t ignore, std::uint64_t context) {
  const iovec iov = piece(bytes);
  ReceiveRequest r;
  r.tagged = true;
  r.tag = tag;
  r.ignore = ignore;
  r.iov = {&iov, 1};
  r.context = context;
  ASSERT_TRUE(b.ses.receive(fabric.now, eb, r).has_value());
}

std::uint64_t PairTest::expose(Bytes& bytes, bool read, bool write) {
  const iovec iov = piece(bytes);
  MemoryRequest r;
  r.iov = {&iov, 1};
  r.remote_read = read;
  r.remote_write = write;
  r.virtual_addressing = false;
  return *b.ses.register_memory(r);
}

void PairTest::rma(bool read, Bytes& bytes, std::uint64_t key, std::uint64_t offset,
                   std::uint64_t context) {
  const iovec iov = piece(bytes);
  RmaRequest r;
  r.peer = b_of_a;
  r.read = read;
  r.iov = {&iov, 1};
  r.key = key;
  r.remote_offset = offset;
  r.context = context;
  ASSERT_TRUE(a.ses.rma(fabric.now, ea, r).has_value());
}

void PairTest::expect_nothing_left() {
  for (Ses* s : {&sa(), &sb()}) {
    const auto g = s->gauges();
    EXPECT_EQ(g.sends_active + g.receives_posted + g.messages_receiving + g.unexpected_messages +
                  g.unexpected_bytes + g.header_only_messages + g.messages_fetching +
                  g.memory_regions + g.messages_held + g.returns_open,
              0u);
  }
  EXPECT_EQ(a.locks + b.locks, 0);
}

}  // namespace uet::ses::testing
