// READs whose packets ask for several packets of data each, where the way carries 1,280 bytes. [decision 170]
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
  explicit WideReadTest(SesConfig config = {}, std::uint32_t own = kLargestPayload) {
    config.device_payload = own;
    fabric.payload_mtu = own;
    reader = &fabric.add_node(config);
    source = &fabric.add_node(config);
    reader->ses.set_ways(way);
    source->ses.set_ways(way_back);
    er = *reader->ses.open_endpoint(fabric.now, standard_endpoint(), at_reader);
    es = *source->ses.open_endpoint(fabric.now, standard_endpoint(), at_source);
    address = source->ses.address_of(es);
    know(address);
    memory = pattern(120'000);
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

TEST_F(WideReadTest, packets__ask_for_six_packets_of_data_each) {
  Bytes into(20'000);
  read(into);
  fabric.run();
  const auto asked = requests();
  ASSERT_EQ(asked.size(), 3u);
  const std::array<std::uint32_t, 3> covered{7680, 7680, 4640};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(asked[i].covered, covered[i]);
    EXPECT_TRUE(asked[i].is_wide_read());
  }
  EXPECT_EQ(asked[0].header_data, kData);
  std::vector<std::size_t> expected(15, kData);
  expected.push_back(20'000 - 15 * kData);
  EXPECT_EQ(data_packets(), expected);
  expect_read(into);
}

// So that the packets of several READs have one size. [decision 171]
TEST_F(WideReadTest, short_READ_of_whole_KiB__is_answered_evenly) {
  for (const std::size_t length : {2048u, 3072u, 8192u}) {
    Bytes into(length);
    read(into);
    fabric.run();
    ASSERT_EQ(requests().size(), 1u);
    EXPECT_TRUE(requests()[0].is_wide_read());
    EXPECT_EQ(requests()[0].header_data, 1024u);
    EXPECT_EQ(data_packets(), std::vector<std::size_t>(length / 1024, 1024u));
    expect_read(into);
    forget();
  }
}

constexpr std::array kLengths = {1280u, 1281u, 2048u, 4096u,   5000u,   7679u,   7680u,
                                 7681u, 8960u, 9216u, 15'360u, 16'384u, 32'768u, 100'001u};

TEST_F(WideReadTest, READ__of_any_length_in_any_order) {
  for (const std::size_t length : kLengths) {
    for (int round = 0; round < 5; ++round) {
      Bytes into(length, 0xee);
      read(into, 7);
      fabric.run_randomly();
      expect_read(into, 7);
      at_reader.all.clear();
      at_source.all.clear();
    }
    for (const std::size_t bytes : data_packets()) EXPECT_LE(bytes, kData);
    fabric.sent_log.clear();
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

TEST_F(WideReadTest, other_ways__are_asked_for_one_packet_at_a_time) {
  for (const std::uint32_t carried : {1024u, 2048u, 8192u}) {
    way.payload = carried;
    way_back.payload = 8192;
    Bytes into(3 * carried);
    read(into);
    fabric.run();
    EXPECT_EQ(requests().size(), 3u) << carried;
    EXPECT_EQ(data_packets(), std::vector<std::size_t>(3, carried));
    expect_read(into);
    forget();
  }
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

// What 8192 leave of 1,280 would be a packet of another size in the middle of the data.
TEST_F(WideReadTest, narrow_way_back__cuts_what_one_packet_asked_for_without_a_rest) {
  way.payload = 8192;
  Bytes into(20'000);
  read(into);
  fabric.run();
  EXPECT_EQ(requests().size(), 3u);
  std::vector<std::size_t> expected(19, 1024);
  expected.push_back(20'000 - 19 * 1024);
  EXPECT_EQ(data_packets(), expected);
  expect_read(into);
}

TEST_F(WideReadTest, way_back_that_changes__cuts_no_READ_into_packets_of_two_sizes) {
  way.payload = 8192;
  for (const auto& [before, after] : {std::pair{8192u, 1024u}, {1024u, 8192u}, {1280u, 2048u}}) {
    Bytes into(20'000);
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

struct AllInAcksTest : WideReadTest {
  static SesConfig config() {
    SesConfig c;
    c.max_ack_data = kLargestPayload;
    return c;
  }
  AllInAcksTest() : WideReadTest(config()) {}
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

TEST(WideReadRequest, only_what_says_so__is_one) {
  RawRequest first;
  first.opcode = SesOpcode::kRead;
  first.length = 20'000;
  first.eom = false;
  first.hd = true;
  first.header_data = kData;
  RequestView view;
  const auto parse = [&](const RawRequest& r) {
    EXPECT_TRUE(parse_request(static_cast<std::uint8_t>(wire::NextHdr::kRequestStd), encode(r),
                              kLargestPayload, view));
    return view.is_wide_read();
  };
  EXPECT_TRUE(parse(first));
  EXPECT_EQ(view.covered, kEthernetAsk);
  EXPECT_TRUE(is_well_segmented(view, kLargestPayload));
  RawRequest other = first;
  other.header_data = 1;
  EXPECT_FALSE(parse(other)) << "header data of no size";
  other.header_data = kSmallestPayload;
  EXPECT_FALSE(parse(other)) << "in packets of 1,024 only what one asks for";
  other.length = 8192;
  other.eom = true;
  EXPECT_TRUE(parse(other));
  EXPECT_EQ(view.covered, 8192u);
  EXPECT_TRUE(is_well_segmented(view, kLargestPayload));
  other = first;
  other.hd = false;
  EXPECT_FALSE(parse(other));

  RawRequest next = first;
  next.som = false;
  next.offset = kEthernetAsk;
  next.covered = kEthernetAsk;
  EXPECT_TRUE(parse(next));
  EXPECT_TRUE(is_well_segmented(view, kLargestPayload));
  next.hd = false;
  EXPECT_FALSE(parse(next));
  EXPECT_FALSE(is_well_segmented(view, kLargestPayload)) << "7,680 is no payload MTU";
  next.hd = true;
  next.covered = 4096;
  EXPECT_FALSE(parse(next));

  RawRequest last = first;
  last.som = false;
  last.eom = true;
  last.offset = 2 * kEthernetAsk;
  last.covered = static_cast<std::uint16_t>(20'000 - last.offset);
  EXPECT_TRUE(parse(last));
  EXPECT_TRUE(is_well_segmented(view, kLargestPayload));
  last.opcode = SesOpcode::kWrite;
  last.payload = Bytes(*last.covered);
  EXPECT_FALSE(parse(last));
}

}  // namespace
}  // namespace uet::ses::testing
