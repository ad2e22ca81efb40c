/// Ciphers that know everything that was ever sealed in a world, and so see what must never happen: one pair of key and IV
/// twice, a packet that opens although no honest host has sealed it, one that does not open although its key is there, and a
/// derived key under which two hosts send.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>

#include "sim/frame.h"
#include "tss/cipher.h"

namespace uet::sim {

/// Which keys of the domain a host has, by AN; each key that there ever was has a number from 1 of its own, 0 is none.
struct KeysOfHost {
  HostId host = 0;
  std::array<std::uint32_t, 2> numbers{};
  bool tx_an = false;
  /// In its domain a key belongs to one sender, which is this host.
  bool has_own_key = false;
  std::uint64_t opened = 0;  ///< in this life
};

/// The ciphers that endpoints would use, watched; for all hosts of a world together. Keys are told apart by their first bytes,
/// packets by a fingerprint of 64 bits.
class SealedWatch {
 public:
  /// Those of one host. `keys` must outlive them, and be what its domain has at any time.
  std::unique_ptr<tss::CipherLibrary> ciphers_of(KeysOfHost& keys);

  std::uint64_t sealed() const { return sealed_; }
  std::uint64_t repeats() const { return repeats_; }
  /// Packets that opened and are not what was sealed.
  std::uint64_t forged() const { return forged_; }
  /// Packets that are what was sealed, under a key that the receiver had, and did not open.
  std::uint64_t refused() const { return refused_; }
  /// Derived keys under which two hosts sent.
  std::uint64_t shared_keys() const { return shared_keys_; }

 private:
  class Library;
  class Watched;
  void on_sealed(const KeysOfHost& keys, std::uint64_t key, std::uint64_t place,
                 std::uint64_t fingerprint);
  void on_opened(KeysOfHost& keys, std::uint64_t place, std::uint64_t fingerprint);
  void on_refused(const KeysOfHost& keys, std::uint64_t fingerprint);

  std::unordered_map<std::uint64_t, std::uint64_t> packets_;        ///< by key and IV
  std::unordered_map<std::uint64_t, std::uint32_t> key_of_packet_;  ///< its number, by fingerprint
  std::unordered_map<std::uint64_t, HostId> sender_of_key_;
  std::uint64_t sealed_ = 0, repeats_ = 0, forged_ = 0, refused_ = 0, shared_keys_ = 0;
};

}  // namespace uet::sim
