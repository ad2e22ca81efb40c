// AES-256-GCM by intel-ipsec-mb: several blocks at a time in vector registers. [decision 0133]

#include "lib/base/check.h"
#include "tss/cipher.h"
#include "tss/locked_memory.h"

#ifdef UET_WITH_IPSEC_MB

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#include <algorithm>

namespace uet::tss {
namespace {

constexpr std::uint64_t kFasterThanOpenssl = IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ;

/// Of single packets. Holds function pointers only after this; the ciphers bring their own memory. Lives as long as the process.
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
  friend class MultiBufferSealer;
  IMB_MGR* mgr_;
  gcm_key_data key_{};
  gcm_context_data context_{};
};

/// Several packets in one call: the processor is busy with the next one while the ICV of the one before is computed. Jobs are state of
/// the manager, so each sealer has its own.
class MultiBufferSealer final : public BurstSealer {
 public:
  MultiBufferSealer() : mgr_(alloc_mb_mgr(0)) {
    UET_CHECK(mgr_ != nullptr);
    init_mb_mgr_auto(mgr_, nullptr);
  }
  MultiBufferSealer(const MultiBufferSealer&) = delete;
  MultiBufferSealer& operator=(const MultiBufferSealer&) = delete;
  ~MultiBufferSealer() override { free_mb_mgr(mgr_); }

  void seal(std::span<const SealJob> jobs) override {
    if (jobs.size() == 1) return BurstSealer::seal(jobs);
    while (!jobs.empty()) {
      const std::size_t n = std::min(jobs.size(), kMost);
      seal_some(jobs.first(n));
      jobs = jobs.subspan(n);
    }
  }

 private:
  static constexpr std::size_t kMost = 32;

  void seal_some(std::span<const SealJob> jobs) {
    std::array<IMB_JOB*, kMost> slots;
    const auto n = static_cast<std::uint32_t>(jobs.size());
    UET_CHECK(IMB_GET_NEXT_BURST(mgr_, n, slots.data()) == n);
    for (std::size_t i = 0; i < n; ++i) describe(jobs[i], *slots[i]);
    std::uint32_t done = IMB_SUBMIT_BURST_NOCHECK(mgr_, n, slots.data());
    while (done < n) {
      const std::uint32_t more = IMB_FLUSH_BURST(mgr_, n - done, slots.data());
      UET_CHECK(more != 0);
      done += more;
    }
  }

  static void describe(const SealJob& job, IMB_JOB& to) {
    const gcm_key_data* const key = &static_cast<MultiBufferCipher*>(job.cipher)->key_;
    to.cipher_mode = IMB_CIPHER_GCM;
    to.cipher_direction = IMB_DIR_ENCRYPT;
    to.hash_alg = IMB_AUTH_AES_GMAC;
    to.chain_order = IMB_ORDER_CIPHER_HASH;
    to.key_len_in_bytes = IMB_KEY_256_BYTES;
    to.enc_keys = to.dec_keys = key;
    to.src = to.dst = job.text.data();
    to.cipher_start_src_offset_in_bytes = to.hash_start_src_offset_in_bytes = 0;
    to.msg_len_to_cipher_in_bytes = to.msg_len_to_hash_in_bytes = job.text.size();
    to.iv = job.iv.data();
    to.iv_len_in_bytes = job.iv.size();
    to.u.GCM.aad = job.aad.data();
    to.u.GCM.aad_len_in_bytes = job.aad.size();
    to.auth_tag_output = job.icv;
    to.auth_tag_output_len_in_bytes = kIcvBytes;
  }

  IMB_MGR* mgr_;
};

class MultiBufferCiphers final : public CipherLibrary {
 public:
  std::string_view name() const override { return "ipsec-mb"; }
  std::unique_ptr<Cipher> make(Direction direction) const override {
    return std::make_unique<MultiBufferCipher>(direction);
  }
  std::unique_ptr<BurstSealer> make_sealer() const override {
    return std::make_unique<MultiBufferSealer>();
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
