/// What the data path never does: allocate per packet, or copy a payload more than once per
/// direction.

#include "fep/security.h"
#include "tests/fep/fep_pair.h"
#include "tests/fep/interpose.h"
#include "tests/tss/fake_keys.h"

namespace uet::test {
namespace {

class DataPathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_interpose()) GTEST_SKIP() << "skipped: the sanitizer has its own malloc and memcpy";
  }

  /// A write of `bytes` from side 0 to side 1; returns what the library was asked for meanwhile.
  LibraryCalls write(FepPair& pair, std::vector<std::uint8_t>& from, std::uint64_t key) {
    const iovec local = iov(from);
    const std::size_t before_count = pair.completions(0).count();
    const LibraryCalls before = library_calls();
    EXPECT_TRUE(pair.ses(0).rma(
        pair.now, pair.sides[0].endpoint,
        ses::RmaRequest{.peer = pair.sides[0].peer, .iov = {&local, 1}, .key = key}));
    EXPECT_TRUE(pair.run_until([&] { return pair.completions(0).count() > before_count; }));
    const LibraryCalls after = library_calls();
    return {after.allocations - before.allocations,
            after.large_copied_bytes - before.large_copied_bytes};
  }

  std::uint64_t expose(FepPair& pair, std::vector<std::uint8_t>& memory) {
    const iovec all = iov(memory);
    const auto key = pair.ses(1).register_memory(ses::MemoryRequest{
        .iov = {&all, 1}, .remote_read = true, .remote_write = true, .virtual_addressing = false});
    EXPECT_TRUE(key);
    return *key;
  }
};

TEST_F(DataPathTest, steady_state__allocates_nothing_per_packet) {
  FepPair pair(LinkConfig{});
  for (Completions* c : {&pair.completions(0), &pair.completions(1)}) c->keep(false);
  auto from = pattern(16 << 20, 1);
  std::vector<std::uint8_t> to(from.size());
  const std::uint64_t key = expose(pair, to);
  write(pair, from, key);  // opens the delivery context
  const std::uint64_t packets_before = pair.count(0, base::EventId::kPacketSent);
  const LibraryCalls calls = write(pair, from, key);
  const std::uint64_t packets = pair.count(0, base::EventId::kPacketSent) - packets_before;
  EXPECT_GE(packets, 4000u);
  EXPECT_EQ(calls.allocations, 0u);
  EXPECT_EQ(to, from);
}

/// With either cipher, and in the mode that derives keys by the packet counter.
TEST_F(DataPathTest, security__allocates_nothing_per_packet_and_copies_nothing_more) {
  for (const tss::CipherLibrary* ciphers : {&tss::openssl_ciphers(), &tss::best_ciphers()}) {
    tss::DomainConfig domain = tss::test::cluster_config();
    domain.rekey = {.mask = 0xffff00, .shift = 8};
    domain.replay_window = 65536;
    FepPair pair(LinkConfig{.loss = 0.01}, {}, false, std::nullopt, false,
                 [&](std::size_t, const net::PortFacts& facts, fep::FepConfig& config) {
                   config.protection = fep::DataProtection::kTss;
                   config.security = *fep::Security::open(
                       std::make_shared<tss::test::FakeKeys>(domain), facts, *ciphers);
                 });
    for (Completions* c : {&pair.completions(0), &pair.completions(1)}) c->keep(false);
    auto from = pattern(16 << 20, 1);
    std::vector<std::uint8_t> to(from.size());
    const std::uint64_t key = expose(pair, to);
    write(pair, from, key);  // opens the delivery context, and makes the ciphers of the peer
    const LibraryCalls calls = write(pair, from, key);
    EXPECT_GT(pair.sides[0].fep->security()->domain().stats().keys_derived, 20u);
    EXPECT_EQ(calls.allocations, 0u) << ciphers->name();
    EXPECT_EQ(to, from);
  }
}

TEST_F(DataPathTest, loss__allocates_nothing_either) {
  FepPair pair(LinkConfig{.loss = 0.02, .reorder = 0.05});
  for (Completions* c : {&pair.completions(0), &pair.completions(1)}) c->keep(false);
  auto from = pattern(16 << 20, 1);
  std::vector<std::uint8_t> to(from.size());
  const std::uint64_t key = expose(pair, to);
  write(pair, from, key);
  const LibraryCalls calls = write(pair, from, key);
  EXPECT_GT(pair.count(0, base::EventId::kPacketRetransmitted), 50u);
  EXPECT_EQ(calls.allocations, 0u);
}

TEST_F(DataPathTest, write__copies_each_byte_once_on_each_side) {
  FepPair pair(LinkConfig{});
  auto from = pattern(16 << 20, 1);
  std::vector<std::uint8_t> to(from.size());
  const std::uint64_t key = expose(pair, to);
  write(pair, from, key);
  const LibraryCalls calls = write(pair, from, key);
  // Out of the user's buffer into the packet, and out of the packet into the user's buffer.
  EXPECT_EQ(calls.large_copied_bytes, 2 * from.size());
}

TEST_F(DataPathTest, retransmission__is_cut_again_from_the_users_buffer) {
  FepPair pair(LinkConfig{.loss = 0.02, .seed = 3});
  auto from = pattern(16 << 20, 1);
  std::vector<std::uint8_t> to(from.size());
  const std::uint64_t key = expose(pair, to);
  write(pair, from, key);
  const std::uint64_t resent_before = pair.count(0, base::EventId::kPacketRetransmitted);
  const LibraryCalls calls = write(pair, from, key);
  const std::uint64_t resent = pair.count(0, base::EventId::kPacketRetransmitted) - resent_before;
  ASSERT_GT(resent, 10u);
  // One more copy for each packet sent again, none for keeping it.
  EXPECT_EQ(calls.large_copied_bytes, 2 * from.size() + resent * pair.sides[0].fep->payload_mtu());
  EXPECT_EQ(to, from);
}

TEST_F(DataPathTest, small_tagged_messages__allocate_nothing) {
  FepPair pair(LinkConfig{});
  for (Completions* c : {&pair.completions(0), &pair.completions(1)}) c->keep(false);
  std::uint64_t out = 1, in = 0;
  const iovec out_iov{&out, 8}, in_iov{&in, 8};
  const auto one = [&](std::uint64_t n) {
    EXPECT_TRUE(
        pair.ses(1).receive(pair.now, pair.sides[1].endpoint,
                            ses::ReceiveRequest{.tagged = true, .tag = n, .iov = {&in_iov, 1}}));
    EXPECT_TRUE(pair.ses(0).send(
        pair.now, pair.sides[0].endpoint,
        ses::SendRequest{
            .peer = pair.sides[0].peer, .tagged = true, .tag = n, .iov = {&out_iov, 1}}));
    EXPECT_TRUE(pair.run_until(
        [&] { return pair.completions(1).count() == n && pair.completions(0).count() == n; }));
  };
  std::uint64_t n = 0;
  while (n < 100) one(++n);
  const LibraryCalls before = library_calls();
  while (n < 1100) one(++n);
  EXPECT_EQ(library_calls().allocations, before.allocations);
}

}  // namespace
}  // namespace uet::test
