// Who may reach what. [SES 2, 3]

#include "tests/ses/pair_test.h"

namespace uet::ses::testing {
namespace {

struct AddressingTest : PairTest {};

RawRequest small_send() {
  RawRequest r;
  r.length = 4;
  r.payload = {1, 2, 3, 4};
  return r;
}

// [SES 2.4] Others use RUDI, and fetch from a rendezvous, only where the address names HPC.
TEST_F(AddressingTest, address__names_the_profiles_of_which_all_is_there) {
  open();
  EXPECT_EQ(sb().address_of(eb).fep_cap & kProfiles, 0);
  SesConfig config;
  config.rendezvous = config.small_headers = true;
  Node& other = fabric.add_node(config);
  Recorder sink;
  const auto endpoint = other.ses.open_endpoint(fabric.now, standard_endpoint(), sink);
  ASSERT_TRUE(endpoint);
  EXPECT_EQ(other.ses.address_of(*endpoint).fep_cap & kProfiles, kAiBase | kAiFull | kHpc);
}

// [decision 168]
TEST_F(AddressingTest, resource_index__is_chosen_from_the_first_on) {
  const auto chosen = [](std::uint16_t first) {
    SesConfig config;
    config.first_index = first;
    base::Rng rng(1);
    base::Trace trace;
    Ses ses(config, 1024, net::FabricAddress::from_v4(0x0a000001), rng, trace);
    std::vector<std::uint16_t> out;
    Recorder sink;
    EndpointConfig wanted;
    for (const std::uint16_t index : {0, 0, 7}) {
      wanted.resource_index = index;
      const auto endpoint = ses.open_endpoint({}, wanted, sink);
      out.push_back(endpoint ? ses.address_of(*endpoint).resource_index : 0);
    }
    EXPECT_EQ(rng.next_u64(), base::Rng(1).next_u64()) << "peers must not see later numbers";
    return out;
  };
  EXPECT_EQ(chosen(1), (std::vector<std::uint16_t>{1, 2, 7}));
  EXPECT_EQ(chosen(300), (std::vector<std::uint16_t>{300, 301, 7}));
  EXPECT_EQ(chosen(kMaxIndex), (std::vector<std::uint16_t>{kMaxIndex, 1, 7}));
}

// Covers: SES-1
TEST_F(AddressingTest, relative__each_wrong_part_has_its_code) {
  open();
  Bytes into(4);
  post(into);
  RawRequest r = small_send();
  EXPECT_EQ(code_of(r), ReturnCode::kOk);
  EXPECT_EQ(into, (Bytes{1, 2, 3, 4}));
  r.job = 8;
  EXPECT_EQ(code_of(r), ReturnCode::kBadJobId);
  r = small_send();
  r.pid = 1;
  EXPECT_EQ(code_of(r), ReturnCode::kBadPid);
  r = small_send();
  r.ri = 6;
  EXPECT_EQ(code_of(r), ReturnCode::kBadIndex);
}

// Covers: SES-2
TEST_F(AddressingTest, absolute__job_is_only_authorization) {
  EndpointConfig c = standard_endpoint();
  c.relative = false;
  open(c);
  Bytes one(4), two(4);
  post(one);
  RawRequest r = small_send();
  r.rel = false;
  r.job = 8;
  EXPECT_EQ(code_of(r), ReturnCode::kOk);
  c.accept_any_job = false;
  c.resource_index = 6;
  Recorder strict_sink;
  ASSERT_TRUE(sb().open_endpoint(fabric.now, c, strict_sink));
  r.ri = 6;
  EXPECT_EQ(code_of(r), ReturnCode::kPermViolation);
}

// Covers: SES-3
TEST_F(AddressingTest, relative_endpoint__absolute_packet_does_not_reach_it) {
  open();
  RawRequest r = small_send();
  r.rel = false;
  EXPECT_EQ(code_of(r), ReturnCode::kBadPid);
}

// Covers: SES-4
TEST_F(AddressingTest, spaces__tagged_only_index_is_unknown_to_send) {
  EndpointConfig c = standard_endpoint();
  c.has_untagged = false;
  open(c);
  Bytes into(4);
  tpost(into, 0, ~0ull);
  EXPECT_EQ(code_of(small_send()), ReturnCode::kBadIndex);
  EXPECT_TRUE(at_b.all.empty());
  EXPECT_EQ(sb().gauges().receives_posted, 1u);
}

// Covers: SES-5
TEST_F(AddressingTest, open_endpoint__duplicate_address_is_refused) {
  open();
  Recorder other;
  const auto second = sb().open_endpoint(fabric.now, standard_endpoint(), other);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), PostError::kAddressInUse);
  Bytes into(4);
  post(into);
  EXPECT_EQ(code_of(small_send()), ReturnCode::kOk);
}

// Covers: SES-6
TEST_F(AddressingTest, close_endpoint__index_rests_and_old_packets_are_answered) {
  open();
  Bytes into(3 * kM);
  post(into);
  RawRequest first = small_send(), behind = small_send(), last = small_send();
  first.length = behind.length = last.length = 3 * kM;
  first.payload = behind.payload = last.payload = Bytes(kM, 1);
  first.eom = behind.som = behind.eom = last.som = false;
  behind.offset = kM;
  last.offset = 2 * kM;
  EXPECT_EQ(code_of(first), ReturnCode::kOk);
  sb().close_endpoint(fabric.now, eb);
  EXPECT_EQ(code_of(small_send()), ReturnCode::kBadJobId);
  Recorder next;
  EXPECT_EQ(sb().open_endpoint(fabric.now, standard_endpoint(), next).error(),
            PostError::kAddressRests);
  fabric.advance(Duration::from_seconds(1));
  const auto opened = sb().open_endpoint(fabric.now, standard_endpoint(), next);
  ASSERT_TRUE(opened);
  const iovec iov = piece(into);
  ReceiveRequest rr;
  rr.iov = {&iov, 1};
  ASSERT_TRUE(sb().receive(fabric.now, *opened, rr));
  std::fill(into.begin(), into.end(), std::uint8_t{0});
  EXPECT_NE(code_of(behind), ReturnCode::kOk);
  EXPECT_NE(code_of(last), ReturnCode::kOk);
  EXPECT_TRUE(next.all.empty());
  EXPECT_EQ(into, Bytes(3 * kM));
}

// Covers: SES-7
TEST_F(AddressingTest, region_of_one_job__other_jobs_are_refused) {
  EndpointConfig c = standard_endpoint();
  c.relative = false;
  open(c);
  Bytes memory(16);
  const iovec iov = piece(memory);
  MemoryRequest m;
  m.iov = {&iov, 1};
  m.remote_write = true;
  m.virtual_addressing = false;
  m.job_id = 7;
  RawRequest r = small_send();
  r.opcode = SesOpcode::kWrite;
  r.key = *sb().register_memory(m);
  r.rel = false;
  r.job = 8;
  EXPECT_EQ(code_of(r), ReturnCode::kPermViolation);
  EXPECT_EQ(memory, Bytes(16));
  r.job = 7;
  EXPECT_EQ(code_of(r), ReturnCode::kOk);
  EXPECT_EQ(memory[0], 1);
}

// Covers: SES-8
TEST_F(AddressingTest, receive_of_one_job__other_jobs_take_the_next) {
  EndpointConfig c = standard_endpoint();
  c.relative = false;
  open(c);
  Bytes first(4), second(4);
  const iovec iov = piece(first);
  ReceiveRequest rr;
  rr.iov = {&iov, 1};
  rr.context = 1;
  rr.job_id = 7;
  ASSERT_TRUE(sb().receive(fabric.now, eb, rr));
  post(second, 2);
  RawRequest r = small_send();
  r.rel = false;
  r.job = 8;
  EXPECT_EQ(code_of(r), ReturnCode::kOk);
  ASSERT_EQ(at_b.all.size(), 1u);
  EXPECT_EQ(at_b.all[0].context, 2u);
}

// Covers: SES-9
TEST_F(AddressingTest, chosen_index__is_never_0) {
  open();
  Recorder other;
  EndpointConfig c = standard_endpoint();
  c.resource_index = 0;
  const auto id = sb().open_endpoint(fabric.now, c, other);
  ASSERT_TRUE(id);
  EXPECT_NE(sb().address_of(*id).resource_index, 0);
  RawRequest r = small_send();
  r.ri = 0;
  EXPECT_EQ(code_of(r), ReturnCode::kBadIndex);
}

// Covers: SES-10
TEST_F(AddressingTest, peer_without_initiator_id__can_be_sent_to_but_not_named_in_a_receive) {
  open();
  Address anonymous = sb().address_of(eb);
  anonymous.has_initiator_id = false;
  const PeerId peer = *sa().add_peer(anonymous);
  ReceiveRequest rr;
  rr.source = peer;
  const auto refused = sa().receive(fabric.now, ea, rr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), PostError::kBadArgument);
  Bytes into(1);
  post(into);
  b_of_a = peer;
  send(Bytes{9});
  fabric.run();
  EXPECT_EQ(into[0], 9);
}

TEST_F(AddressingTest, peers__same_address_shares_one_until_the_last_is_removed) {
  open();
  const Address address = sb().address_of(eb);
  const PeerId again = *sa().add_peer(address);
  EXPECT_EQ(again, b_of_a);
  sa().remove_peer(again);
  SendRequest r;
  r.peer = b_of_a;
  EXPECT_TRUE(sa().send(fabric.now, ea, r));
  sa().remove_peer(b_of_a);
  EXPECT_EQ(sa().send(fabric.now, ea, r).error(), PostError::kBadPeer);
}

TEST_F(AddressingTest, no_op__checks_the_address_and_nothing_else) {
  open();
  RawRequest r;
  r.opcode = SesOpcode::kNoOp;
  EXPECT_EQ(view(inject(r)).opcode, ResponseOpcode::kDefaultResponse);
  r.ri = 9;
  EXPECT_EQ(code_of(r), ReturnCode::kBadIndex);
}

}  // namespace
}  // namespace uet::ses::testing
