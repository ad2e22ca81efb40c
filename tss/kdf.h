/// Keys derived from the initial key of a secure domain: SP 800-108 in counter mode over
/// CMAC-AES-256, with a counter of one octet and a length of two. [TSS 6] OpenSSL 3.0's own KBKDF
/// cannot write these widths.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "lib/net/fabric_address.h"
#include "tss/locked_memory.h"
#include "tss/secret.h"

struct evp_mac_ctx_st;

namespace uet::tss {

/// Whose packets a derived key is for: an SSI or IPv4 address, or an IPv6 address. [TSS 5]
class Identity {
 public:
  Identity() = default;
  static Identity of_ssi(std::uint32_t ssi);
  static Identity of_address(const net::FabricAddress& address);

  /// As it stands in the context: 4 or 16 bytes in network order.
  std::span<const std::uint8_t> bytes() const { return {bytes_.data(), size_}; }
  bool operator==(const Identity&) const = default;

 private:
  std::array<std::uint8_t, 16> bytes_{};
  std::size_t size_ = 4;
};

enum class Label : std::uint8_t { kCluster, kServer };

/// What differs between two keys of one initial key.
struct Context {
  std::uint16_t epoch = 0;
  std::uint32_t rekey = 0;
  Identity identity;
  bool operator==(const Context&) const = default;
};

/// An initial key, ready to derive from. Allocates at construction only. OpenSSL's memory, which cannot be locked, has the key only
/// during a derivation.
class KeyDerivation : public InLockedMemory {
 public:
  explicit KeyDerivation(const Key& initial);
  KeyDerivation(const KeyDerivation&) = delete;
  KeyDerivation& operator=(const KeyDerivation&) = delete;
  ~KeyDerivation();

  DerivedKey derive(Label label, const Context& context);

 private:
  void set_key(const Key& key);

  Key initial_;
  evp_mac_ctx_st* mac_;
};

}  // namespace uet::tss
