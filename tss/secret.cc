#include "tss/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "lib/base/check.h"

namespace uet::tss {

void cleanse(void* data, std::size_t size) {
  OPENSSL_cleanse(data, size);
}

Fingerprint fingerprint_of(const Key& key) {
  Fingerprint out;
  UET_CHECK(EVP_Digest(key.data(), key.size(), out.data(), nullptr, EVP_sha256(), nullptr) == 1);
  return out;
}

}  // namespace uet::tss
