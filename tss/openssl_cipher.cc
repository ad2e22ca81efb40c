// AES-256-GCM by OpenSSL. Fetched once per process; per packet only the IV is set. [TSS 15.1]

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "lib/base/check.h"
#include "tss/cipher.h"

namespace uet::tss {
namespace {

const EVP_CIPHER* aes_256_gcm() {
  static const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  UET_CHECK(cipher != nullptr);
  return cipher;
}

int length_of(std::size_t size) {
  UET_CHECK(size <= 0xffff);
  return static_cast<int>(size);
}

class OpensslCipher final : public Cipher {
 public:
  explicit OpensslCipher(Direction direction)
      : context_(EVP_CIPHER_CTX_new()), is_seal_(direction == Direction::kSeal) {
    UET_CHECK(context_ != nullptr);
    UET_CHECK(init(aes_256_gcm(), nullptr));  // naming it again would allocate anew
    // Prepared once: EVP_CIPHER_CTX_ctrl would build it for every packet.
    tag_params_[0] =
        OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag_.data(), tag_.size());
    tag_params_[1] = OSSL_PARAM_construct_end();
  }
  OpensslCipher(const OpensslCipher&) = delete;
  OpensslCipher& operator=(const OpensslCipher&) = delete;
  ~OpensslCipher() override { EVP_CIPHER_CTX_free(context_); }  // wipes the key schedule

  void set_key(const Key& key) override { UET_CHECK(init(nullptr, key.data())); }

  void seal(const Iv& iv, ConstBytes aad, Bytes text, std::uint8_t* icv) override {
    int n = 0;
    UET_CHECK(is_seal_);
    UET_CHECK(EVP_EncryptInit_ex2(context_, nullptr, nullptr, iv.data(), nullptr) == 1);
    UET_CHECK(EVP_EncryptUpdate(context_, nullptr, &n, aad.data(), length_of(aad.size())) == 1);
    UET_CHECK(EVP_EncryptUpdate(context_, text.data(), &n, text.data(), length_of(text.size())) ==
              1);
    UET_CHECK(EVP_EncryptFinal_ex(context_, tag_.data(), &n) == 1);
    UET_CHECK(EVP_CIPHER_CTX_get_params(context_, tag_params_) == 1);
    std::copy(tag_.begin(), tag_.end(), icv);
  }

  bool open(const Iv& iv, ConstBytes aad, Bytes text, const std::uint8_t* icv) override {
    int n = 0;
    UET_CHECK(!is_seal_);
    std::copy_n(icv, tag_.size(), tag_.begin());
    UET_CHECK(EVP_DecryptInit_ex2(context_, nullptr, nullptr, iv.data(), tag_params_) == 1);
    UET_CHECK(EVP_DecryptUpdate(context_, nullptr, &n, aad.data(), length_of(aad.size())) == 1);
    UET_CHECK(EVP_DecryptUpdate(context_, text.data(), &n, text.data(), length_of(text.size())) ==
              1);
    if (EVP_DecryptFinal_ex(context_, tag_.data(), &n) == 1) return true;
    cleanse(text.data(), text.size());  // unverified clear text must not be used
    return false;
  }

  void peek(const Iv& iv, Bytes text) override {
    int n = 0;
    UET_CHECK(!is_seal_);
    UET_CHECK(EVP_DecryptInit_ex2(context_, nullptr, nullptr, iv.data(), nullptr) == 1);
    UET_CHECK(EVP_DecryptUpdate(context_, text.data(), &n, text.data(), length_of(text.size())) ==
              1);
  }

 private:
  bool init(const EVP_CIPHER* cipher, const std::uint8_t* key) {
    return (is_seal_ ? EVP_EncryptInit_ex2(context_, cipher, key, nullptr, nullptr)
                     : EVP_DecryptInit_ex2(context_, cipher, key, nullptr, nullptr)) == 1;
  }

  EVP_CIPHER_CTX* context_;
  bool is_seal_;
  std::array<std::uint8_t, kIcvBytes> tag_{};
  OSSL_PARAM tag_params_[2];
};

class OpensslCiphers final : public CipherLibrary {
 public:
  std::string_view name() const override { return "openssl"; }
  std::unique_ptr<Cipher> make(Direction direction) const override {
    return std::make_unique<OpensslCipher>(direction);
  }
};

}  // namespace

const CipherLibrary& openssl_ciphers() {
  static const OpensslCiphers library;
  return library;
}

}  // namespace uet::tss
