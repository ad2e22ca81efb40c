// AES-256-GCM by intel-ipsec-mb: several blocks at a time in vector registers. [decision 0133]

#include "lib/base/check.h"
#include "tss/cipher.h"
#include "tss/locked_memory.h"

#ifdef UET_WITH_IPSEC_MB

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

namespace uet::tss {
namespace {

constexpr std::uint64_t kFasterThanOpenssl = IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ;

/// Holds function pointers only after this; the ciphers bring their own memory. Lives as long as the
/// process.
IMB_MGR* manager() {
  static IMB_MGR* const mgr = [] {
    IMB_MGR* m = alloc_mb_mgr(0);
    if (m != nullptr) init_mb_mgr_auto(m, nullptr);
    return m;
  }();
  return mgr;
}

class MultiBufferCipher final : public Cipher, public InLockedMemory {
 public:
  explicit MultiBufferCipher(Direction) : mgr_(manager()) {}
  MultiBufferCipher(const MultiBufferCipher&) = delete;
  MultiBufferCipher& operator=(const MultiBufferCipher&) = delete;
  ~MultiBufferCipher() override { cleanse(&key_, sizeof key_); }

  void set_key(const Key& key) override { IMB_AES256_GCM_PRE(mgr_, key.data(), &key_); }

  void seal(const Iv& iv, ConstBytes aad, Bytes text, std::uint8_t* icv) override {
    IMB_AES256_GCM_ENC(mgr_, &key_, &context_, text.data(), text.data(), text.size(), iv.data(),
                       aad.data(), aad.size(), icv, kIcvBytes);
  }

  bool open(const Iv& iv, ConstBytes aad, Bytes text, const std::uint8_t* icv) override {
    std::array<std::uint8_t, kIcvBytes> computed;
    IMB_AES256_GCM_DEC(mgr_, &key_, &context_, text.data(), text.data(), text.size(), iv.data(),
                       aad.data(), aad.size(), computed.data(), computed.size());
    if (CRYPTO_memcmp(computed.data(), icv, kIcvBytes) == 0) return true;
    cleanse(text.data(), text.size());
    return false;
  }

  void peek(const Iv& iv, Bytes text) override {
    std::array<std::uint8_t, kIcvBytes> unused;
    IMB_AES256_GCM_DEC(mgr_, &key_, &context_, text.data(), text.data(), text.size(), iv.data(),
                       unused.data(), 0, unused.data(), unused.size());
  }

 private:
  IMB_MGR* mgr_;
  gcm_key_data key_{};
  gcm_context_data context_{};
};

class MultiBufferCiphers final : public CipherLibrary {
 public:
  std::string_view name() const override { return "ipsec-mb"; }
  std::unique_ptr<Cipher> make(Direction direction) const override {
    return std::make_unique<MultiBufferCipher>(direction);
  }
};

}  // namespace

const CipherLibrary* multi_buffer_ciphers() {
  static const MultiBufferCiphers library;
  const IMB_MGR* mgr = manager();
  const bool is_faster =
      mgr != nullptr && (mgr->features & kFasterThanOpenssl) == kFasterThanOpenssl;
  return is_faster ? &library : nullptr;
}

}  // namespace uet::tss

#else

namespace uet::tss {

const CipherLibrary* multi_buffer_ciphers() {
  return nullptr;
}

}  // namespace uet::tss

#endif
