#include "lib/base/rng.h"

#include <bit>

namespace uet::base {
namespace {

using Words = std::array<std::uint32_t, 16>;

void quarter_round(Words& w, int a, int b, int c, int d) {
  w[a] += w[b], w[d] = std::rotl(w[d] ^ w[a], 16);
  w[c] += w[d], w[b] = std::rotl(w[b] ^ w[c], 12);
  w[a] += w[b], w[d] = std::rotl(w[d] ^ w[a], 8);
  w[c] += w[d], w[b] = std::rotl(w[b] ^ w[c], 7);
}

/// RFC 8439, 2.3, with the counter of 64 bits and the nonce of 64 bits that ChaCha had before.
Words chacha20_block(const Words& in) {
  Words w = in;
  for (int round = 0; round < 10; ++round) {
    for (int column = 0; column < 4; ++column)
      quarter_round(w, column, 4 + column, 8 + column, 12 + column);
    for (int i = 0; i < 4; ++i)
      quarter_round(w, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
  }
  for (std::size_t i = 0; i < w.size(); ++i) w[i] += in[i];
  return w;
}

std::uint32_t low(std::uint64_t x) {
  return static_cast<std::uint32_t>(x);
}
std::uint32_t high(std::uint64_t x) {
  return static_cast<std::uint32_t>(x >> 32);
}

}  // namespace

Rng::Rng(const Key& key) : is_keyed_(true), used_(8) {
  for (std::size_t i = 0; i < state_.size(); ++i)
    state_[i] = key[2 * i] | std::uint64_t{key[2 * i + 1]} << 32;
}

std::uint64_t Rng::next_keyed() {
  if (used_ == stream_.size()) {
    const auto& k = state_;
    const Words words = chacha20_block({0x61707865, 0x3320646e, 0x79622d32, 0x6b206574,  //
                                        low(k[0]), high(k[0]), low(k[1]), high(k[1]),    //
                                        low(k[2]), high(k[2]), low(k[3]), high(k[3]),    //
                                        low(next_block_), high(next_block_), 0, 0});
    ++next_block_;
    for (std::size_t i = 0; i < stream_.size(); ++i)
      stream_[i] = words[2 * i] | std::uint64_t{words[2 * i + 1]} << 32;
    used_ = 0;
  }
  return stream_[used_++];
}

}  // namespace uet::base
