/// Ciphers that know everything that was ever sealed in a world, and so see what must never happen: one pair of key and IV
/// twice, and a packet that opens although no honest host has sealed it.
#pragma once

#include <unordered_map>

#include "tss/cipher.h"

namespace uet::sim {

/// The ciphers that an endpoint would use, watched. For all hosts of a world together. Keys are told apart by their first bytes,
/// packets by a fingerprint of 64 bits.
class SealedWatch final : public tss::CipherLibrary {
 public:
  std::string_view name() const override { return "watched"; }
  std::unique_ptr<tss::Cipher> make(tss::Direction direction) const override;

  std::uint64_t sealed() const { return sealed_; }
  std::uint64_t opened() const { return opened_; }
  std::uint64_t repeats() const { return repeats_; }
  /// Packets that opened and are not what was sealed.
  std::uint64_t forged() const { return forged_; }

 private:
  class Watched;
  // The interface makes ciphers of a constant library.
  mutable std::unordered_map<std::uint64_t, std::uint64_t> packets_;  ///< by key and IV
  mutable std::uint64_t sealed_ = 0, opened_ = 0, repeats_ = 0, forged_ = 0;
};

}  // namespace uet::sim
