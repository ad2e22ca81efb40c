#include <algorithm>
#include <array>
#include <vector>

#include "tss/cipher.h"

namespace uet::tss {
namespace {

constexpr std::array kLengths = {0u,   4u,   15u,  16u,   17u,   127u,
                                 128u, 129u, 255u, 1024u, 4177u, 8192u};

/// Packets of all lengths as one burst, against the same one by one.
bool bursts_agree(const CipherLibrary& tried, Cipher& seal, Cipher& one_by_one) {
  std::array<std::vector<std::uint8_t>, kLengths.size()> texts, aads;
  std::array<std::array<std::uint8_t, kIcvBytes>, kLengths.size()> icvs{};
  std::array<SealJob, kLengths.size()> jobs;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    texts[i].assign(kLengths[i] + 1, static_cast<std::uint8_t>(i));
    aads[i].assign(24 + i, static_cast<std::uint8_t>(~i));
    jobs[i] = {&seal,
               {1, static_cast<std::uint8_t>(i)},
               aads[i],
               std::span(texts[i]).first(kLengths[i]),
               icvs[i].data()};
  }
  tried.make_sealer()->seal(jobs);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<std::uint8_t> text(kLengths[i] + 1, static_cast<std::uint8_t>(i));
    std::array<std::uint8_t, kIcvBytes> icv{};
    one_by_one.seal(jobs[i].iv, aads[i], std::span(text).first(kLengths[i]), icv.data());
    if (text != texts[i] || icv != icvs[i]) return false;
  }
  return true;
}

/// Seals and opens packets of all lengths both ways and compares every byte.
bool agrees(const CipherLibrary& tried, const CipherLibrary& with) {
  Key key;
  for (std::size_t i = 0; i < key.size(); ++i)
    key.data()[i] = static_cast<std::uint8_t>(17 * i + 3);
  const Iv iv{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const auto seal_a = tried.make(Direction::kSeal), seal_b = with.make(Direction::kSeal);
  const auto open_a = tried.make(Direction::kOpen);
  for (Cipher* c : {seal_a.get(), seal_b.get(), open_a.get()}) c->set_key(key);

  for (const std::size_t length : kLengths) {
    std::vector<std::uint8_t> aad(28 + length % 29), text(length), a, b;
    for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<std::uint8_t>(i * i + length);
    std::array<std::uint8_t, kIcvBytes> icv_a{}, icv_b{};
    seal_a->seal(iv, aad, a = text, icv_a.data());
    seal_b->seal(iv, aad, b = text, icv_b.data());
    if (a != b || icv_a != icv_b) return false;
    if (!open_a->open(iv, aad, a, icv_b.data()) || a != text) return false;
    icv_b[length % kIcvBytes] ^= 1;
    if (open_a->open(iv, aad, b, icv_b.data())) return false;
  }
  return bursts_agree(tried, *seal_a, *seal_b);
}

}  // namespace

const CipherLibrary& best_ciphers() {
  static const CipherLibrary& best = []() -> const CipherLibrary& {
    const CipherLibrary* fast = multi_buffer_ciphers();
    return fast != nullptr && agrees(*fast, openssl_ciphers()) ? *fast : openssl_ciphers();
  }();
  return best;
}

}  // namespace uet::tss
