/// Ciphers that remember every pair of key and IV they ever sealed with, across all endpoints of a
/// test: the one thing that must never repeat.
#pragma once

#include <set>
#include <utility>

#include "tests/tss/fake_keys.h"

namespace uet::tss::test {

class RecordingCiphers final : public CipherLibrary {
 public:
  std::string_view name() const override { return "recording"; }
  std::unique_ptr<Cipher> make(Direction direction) const override {
    return std::make_unique<Recorder>(*this, openssl_ciphers().make(direction));
  }
  std::size_t sealed() const { return pairs_.size() + repeats_; }
  std::size_t repeats() const { return repeats_; }

 private:
  class Recorder final : public Cipher {
   public:
    Recorder(const RecordingCiphers& all, std::unique_ptr<Cipher> inner)
        : all_(all), inner_(std::move(inner)) {}
    void set_key(const Key& key) override {
      print_ = fingerprint_of(key);
      inner_->set_key(key);
    }
    void seal(const Iv& iv, ConstBytes aad, Bytes text, std::uint8_t* icv) override {
      if (!all_.pairs_.insert({print_, iv}).second) ++all_.repeats_;
      inner_->seal(iv, aad, text, icv);
    }
    bool open(const Iv& iv, ConstBytes aad, Bytes text, const std::uint8_t* icv) override {
      return inner_->open(iv, aad, text, icv);
    }
    void peek(const Iv& iv, Bytes text) override { inner_->peek(iv, text); }

   private:
    const RecordingCiphers& all_;
    std::unique_ptr<Cipher> inner_;
    Fingerprint print_{};
  };
  mutable std::set<std::pair<Fingerprint, Iv>> pairs_;
  mutable std::size_t repeats_ = 0;
};

}  // namespace uet::tss::test
