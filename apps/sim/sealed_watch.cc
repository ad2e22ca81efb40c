#include "apps/sim/sealed_watch.h"

#include <cstring>

#include "sim/world.h"

namespace uet::sim {

class SealedWatch::Watched final : public tss::Cipher {
 public:
  Watched(const SealedWatch& all, std::unique_ptr<tss::Cipher> inner)
      : all_(all), inner_(std::move(inner)) {}

  void set_key(const tss::Key& key) override {
    std::memcpy(&key_, key.data(), sizeof key_);
    inner_->set_key(key);
  }

  void seal(const tss::Iv& iv, ConstBytes aad, Bytes text, std::uint8_t* icv) override {
    inner_->seal(iv, aad, text, icv);
    ++all_.sealed_;
    if (!all_.packets_.emplace(place_of(iv), fingerprint_of(aad, text, icv)).second)
      ++all_.repeats_;
  }

  bool open(const tss::Iv& iv, ConstBytes aad, Bytes text, const std::uint8_t* icv) override {
    const std::uint64_t fingerprint = fingerprint_of(aad, text, icv);
    if (!inner_->open(iv, aad, text, icv)) return false;
    ++all_.opened_;
    const auto sealed = all_.packets_.find(place_of(iv));
    if (sealed == all_.packets_.end() || sealed->second != fingerprint) ++all_.forged_;
    return true;
  }

  void peek(const tss::Iv& iv, Bytes text) override { inner_->peek(iv, text); }

 private:
  std::uint64_t place_of(const tss::Iv& iv) const {
    TraceHash hash;
    hash.mix(key_);
    hash.mix(iv);
    return hash.value();
  }
  static std::uint64_t fingerprint_of(ConstBytes aad, Bytes text, const std::uint8_t* icv) {
    TraceHash hash;
    hash.mix(aad);
    hash.mix(text);
    hash.mix({icv, tss::kIcvBytes});
    return hash.value();
  }

  const SealedWatch& all_;
  std::unique_ptr<tss::Cipher> inner_;
  std::uint64_t key_ = 0;
};

std::unique_ptr<tss::Cipher> SealedWatch::make(tss::Direction direction) const {
  return std::make_unique<Watched>(*this, tss::best_ciphers().make(direction));
}

}  // namespace uet::sim
