// The options that say how large an operation of one kind may be: newer than libfabric 1.17, so known by their numbers.
#include <rdma/fi_atomic.h>

#include <algorithm>

#include "tests/provider/fixture.h"

namespace uet::provider::testing {
namespace {

/// As in libfabric 2: FI_OPT_MAX_MSG_SIZE and so on, in this order.
enum Option {
  kMaxMessage = 12,
  kMaxTagged,
  kMaxRma,
  kMaxAtomic,
  kInjectMessage,
  kInjectTagged,
  kInjectRma,
  kInjectAtomic,
};

class SizeOptionsTest : public PairTest {
 protected:
  std::size_t get(int option) {
    std::size_t value = 0, length = sizeof value;
    EXPECT_EQ(fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, option, &value, &length), 0) << option;
    EXPECT_EQ(length, sizeof value);
    return value;
  }
  int set(int option, std::size_t value) {
    return fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, option, &value, sizeof value);
  }
};

// Covers: FI-61
TEST_F(SizeOptionsTest, getopt__says_what_getinfo_said_for_every_kind) {
  open();
  for (const int option : {kMaxMessage, kMaxTagged, kMaxRma})
    EXPECT_EQ(get(option), a.info->ep_attr->max_msg_size);
  const std::size_t inject = a.info->tx_attr->inject_size;
  for (const int option : {kInjectMessage, kInjectTagged, kInjectRma})
    EXPECT_EQ(get(option), inject);
  EXPECT_EQ(get(kInjectAtomic), std::min(inject, get(kMaxAtomic))) << "one packet";
  std::size_t count = 0;
  ASSERT_EQ(fi_atomicvalid(a.ep, FI_UINT64, FI_SUM, &count), 0);
  EXPECT_EQ(get(kMaxAtomic), count * sizeof(std::uint64_t));
  std::size_t value = 0, length = 4;
  EXPECT_EQ(fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, kMaxRma, &value, &length), -FI_ETOOSMALL);
  EXPECT_EQ(fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, kInjectAtomic + 1, &value, &length),
            -FI_ENOPROTOOPT);
}

// Covers: FI-61
TEST_F(SizeOptionsTest, endpoint_without_a_kind__takes_none_of_it) {
  const Info hints = make_hints();
  hints->caps = FI_MSG;
  open(hints.get());
  EXPECT_NE(get(kMaxMessage), 0u);
  for (const int option : {kMaxTagged, kMaxRma, kMaxAtomic, kInjectTagged})
    EXPECT_EQ(get(option), 0u);
}

// Covers: FI-61
TEST_F(SizeOptionsTest, setopt__lowers_what_the_endpoint_takes_and_never_raises_it) {
  open();
  const std::size_t most = get(kInjectTagged);
  EXPECT_EQ(set(kInjectTagged, most + 1), -FI_EINVAL);
  EXPECT_EQ(set(kInjectTagged, 8), 0);
  EXPECT_EQ(get(kInjectTagged), 8u);
  EXPECT_EQ(get(kInjectMessage), most) << "of another kind";
  const char bytes[64] = {};
  EXPECT_EQ(fi_tinject(a.ep, bytes, 9, to_b, 1), -FI_EINVAL);
  EXPECT_EQ(fi_tinject(a.ep, bytes, 8, to_b, 1), 0);
  EXPECT_EQ(fi_inject(a.ep, bytes, 9, to_b), 0);

  EXPECT_EQ(set(kMaxMessage, 32), 0);
  EXPECT_EQ(set(kMaxRma, 16), 0);
  EXPECT_EQ(set(kMaxAtomic, 8), 0);
  EXPECT_EQ(fi_send(a.ep, bytes, 33, nullptr, to_b, nullptr), -FI_EMSGSIZE);
  EXPECT_EQ(fi_write(a.ep, bytes, 17, nullptr, to_b, 0, 1, nullptr), -FI_EMSGSIZE);
  EXPECT_EQ(fi_atomic(a.ep, bytes, 2, nullptr, to_b, 0, 1, FI_UINT64, FI_SUM, nullptr),
            -FI_EMSGSIZE);
  EXPECT_EQ(fi_send(a.ep, bytes, 32, nullptr, to_b, nullptr), 0);
  EXPECT_EQ(set(kMaxMessage, a.info->ep_attr->max_msg_size), 0) << "up to what there is";
  EXPECT_EQ(fi_send(a.ep, bytes, 33, nullptr, to_b, nullptr), 0);
}

// Covers: FI-61
TEST_F(SizeOptionsTest, datagrams__have_the_size_of_their_entry) {
  const Info hints = make_hints();
  hints->ep_attr->type = FI_EP_DGRAM;
  open(hints.get());
  EXPECT_EQ(get(kMaxMessage), 1024u);
  EXPECT_LE(get(kInjectMessage), 1024u);
  EXPECT_EQ(get(kMaxTagged), 0u);
}

}  // namespace
}  // namespace uet::provider::testing
