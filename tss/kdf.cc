#include "tss/kdf.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <cstring>

#include "lib/base/byte_cursor.h"
#include "lib/base/check.h"

namespace uet::tss {
namespace {

constexpr std::size_t kBlock = 16, kBlocks = 3;
constexpr std::uint16_t kOutputBits = 8 * 44;  // as it stands in the input: key and mask

EVP_MAC* cmac() {
  static EVP_MAC* const mac = EVP_MAC_fetch(nullptr, "CMAC", nullptr);
  UET_CHECK(mac != nullptr);
  return mac;
}

/// Counter, label, zero, context, length: one AES block, or two with an IPv6 address. [TSS 6.2]
std::size_t write_input(std::span<std::uint8_t> out, std::uint8_t counter, Label label,
                        const Context& context) {
  base::Writer w(out);
  w.u8(counter);
  w.u8('U');
  w.u8(label == Label::kCluster ? '1' : '2');
  w.u8(0);
  const auto identity = context.identity.bytes();
  if (identity.size() == 16) w.u32(0);
  w.u16(context.epoch);
  w.u32(context.rekey);
  w.bytes(identity);
  w.u16(kOutputBits);
  return w.position();
}

}  // namespace

Identity Identity::of_ssi(std::uint32_t ssi) {
  Identity id;
  base::store_be(id.bytes_.data(), ssi);
  return id;
}

Identity Identity::of_address(const net::FabricAddress& address) {
  if (address.is_v4()) return of_ssi(address.v4());
  Identity id;
  id.bytes_ = address.bytes();
  id.size_ = id.bytes_.size();
  return id;
}

KeyDerivation::KeyDerivation(const Key& initial)
    : initial_(initial), mac_(EVP_MAC_CTX_new(cmac())) {
  UET_CHECK(mac_ != nullptr);
  const Key none;
  char name[] = "AES-256-CBC";
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_CIPHER, name, 0),
                               OSSL_PARAM_construct_end()};
  UET_CHECK(EVP_MAC_init(mac_, none.data(), none.size(), params) == 1);
}

KeyDerivation::~KeyDerivation() {
  EVP_MAC_CTX_free(mac_);
}

void KeyDerivation::set_key(const Key& key) {
  UET_CHECK(EVP_MAC_init(mac_, key.data(), key.size(), nullptr) == 1);
}

DerivedKey KeyDerivation::derive(Label label, const Context& context) {
  Secret<kBlock * kBlocks> out;
  for (std::uint8_t i = 0; i < kBlocks; ++i) {
    std::array<std::uint8_t, 2 * kBlock> input;
    const std::size_t size = write_input(input, static_cast<std::uint8_t>(i + 1), label, context);
    std::size_t written = 0;
    set_key(initial_);
    UET_CHECK(EVP_MAC_update(mac_, input.data(), size) == 1);
    UET_CHECK(EVP_MAC_final(mac_, out.data() + kBlock * i, &written, kBlock) == 1);
    UET_CHECK(written == kBlock);
  }
  set_key(Key{});
  DerivedKey derived;
  std::memcpy(derived.key.data(), out.data(), derived.key.size());
  std::memcpy(derived.mask.data(), out.data() + derived.key.size(), derived.mask.size());
  return derived;
}

}  // namespace uet::tss
