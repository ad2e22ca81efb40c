// READs whose packets ask for several packets of data each. [decision 170]
#include <algorithm>
#include <array>

#include "ses/ways.h"
#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

constexpr std::uint32_t kData = kEthernetPayload;

struct OneWay final : Ways {
  std::uint32_t payload = kData;
  std::uint32_t payload_towards(Instant, const net::FabricAddress&) override { return payload; }
};

/// Two nodes that may send 8 KiB, and ways that carry less.
struct WideReadTest : PairTest {
  explicit WideReadTest(SesConfig config = {}, std::uint32_t own = kLargestPayload,
                        const EndpointConfig& endpoint = standard_endpoint(),
                        std::optional<SesConfig> of_reader = {}) {
    config.device_payload = own;
    fabric.payload_mtu = own;
    source = &fabric.add_node(config);
    if (of_reader) config.max_ack_data = of_reader->max_ack_data;
    reader = &fabric.add_node(config);
    reader->ses.set_ways(way);
    source->ses.set_ways(way_back);
    er = *reader->ses.open_endpoint(fabric.now, endpoint, at_reader);
    es = *source->ses.open_endpoint(fabric.now, endpoint, at_source);
    address = source->ses.address_of(es);
    know(address);
    expose(pattern(300'000));
  }
  /// What is read from now on.
  void expose(Bytes bytes) {
    memory = std::move(bytes);
    const iovec iov = piece(memory);
    MemoryRequest m;
    m.iov = {&iov, 1};
    m.remote_read = true;
    m.virtual_addressing = false;
    key = *source->ses.register_memory(m);
  }
  void know(const Address& of_source) { peer = *reader->ses.add_peer(of_source); }
  void read(Bytes& into, std::uint64_t offset = 0, std::uint64_t context = 1) {
    const iovec iov = piece(into);
    RmaRequest r;
    r.peer = peer;
    r.read = true;
    r.iov = {&iov, 1};
    r.key = key;
    r.remote_offset = offset;
    r.context = context;
    ASSERT_TRUE(reader->ses.rma(fabric.now, er, r));
  }
  std::vector<RequestView> requests() const {
    std::vector<RequestView> all;
    for (const Flight& f : fabric.sent_log)
      if (!f.channel->is_return) all.push_back(f.view(kLargestPayload));
    return all;
  }
  std::vector<std::size_t> data_packets() const {
    std::vector<std::size_t> sizes;
    for (const Flight& f : fabric.sent_log)
      if (f.channel->is_return) sizes.push_back(f.bytes.size() - wire::SesResponseData::kSize);
    return sizes;
  }
  void expect_read(const Bytes& into, std::uint64_t offset = 0) {
    ASSERT_EQ(at_reader.all.size(), 1u) << into.size();
    EXPECT_EQ(at_reader.all[0].code, ReturnCode::kOk) << into.size();
    EXPECT_EQ(at_reader.all[0].length, into.size());
    EXPECT_FALSE(at_reader.all[0].has_data);
    EXPECT_EQ(at_source.count(OpKind::kRemoteRead), 1u);
    EXPECT_TRUE(
        std::equal(into.begin(), into.end(), memory.begin() + static_cast<std::ptrdiff_t>(offset)))
        << into.size();
    EXPECT_EQ(source->ses.gauges().returns_open, 0u);
  }

  void forget() {
    at_reader.all.clear();
    at_source.all.clear();
    fabric.sent_log.clear();
  }

  OneWay way, way_back;
  Node* reader;
  Node* source;
  Recorder at_reader, at_source;
  EndpointId er = 0, es = 0;
  Address address;
  PeerId peer = 0;
  Bytes memory;
  std::uint64_t key = 0;
};

TEST_F(WideReadTest, packets__ask_for_eight_packets_of_data_each) {
  for (const std::uint32_t carried : {1024u, kData, 2048u, 4096u, 8192u}) {
    way.payload = carried;
    way_back.payload = 8192;
    Bytes into(19 * carried + 1);
    read(into);
    fabric.run();
    const auto asked = requests();
    ASSERT_EQ(asked.size(), 3u);
    const std::array<std::uint32_t, 3> covered{8 * carried, 8 * carried, 3 * carried + 1};
    for (std::size_t i = 0; i < asked.size(); ++i) {
      EXPECT_EQ(asked[i].covered, covered[i]);
      ASSERT_TRUE(asked[i].is_wide_read());
      EXPECT_EQ(asked[i].wide.packets, 8u);
      EXPECT_EQ(asked[i].wide.payload, carried);
    }
    std::vector<std::size_t> expected(19, carried);
    expected.push_back(1);
    EXPECT_EQ(data_packets(), expected);
    expect_read(into);
    forget();
  }
}

// So that the packets of several READs have one size. [decision 171]
TEST_F(WideReadTest, short_READ_of_whole_KiB__is_answered_evenly) {
  for (const std::size_t length : {2048u, 3072u, 8192u, 9216u, 32'768u}) {
    Bytes into(length);
    read(into);
    fabric.run();
    EXPECT_EQ(requests().size(), (length + 8191) / 8192);
    for (const RequestView& r : requests()) EXPECT_EQ(r.wide.payload, 1024u);
    EXPECT_EQ(data_packets(), std::vector<std::size_t>(length / 1024, 1024u));
    expect_read(into);
    forget();
  }
}

constexpr std::array kLengths = {1280u,   1281u,   2048u,   4096u,    5000u,
                                 7679u,   7680u,   7681u,   8960u,    10'240u,
                                 10'241u, 16'384u, 32'768u, 100'001u, 262'144u};

TEST_F(WideReadTest, READ__of_any_length_in_any_order) {
  for (const std::uint32_t carried : {kData, 8192u}) {
    way.payload = way_back.payload = carried;
    for (const std::size_t length : kLengths) {
      for (int round = 0; round < 5; ++round) {
        Bytes into(length, 0xee);
        read(into, 7);
        fabric.run_randomly();
        expect_read(into, 7);
        at_reader.all.clear();
        at_source.all.clear();
      }
      for (const std::size_t bytes : data_packets()) EXPECT_LE(bytes, carried);
      fabric.sent_log.clear();
    }
  }
}

// Two nodes as over DPDK ports with an MTU of 1500.
struct EthernetReadTest : WideReadTest {
  EthernetReadTest() : WideReadTest({}, kData) {}
};

TEST_F(EthernetReadTest, READ__of_any_length) {
  for (const std::size_t length : kLengths) {
    Bytes into(length, 0xee);
    read(into, 7);
    fabric.run();
    expect_read(into, 7);
    for (const std::size_t bytes : data_packets()) EXPECT_LE(bytes, kData);
    forget();
  }
}

// Whatever the way back carries.
TEST_F(WideReadTest, data_of_a_READ__never_comes_in_more_than_its_device_takes) {
  way_back.payload = kLargestPayload;
  for (const std::size_t length : kLengths) {
    Bytes into(length, 0xee);
    read(into, 7);
    fabric.run();
    expect_read(into, 7);
    for (const std::size_t bytes : data_packets()) EXPECT_LE(bytes, kData) << length;
    forget();
  }
}

TEST_F(WideReadTest, what_fits_one_packet_of_data__is_asked_for_as_ever) {
  Bytes into(kData);
  read(into);
  fabric.run();
  ASSERT_EQ(requests().size(), 1u);
  EXPECT_FALSE(requests()[0].hd);
  EXPECT_EQ(requests()[0].header_data, 0u);
  expect_read(into);
}

TEST_F(WideReadTest, source_that_does_not_know_them__is_asked_for_one_packet_at_a_time) {
  address.fep_cap &= static_cast<std::uint16_t>(~kTakesEthernetPayload);
  know(address);
  Bytes into(5000);
  read(into);
  fabric.run();
  ASSERT_EQ(requests().size(), 5u);
  EXPECT_EQ(requests()[0].header_data, 1024u);
  EXPECT_FALSE(requests()[0].hd);
  EXPECT_EQ(data_packets(), (std::vector<std::size_t>{1024, 1024, 1024, 1024, 904}));
  expect_read(into);
}

/// The reader's device takes 1,280, whatever the way back is said to carry.
TEST_F(WideReadTest, data__comes_as_the_READ_says) {
  way_back.payload = 8192;
  Bytes into(20'000);
  read(into);
  fabric.run();
  EXPECT_EQ(data_packets().size(), 16u);
  expect_read(into);
}

/// Sources that know wide READs, and sources that do not.
struct NarrowWayBackTest : WideReadTest, ::testing::WithParamInterface<bool> {
  NarrowWayBackTest() {
    way.payload = 8192;
    if (GetParam()) return;
    address.fep_cap &= static_cast<std::uint16_t>(~kTakesEthernetPayload);
    know(address);
  }
  std::size_t asked_by_one() const { return GetParam() ? 65'536 : 8192; }
};

// What 8192 leave of 1,280 would be a packet of another size in the middle of the data.
TEST_P(NarrowWayBackTest, what_one_packet_asked_for__is_cut_without_a_rest) {
  Bytes into(100'000);
  read(into);
  fabric.run();
  EXPECT_EQ(requests().size(), into.size() / asked_by_one() + 1);
  std::vector<std::size_t> expected(97, 1024);
  expected.push_back(100'000 - 97 * 1024);
  EXPECT_EQ(data_packets(), expected);
  expect_read(into);
}

TEST_P(NarrowWayBackTest, READ_during_which_it_changes__comes_in_packets_of_one_size) {
  for (const auto& [before, after] : {std::pair{8192u, 1024u}, {1024u, 8192u}, {1280u, 2048u}}) {
    Bytes into(100'000);
    way_back.payload = before;
    read(into);
    fabric.cut_all();
    ASSERT_TRUE(fabric.deliver(0));
    way_back.payload = after;
    fabric.run();
    expect_read(into);
    const std::size_t piece = before == 1280 ? 1024 : before;
    EXPECT_EQ(data_packets().size(), (into.size() + piece - 1) / piece);
    forget();
  }
}

INSTANTIATE_TEST_SUITE_P(Sources, NarrowWayBackTest, ::testing::Bool());

// The source copies what a packet of one asks for.
struct OrderedWideReadTest : WideReadTest {
  static EndpointConfig ordered() {
    EndpointConfig c = standard_endpoint();
    c.sends_ordered = c.rma_ordered = true;
    return c;
  }
  OrderedWideReadTest() : WideReadTest({}, kLargestPayload, ordered()) {}
};

TEST_F(OrderedWideReadTest, packets__ask_for_no_more_than_one_may_carry) {
  const std::array<std::pair<std::uint32_t, std::uint32_t>, 4> asked_by_one = {
      {{1024, 8192}, {kData, 7680}, {2048, 8192}, {8192, 8192}}};
  for (const auto& [carried, covered] : asked_by_one) {
    way.payload = carried;
    way_back.payload = 8192;
    Bytes into(50'000);
    read(into);
    fabric.run();
    const auto asked = requests();
    ASSERT_EQ(asked.size(), into.size() / covered + 1);
    for (const RequestView& r : asked) {
      EXPECT_EQ(r.is_wide_read(), carried < 8192);
      EXPECT_TRUE(r.eom || r.covered == covered);
    }
    expect_read(into);
    forget();
  }
}

struct AllInAcksTest : WideReadTest {
  static SesConfig config() {
    SesConfig c;
    c.max_ack_data = kLargestPayload;
    return c;
  }
  AllInAcksTest() : WideReadTest(config(), kLargestPayload, standard_endpoint(), SesConfig{}) {}
};

TEST_F(AllInAcksTest, data__never_comes_on_ACKs) {
  for (const std::size_t length : {5000u, 20'000u}) {
    Bytes into(length);
    read(into);
    fabric.run_randomly();
    expect_read(into);
    EXPECT_EQ(data_packets().size(), (length + kData - 1) / kData);
    forget();
  }
}

RawRequest wide_request(std::uint32_t length, const WideAsk& ask) {
  RawRequest first;
  first.opcode = SesOpcode::kRead;
  first.length = length;
  first.eom = false;
  first.hd = true;
  first.header_data = ask.pack();
  return first;
}

/// A packet of it behind the first.
RawRequest next_of(RawRequest r, std::uint32_t offset, std::optional<std::uint16_t> covered = {}) {
  r.som = false;
  r.offset = offset;
  r.covered = covered ? *covered : static_cast<std::uint16_t>(r.header_data);
  return r;
}

TEST(WideReadRequest, only_what_says_so__is_one) {
  constexpr WideAsk kAsk{8, kData};
  const RawRequest first = wide_request(30'000, kAsk);
  RequestView view;
  const auto parse = [&](const RawRequest& r) {
    EXPECT_TRUE(parse_request(static_cast<std::uint8_t>(wire::NextHdr::kRequestStd), encode(r),
                              kLargestPayload, view));
    return view.is_wide_read();
  };
  EXPECT_TRUE(parse(first));
  EXPECT_EQ(view.covered, kAsk.bytes());
  EXPECT_TRUE(is_well_segmented(view, kLargestPayload));
  EXPECT_TRUE(parse(wide_request(5000, kAsk)));
  EXPECT_EQ(view.covered, 5000u);
  EXPECT_TRUE(view.eom) << "it needs no mark";
  EXPECT_TRUE(is_well_segmented(view, kLargestPayload));
  for (const WideAsk& ask : {WideAsk{1, 1024}, WideAsk{9, 1024}, WideAsk{8, 1536}, WideAsk{0, 0}})
    EXPECT_FALSE(parse(wide_request(30'000, ask))) << ask.packets << " of " << ask.payload;
  RawRequest other = first;
  for (const std::uint64_t no_ask :
       {std::uint64_t{1280}, ~std::uint64_t{0}, std::uint64_t{1} << 32 | kAsk.pack()}) {
    other.header_data = no_ask;
    EXPECT_FALSE(parse(other)) << no_ask;
  }
  other = first;
  other.hd = false;
  EXPECT_FALSE(parse(other));

  RawRequest next = next_of(first, kAsk.bytes());
  EXPECT_TRUE(parse(next));
  EXPECT_EQ(view.covered, kAsk.bytes());
  EXPECT_TRUE(is_well_segmented(view, kLargestPayload));
  next.hd = false;
  EXPECT_FALSE(parse(next));
  EXPECT_FALSE(is_well_segmented(view, kLargestPayload));
  EXPECT_TRUE(parse(next_of(first, kData)));
  EXPECT_FALSE(is_well_segmented(view, kLargestPayload)) << "begins where none does";
  EXPECT_TRUE(parse(next_of(first, 2 * kAsk.bytes())));
  EXPECT_FALSE(is_well_segmented(view, kLargestPayload)) << "goes beyond the end";

  RawRequest last = next_of(first, 2 * kAsk.bytes());
  last.eom = true;
  EXPECT_TRUE(parse(last));
  EXPECT_EQ(view.covered, 30'000 - 2 * kAsk.bytes());
  EXPECT_TRUE(is_well_segmented(view, kLargestPayload));
  last.offset = kAsk.bytes();
  EXPECT_TRUE(parse(last));
  EXPECT_FALSE(is_well_segmented(view, kLargestPayload)) << "the rest is more than it asks for";
  for (const std::uint32_t offset : {30'000u, 3 * kAsk.bytes(), ~0u}) {
    last.offset = offset;
    EXPECT_TRUE(parse(last));
    EXPECT_FALSE(is_well_segmented(view, kLargestPayload)) << offset;
  }
  RawRequest no_rest = next_of(wide_request(kAsk.bytes(), kAsk), kAsk.bytes());
  no_rest.eom = true;
  EXPECT_TRUE(parse(no_rest));
  EXPECT_FALSE(is_well_segmented(view, kLargestPayload)) << "asks for nothing";
  last = next_of(first, 2 * kAsk.bytes(), 9520);
  last.eom = true;
  last.opcode = SesOpcode::kWrite;
  last.payload = Bytes(*last.covered);
  EXPECT_FALSE(parse(last));
}

// 99 requests behind one that was lost draw 6,336 packets of data: whatever of it is refused would fill the window of the source's PDC,
// and the data of the lost one could not leave. [decision 108]
TEST_F(WideReadTest, data_behind_a_lost_request__is_taken_however_much_it_is) {
  way.payload = 8192;
  way_back.payload = 1024;
  expose(pattern(100 * 65'536, 9));
  Bytes into(memory.size());
  read(into);
  fabric.cut_all();
  ASSERT_EQ(fabric.flights.size(), 100u);
  for (int i = 0; i < 99; ++i) ASSERT_TRUE(fabric.deliver(1));
  fabric.cut_all();
  ASSERT_EQ(fabric.flights.size(), 1 + 99 * 64u);
  for (int i = 0; i < 99 * 64; ++i) ASSERT_TRUE(fabric.deliver(1));
  EXPECT_EQ(fabric.refused, 0u);
  fabric.run();
  expect_read(into);
}

struct FewAskedTest : WideReadTest {
  static SesConfig config() {
    SesConfig c;
    c.asked_packets = 2;
    return c;
  }
  FewAskedTest() : WideReadTest(config()) { way.payload = way_back.payload = 8192; }
};

// They are asked for ahead as if a request were for 8 KiB.
TEST_F(FewAskedTest, READ_behind_more_than_may_be_asked_for__waits) {
  std::vector<Bytes> parts(3, Bytes(65'536));
  for (std::size_t n = 0; n < parts.size(); ++n) read(parts[n], n * 65'536, n);
  fabric.cut_all();
  EXPECT_EQ(requests().size(), 1u);
  fabric.run();
  EXPECT_EQ(requests().size(), 3u);
  EXPECT_EQ(at_reader.all.size(), 3u);
}

struct ManyUnderWayTest : WideReadTest {
  static SesConfig config() {
    SesConfig c;
    c.requests_under_way = 8192;
    return c;
  }
  ManyUnderWayTest() : WideReadTest(config()) {}
};

TEST_F(ManyUnderWayTest, packets__ask_for_less) {
  Bytes into(20'000);
  read(into);
  fabric.run();
  EXPECT_EQ(requests().size(), 8u);
  for (const RequestView& r : requests()) EXPECT_EQ(r.wide.packets, 2u);
  expect_read(into);
}

// The target of a rendezvous reads from sources alone whose addresses it was told, so it knows what they know.
struct RendezvousReadTest : WideReadTest {
  static SesConfig config() {
    SesConfig c;
    c.rendezvous = true;
    c.rendezvous_from = 1;
    return c;
  }
  RendezvousReadTest() : WideReadTest(config()) {}
  void send_and_receive(Bytes& into) {
    const iovec room = piece(into);
    ReceiveRequest receive;
    receive.iov = {&room, 1};
    ASSERT_TRUE(reader->ses.receive(fabric.now, er, receive));
    memory.resize(into.size());
    const iovec message = piece(memory);
    SendRequest send;
    send.peer = *source->ses.add_peer(reader->ses.address_of(er));
    send.iov = {&message, 1};
    ASSERT_TRUE(source->ses.send(fabric.now, es, send));
    fabric.run();
    EXPECT_EQ(at_reader.all.size(), 1u);
    EXPECT_EQ(into, memory);
  }
  std::size_t count_reads() const {
    const auto all = requests();
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [](const RequestView& r) { return r.opcode == SesOpcode::kRead; }));
  }
};

// A source that has served no READ yet is asked for 8 KiB first.
TEST_F(RendezvousReadTest, packets__ask_for_eight_packets_of_data_each) {
  Bytes into(8192 + 17 * kData);
  send_and_receive(into);
  EXPECT_EQ(count_reads(), 1u + 3u);
}

TEST_F(RendezvousReadTest, source_that_knows_no_such_READs__is_asked_for_one_packet_at_a_time) {
  reader->ses.remove_peer(peer);
  address.fep_cap &= static_cast<std::uint16_t>(~kTakesEthernetPayload);
  know(address);
  Bytes into(8192 + 17 * kM);
  send_and_receive(into);
  EXPECT_EQ(count_reads(), 8u + 17u);
}

// The source says which data rides on ACKs, and cuts what does not as it cuts that of any other reader.
struct LongAcksAtReaderTest : WideReadTest {
  static SesConfig of_reader() {
    SesConfig c;
    c.max_ack_data = 6000;
    return c;
  }
  LongAcksAtReaderTest() : WideReadTest({}, kLargestPayload, standard_endpoint(), of_reader()) {}
};

TEST_F(LongAcksAtReaderTest, data_that_might_ride_on_ACKs__is_asked_for_one_packet_at_a_time) {
  for (const std::size_t length : {1500u, 5000u}) {
    Bytes into(length);
    read(into);
    fabric.run();
    EXPECT_EQ(requests().size(), (length + 1023) / 1024);
    expect_read(into);
    forget();
  }
  Bytes into(7000);
  read(into);
  fabric.run();
  EXPECT_EQ(requests().size(), 1u);
  expect_read(into);
}

// Every way carries 1,280 bytes from endpoints that say they know them.
struct NotSaidTest : PairTest {
  explicit NotSaidTest(std::uint32_t device_payload) : PairTest(config(device_payload)) {}
  static SesConfig config(std::uint32_t device_payload) {
    SesConfig c;
    c.device_payload = device_payload;
    return c;
  }
  void expect_refused() {
    open();
    Bytes target = pattern(300'000);
    RawRequest r = wide_request(5000, {8, kData});
    r.key = expose(target);
    EXPECT_EQ(code_of(r), ReturnCode::kOpViolation);
  }
};

struct NarrowDeviceTest : NotSaidTest {
  NarrowDeviceTest() : NotSaidTest(kSmallestPayload) {}
};

TEST_F(NarrowDeviceTest, wide_READ_for_larger_packets_than_it_takes__is_an_error) {
  expect_refused();
}

/// Its payload MTU is kM.
struct SetToSendLessTest : NotSaidTest {
  SetToSendLessTest() : NotSaidTest(kLargestPayload) {}
};

TEST_F(SetToSendLessTest, wide_READ_for_larger_packets_than_it_sends__is_an_error) {
  expect_refused();
}

// The source would have to copy it.
TEST_F(PairTest, ordered_request_for_more_than_a_packet_may_carry__is_an_error) {
  open();
  Bytes target = pattern(300'000);
  RawRequest r = wide_request(60'000, {8, 8192});
  r.key = expose(target);
  EXPECT_EQ(code_of(r, pds::Mode::kRod), ReturnCode::kOpViolation);
  r = wide_request(250'000, {8, 8192});
  r.key = expose(target);
  EXPECT_EQ(code_of(r, pds::Mode::kRod), ReturnCode::kOpViolation);
  EXPECT_EQ(code_of(next_of(r, 65'536), pds::Mode::kRod), ReturnCode::kOpViolation);
}

TEST_F(PairTest, ordered_request_for_more_behind_one_for_less__is_an_error) {
  open();
  Bytes target = pattern(300'000);
  RawRequest r = wide_request(65'536 + 100, {8, 8192});
  r.key = expose(target);
  RawRequest last = next_of(r, 65'536);
  last.eom = true;
  EXPECT_NE(code_of(last, pds::Mode::kRod), ReturnCode::kOpViolation);
  EXPECT_EQ(code_of(r, pds::Mode::kRod), ReturnCode::kOpViolation);
}

}  // namespace
}  // namespace uet::ses::testing
