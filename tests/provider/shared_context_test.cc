/// Contexts that endpoints share, through libfabric's calls.
#include <algorithm>
#include <array>
#include <utility>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

/// B has three endpoints with one receive and one transmit context.
class SharedContextTest : public PairTest {
 protected:
  static constexpr std::size_t kEndpoints = 3;

  ~SharedContextTest() override {
    for (fid_ep* ep : endpoints)
      if (ep != nullptr) {
        EXPECT_EQ(fi_close(&ep->fid), 0);
      }
    if (stx != nullptr) {
      EXPECT_EQ(fi_close(&stx->fid), 0);
    }
    if (srx != nullptr) {
      EXPECT_EQ(fi_close(&srx->fid), 0);
    }
  }
  void open_shared(std::size_t tx_size = 0, std::uint64_t cq_flags = FI_TRANSMIT | FI_RECV) {
    a.open(address_of(2), *make_hints());
    a.open_endpoint();
    const Info hints = make_hints();
    hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
    b.open(address_of(3), *hints);
    ASSERT_FALSE(HasFatalFailure());
    b.name = a.name;
    to_a = b.insert(a);
    fi_tx_attr tx = *b.info->tx_attr;
    if (tx_size != 0) tx.size = tx_size;
    ASSERT_EQ(fi_stx_context(b.domain, &tx, &stx, nullptr), 0);
    ASSERT_EQ(fi_srx_context(b.domain, b.info->rx_attr, &srx, nullptr), 0);
    for (std::size_t i = 0; i < kEndpoints; ++i) open_one(i, cq_flags);
  }
  void open_one(std::size_t i, std::uint64_t cq_flags) {
    fid_ep*& ep = endpoints[i];
    ASSERT_EQ(fi_endpoint(b.domain, b.info.get(), &ep, nullptr), 0);
    ASSERT_EQ(fi_ep_bind(ep, &b.av->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(ep, &b.cq->fid, cq_flags), 0);
    EXPECT_EQ(fi_enable(ep), -FI_EOPBADSTATE) << "its contexts are not there yet";
    ASSERT_EQ(fi_ep_bind(ep, &stx->fid, 0), 0);
    ASSERT_EQ(fi_ep_bind(ep, &srx->fid, 0), 0);
    EXPECT_EQ(fi_ep_bind(ep, &srx->fid, 0), -FI_EBUSY);
    ASSERT_EQ(fi_enable(ep), 0);
    b.name.resize(32);
    std::size_t length = b.name.size();
    ASSERT_EQ(fi_getname(&ep->fid, b.name.data(), &length), 0);
    to[i] = a.insert(b);
  }

  fid_stx* stx = nullptr;
  fid_ep* srx = nullptr;
  std::array<fid_ep*, kEndpoints> endpoints{};
  std::array<fi_addr_t, kEndpoints> to{};
};

// Covers: FI-79, FI-80
TEST_F(SharedContextTest, fi_getinfo__offers_them_and_repeats_the_wish) {
  const Info hints = make_hints();
  const Info plain = get_info(hints.get());
  ASSERT_NE(plain, nullptr);
  EXPECT_GE(plain->domain_attr->max_ep_stx_ctx, 1u);
  EXPECT_GE(plain->domain_attr->max_ep_srx_ctx, 1u);
  EXPECT_EQ(plain->ep_attr->rx_ctx_cnt, 1u);
  hints->ep_attr->tx_ctx_cnt = hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
  hints->domain_attr->max_ep_stx_ctx = hints->domain_attr->max_ep_srx_ctx = 4;
  const Info shared = get_info(hints.get());
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(shared->ep_attr->tx_ctx_cnt, FI_SHARED_CONTEXT);
  EXPECT_EQ(shared->ep_attr->rx_ctx_cnt, FI_SHARED_CONTEXT);
  EXPECT_GE(shared->domain_attr->max_ep_srx_ctx, 4u);
  hints->ep_attr->rx_ctx_cnt = 2;
  EXPECT_EQ(get_info(hints.get()), nullptr) << "that is a scalable endpoint";
}

// Covers: FI-80
TEST_F(SharedContextTest, receives__are_taken_by_messages_to_any_endpoint) {
  open_shared();
  ASSERT_FALSE(HasFatalFailure());
  std::array<std::vector<std::uint8_t>, kEndpoints> in;
  std::array<std::vector<std::uint8_t>, kEndpoints> out;
  for (std::size_t i = 0; i < kEndpoints; ++i) {
    in[i].resize(100'000);
    out[i] = pattern(100'000, static_cast<std::uint8_t>(i + 1));
    ASSERT_EQ(fi_trecv(srx, in[i].data(), in[i].size(), nullptr, FI_ADDR_UNSPEC, 7, 0, &in[i]), 0);
    EXPECT_EQ(fi_trecv(endpoints[i], in[i].data(), 1, nullptr, FI_ADDR_UNSPEC, 7, 0, nullptr),
              -FI_EOPNOTSUPP);
  }
  for (std::size_t i = 0; i < kEndpoints; ++i) {
    const std::size_t last = kEndpoints - 1 - i;
    ASSERT_EQ(fi_tsend(a.ep, out[last].data(), out[last].size(), nullptr, to[last], 7, nullptr), 0);
    const Got got = wait_for(b);
    ASSERT_FALSE(got.failed);
    EXPECT_EQ(got.entry.op_context, &in[i]) << "in the order of posting";
    EXPECT_EQ(got.entry.flags & (FI_TAGGED | FI_RECV), FI_TAGGED | FI_RECV);
    EXPECT_EQ(in[i], out[last]);
    EXPECT_FALSE(wait_for(a).failed);
  }
}

// Covers: FI-80
TEST_F(SharedContextTest, receives__take_what_waited_at_any_endpoint) {
  open_shared();
  ASSERT_FALSE(HasFatalFailure());
  for (std::size_t i = 0; i < kEndpoints; ++i) {
    const std::uint32_t word = static_cast<std::uint32_t>(i);
    ASSERT_EQ(fi_inject(a.ep, &word, sizeof word, to[i]), 0);
  }
  expect_silence(b);
  std::array<std::uint32_t, kEndpoints> words{9, 9, 9};
  for (std::uint32_t& word : words)
    ASSERT_EQ(fi_recv(srx, &word, sizeof word, nullptr, FI_ADDR_UNSPEC, &word), 0);
  for (std::size_t i = 0; i < kEndpoints; ++i) EXPECT_FALSE(wait_for(b).failed);
  std::ranges::sort(words);
  EXPECT_EQ(words, (std::array<std::uint32_t, kEndpoints>{0, 1, 2}));
}

// Covers: FI-80
TEST_F(SharedContextTest, multi_receive__and_selective_completion) {
  open_shared(0, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION);
  ASSERT_FALSE(HasFatalFailure());
  std::vector<std::uint8_t> buffer(4096);
  const std::size_t min = 1024;
  ASSERT_EQ(fi_setopt(&srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof min), 0);
  EXPECT_EQ(fi_setopt(&endpoints[0]->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof min),
            -FI_EOPNOTSUPP);
  std::size_t told = 0, length = sizeof told;
  ASSERT_EQ(fi_getopt(&srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &told, &length), 0);
  EXPECT_EQ(told, min);
  const iovec iov{buffer.data(), buffer.size()};
  const fi_msg m{.msg_iov = &iov,
                 .desc = nullptr,
                 .iov_count = 1,
                 .addr = FI_ADDR_UNSPEC,
                 .context = &buffer,
                 .data = 0};
  ASSERT_EQ(fi_recvmsg(srx, &m, FI_MULTI_RECV | FI_COMPLETION), 0);
  const auto bytes = pattern(2000, 3);
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(fi_send(a.ep, bytes.data(), bytes.size(), nullptr, to[i], nullptr), 0);
    const Got got = wait_for(b);
    ASSERT_FALSE(got.failed);
    EXPECT_EQ(got.entry.buf, buffer.data() + i * 2000);
    EXPECT_EQ((got.entry.flags & FI_MULTI_RECV) != 0, i == 1);
    EXPECT_FALSE(wait_for(a).failed);
  }
  // Without FI_COMPLETION no entry, as the endpoint was bound.
  std::uint32_t word = 9;
  ASSERT_EQ(fi_recv(srx, &word, sizeof word, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  const std::uint32_t sent = 5;
  ASSERT_EQ(fi_inject(a.ep, &sent, sizeof sent, to[2]), 0);
  EXPECT_TRUE(turn_until([&] { return *static_cast<volatile std::uint32_t*>(&word) == 5; }));
  expect_silence(b);
}

TEST_F(SharedContextTest, cancel__is_reported_by_the_endpoint_that_was_bound_first) {
  open_shared();
  ASSERT_FALSE(HasFatalFailure());
  int word = 0;
  ASSERT_EQ(fi_recv(srx, &word, sizeof word, nullptr, FI_ADDR_UNSPEC, &word), 0);
  EXPECT_EQ(fi_cancel(&endpoints[0]->fid, &word), -FI_ENOENT);
  ASSERT_EQ(fi_cancel(&srx->fid, &word), 0);
  const Got got = wait_for(b);
  ASSERT_TRUE(got.failed);
  EXPECT_EQ(got.error.err, FI_ECANCELED);
  EXPECT_EQ(got.error.op_context, &word);
  EXPECT_EQ(fi_cancel(&srx->fid, &word), -FI_ENOENT);
}

// Covers: FI-79
TEST_F(SharedContextTest, sends__of_all_endpoints_count_against_one_bound) {
  open_shared(2);
  ASSERT_FALSE(HasFatalFailure());
  // An address without an endpoint: what is sent there stays under way.
  b.name[16 + 3] = static_cast<std::uint8_t>(b.name[16 + 3] + 100);
  const fi_addr_t silent = b.insert(b);
  const int word = 1;
  EXPECT_EQ(endpoints[2]->ops->tx_size_left(endpoints[2]), 2);
  ASSERT_EQ(fi_send(endpoints[0], &word, sizeof word, nullptr, silent, nullptr), 0);
  ASSERT_EQ(fi_send(endpoints[1], &word, sizeof word, nullptr, silent, nullptr), 0);
  EXPECT_EQ(endpoints[2]->ops->tx_size_left(endpoints[2]), 0);
  EXPECT_EQ(fi_send(endpoints[2], &word, sizeof word, nullptr, to_a, nullptr), -FI_EAGAIN);
  // What an endpoint had under way goes with it.
  ASSERT_EQ(fi_close(&endpoints[0]->fid), 0);
  endpoints[0] = nullptr;
  int got = 0;
  ASSERT_EQ(fi_recv(a.ep, &got, sizeof got, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  EXPECT_EQ(fi_send(endpoints[2], &word, sizeof word, nullptr, to_a, nullptr), 0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(got, 1);
}

TEST_F(SharedContextTest, contexts__are_kept_by_their_endpoints) {
  open_shared();
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(fi_close(&srx->fid), -FI_EBUSY);
  const Info info(fi_dupinfo(b.info.get()));
  info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 1;
  fid_ep* own = nullptr;
  ASSERT_EQ(fi_endpoint(b.domain, info.get(), &own, nullptr), 0);
  EXPECT_EQ(fi_ep_bind(own, &srx->fid, 0), -FI_EINVAL);
  // A bound on sends can be had at any time: Sandia OpenSHMEM enables its only endpoint first.
  ASSERT_EQ(fi_ep_bind(own, &b.av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(own, &b.cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_enable(own), 0);
  EXPECT_EQ(fi_ep_bind(own, &stx->fid, 0), 0);
  EXPECT_EQ(fi_ep_bind(own, &stx->fid, 0), -FI_EBUSY);
  // As it closes the context before that endpoint.
  fid_stx* brief = nullptr;
  ASSERT_EQ(fi_stx_context(b.domain, nullptr, &brief, nullptr), 0);
  EXPECT_EQ(fi_close(&brief->fid), 0);
  EXPECT_EQ(fi_close(&std::exchange(stx, nullptr)->fid), 0);
  std::uint32_t got = 0;
  const std::uint32_t sent = 6;
  ASSERT_EQ(fi_recv(a.ep, &got, sizeof got, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(own, &sent, sizeof sent, nullptr, to_a, nullptr), 0);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(got, sent);
  EXPECT_EQ(fi_close(&own->fid), 0);
  fi_tx_attr large = *b.info->tx_attr;
  large.size = std::size_t{1} << 40;
  fid_stx* none = nullptr;
  EXPECT_EQ(fi_stx_context(b.domain, &large, &none, nullptr), -FI_EINVAL);
}

}  // namespace
}  // namespace uet::provider::testing
