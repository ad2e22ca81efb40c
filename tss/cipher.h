/// AES-256-GCM behind one interface, and the implementations that there are. [TSS 15]
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "tss/secret.h"

namespace uet::tss {

inline constexpr std::size_t kIcvBytes = 16;
using Iv = std::array<std::uint8_t, 12>;

enum class Direction : std::uint8_t { kSeal, kOpen };

/// One key, ready for one direction. Setting a key costs more than a short packet: keep the object.
/// Nothing here allocates after construction. One thread.
class Cipher {
 public:
  using Bytes = std::span<std::uint8_t>;
  using ConstBytes = std::span<const std::uint8_t>;

  virtual ~Cipher() = default;
  virtual void set_key(const Key& key) = 0;
  /// Encrypts `text` in place and writes kIcvBytes to `icv`. Never twice with one IV under one key.
  virtual void seal(const Iv& iv, ConstBytes aad, Bytes text, std::uint8_t* icv) = 0;
  /// Decrypts `text` in place; false, with `text` wiped, unless `icv` fits.
  [[nodiscard]] virtual bool open(const Iv& iv, ConstBytes aad, Bytes text,
                                  const std::uint8_t* icv) = 0;
  /// Decrypts without knowing whether the text is genuine: for what is left of a trimmed packet.
  virtual void peek(const Iv& iv, Bytes text) = 0;
};

/// One packet to seal under the key of `cipher`. What it points to stays where it is until the packet is sealed.
struct SealJob {
  Cipher* cipher = nullptr;
  Iv iv{};
  Cipher::ConstBytes aad;
  Cipher::Bytes text;
  std::uint8_t* icv = nullptr;
};

/// Seals the packets of a burst together, where that is faster than one after the other. One thread.
class BurstSealer {
 public:
  virtual ~BurstSealer() = default;
  /// As Cipher::seal() for each. The ciphers are of the library that made this.
  virtual void seal(std::span<const SealJob> jobs) {
    for (const SealJob& job : jobs) job.cipher->seal(job.iv, job.aad, job.text, job.icv);
  }
};

/// An implementation of Cipher.
class CipherLibrary {
 public:
  virtual ~CipherLibrary() = default;
  virtual std::string_view name() const = 0;
  virtual std::unique_ptr<Cipher> make(Direction direction) const = 0;
  virtual std::unique_ptr<BurstSealer> make_sealer() const {
    return std::make_unique<BurstSealer>();
  }
};

const CipherLibrary& openssl_ciphers();
/// intel-ipsec-mb, on processors where it is faster than OpenSSL 3.0 (vector AES over several
/// blocks); null elsewhere and where this build has none.
const CipherLibrary* multi_buffer_ciphers();
/// The fastest one that agrees with OpenSSL on a set of packets tried when first asked for.
const CipherLibrary& best_ciphers();

}  // namespace uet::tss
