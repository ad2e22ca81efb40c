#include "apps/sim/sealed_watch.h"

#include <algorithm>
#include <cstring>

#include "sim/simulation.h"

namespace uet::sim {

class SealedWatch::Watched final : public tss::Cipher {
 public:
  Watched(SealedWatch& all, KeysOfHost& keys, std::unique_ptr<tss::Cipher> inner)
      : all_(all), keys_(keys), inner_(std::move(inner)) {}

  void set_key(const tss::Key& key) override {
    std::memcpy(&key_, key.data(), sizeof key_);
    inner_->set_key(key);
  }

  void seal(const tss::Iv& iv, ConstBytes aad, Bytes text, std::uint8_t* icv) override {
    inner_->seal(iv, aad, text, icv);
    all_.on_sealed(keys_, key_, place_of(iv), fingerprint_of(aad, text, icv));
  }

  bool open(const tss::Iv& iv, ConstBytes aad, Bytes text, const std::uint8_t* icv) override {
    const std::uint64_t fingerprint = fingerprint_of(aad, text, icv);
    const bool is_open = inner_->open(iv, aad, text, icv);
    if (is_open)
      all_.on_opened(keys_, place_of(iv), fingerprint);
    else
      all_.on_refused(keys_, fingerprint);
    return is_open;
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

  SealedWatch& all_;
  KeysOfHost& keys_;
  std::unique_ptr<tss::Cipher> inner_;
  std::uint64_t key_ = 0;
};

class SealedWatch::Library final : public tss::CipherLibrary {
 public:
  Library(SealedWatch& all, KeysOfHost& keys) : all_(all), keys_(keys) {}
  std::string_view name() const override { return "watched"; }
  std::unique_ptr<tss::Cipher> make(tss::Direction direction) const override {
    return std::make_unique<Watched>(all_, keys_, tss::best_ciphers().make(direction));
  }

 private:
  SealedWatch& all_;
  KeysOfHost& keys_;
};

std::unique_ptr<tss::CipherLibrary> SealedWatch::ciphers_of(KeysOfHost& keys) {
  return std::make_unique<Library>(*this, keys);
}

void SealedWatch::on_sealed(const KeysOfHost& keys, std::uint64_t key, std::uint64_t place,
                            std::uint64_t fingerprint) {
  ++sealed_;
  if (!packets_.emplace(place, fingerprint).second) ++repeats_;
  key_of_packet_[fingerprint] = keys.numbers[keys.tx_an];
  if (keys.has_own_key && sender_of_key_.emplace(key, keys.host).first->second != keys.host)
    ++shared_keys_;
}

void SealedWatch::on_opened(KeysOfHost& keys, std::uint64_t place, std::uint64_t fingerprint) {
  ++keys.opened;
  const auto sealed = packets_.find(place);
  if (sealed == packets_.end() || sealed->second != fingerprint) ++forged_;
}

/// Late packets meet another key under their AN, or none: only those of a key that is there must open.
void SealedWatch::on_refused(const KeysOfHost& keys, std::uint64_t fingerprint) {
  const auto sealed = key_of_packet_.find(fingerprint);
  if (sealed != key_of_packet_.end() &&
      std::find(keys.numbers.begin(), keys.numbers.end(), sealed->second) != keys.numbers.end())
    ++refused_;
}

}  // namespace uet::sim
