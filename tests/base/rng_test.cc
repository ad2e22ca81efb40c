#include "lib/base/rng.h"

#include <gtest/gtest.h>

namespace uet::base {
namespace {

// ChaCha20 of a key and a nonce of zeros, blocks 0 and 1. [draft-agl-tls-chacha20poly1305-04, section 7; RFC 8439, A.1]
TEST(Rng, keyed__is_the_chacha20_stream) {
  Rng rng(Rng::Key{});
  EXPECT_EQ(rng.next_u64(), 0x903df1a0ade0b876u);
  EXPECT_EQ(rng.next_u64(), 0x28bd8653e56a5d40u);
  for (int i = 2; i < 8; ++i) rng.next_u64();
  EXPECT_EQ(rng.next_u64(), 0x7a385155bee7079fu) << "block 1";
}

TEST(Rng, keyed__each_word_of_the_key_counts) {
  const std::uint64_t first = Rng(Rng::Key{}).next_u64();
  for (std::size_t i = 0; i < Rng::Key{}.size(); ++i) {
    Rng::Key key{};
    key[i] = 1;
    EXPECT_NE(Rng(key).next_u64(), first) << i;
  }
}

TEST(Rng, copies_go_on_alike) {
  Rng keyed(Rng::Key{1, 2, 3}), seeded(7);
  keyed.next_u64();
  for (Rng* rng : {&keyed, &seeded}) {
    Rng copy = *rng;
    for (int i = 0; i < 20; ++i) EXPECT_EQ(copy.next_u64(), rng->next_u64()) << i;
  }
}

}  // namespace
}  // namespace uet::base
