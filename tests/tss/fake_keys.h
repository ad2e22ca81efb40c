/// A key manager made of variables, and packets without a port.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "lib/base/rng.h"
#include "lib/net/heap_packet_pool.h"
#include "tss/secure_domain.h"

namespace uet::tss::test {

using Bytes = std::vector<std::uint8_t>;
using base::DropReason;

inline Bytes from_hex(std::string_view text) {
  Bytes out;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    out.push_back(
        static_cast<std::uint8_t>(std::stoul(std::string(text.substr(i, 2)), nullptr, 16)));
  return out;
}

inline Key key_of(const Bytes& bytes) {
  EXPECT_EQ(bytes.size(), 32u);
  return Key(std::span<const std::uint8_t, 32>(bytes.data(), 32));
}
/// A key that differs for each number.
inline Key key_number(std::uint64_t n) {
  Key key;
  base::Rng rng(n + 1);
  for (std::size_t i = 0; i < key.size(); ++i)
    key.data()[i] = static_cast<std::uint8_t>(rng.next_u32());
  return key;
}

/// What a host remembers of counters, as the key file's state directory does.
using CounterStore = std::map<Fingerprint, std::uint64_t>;

struct FakeKeys final : KeyManager {
  explicit FakeKeys(DomainConfig c, CounterStore* shared = nullptr)
      : config(std::move(c)), store(shared != nullptr ? shared : &own) {}

  DomainConfig domain() override { return config; }
  std::optional<DomainConfig> changed_domain() override {
    ++looks;
    return std::exchange(next, {});
  }
  bool is_busy() const override { return busy; }
  bool asks_to_go_on() override { return std::exchange(goes_on, false); }
  std::optional<CounterRange> reserve(const Fingerprint& key, std::uint64_t count) override {
    if (store_is_broken) return std::nullopt;
    std::uint64_t& at = (*store)[key];
    const CounterRange range{at, at + std::min(count, block)};
    at = range.end;
    return range;
  }
  void give_back(const Fingerprint& key, CounterRange unused) override {
    std::uint64_t& at = (*store)[key];
    if (!store_is_broken && at == unused.end) at = std::max<std::uint64_t>(unused.first, 1);
  }
  void fill_random(std::span<std::uint8_t> out) override {
    for (auto& byte : out) byte = static_cast<std::uint8_t>(rng.next_u32());
  }
  void on_alarm(Alarm alarm, std::uint32_t) override { alarms.push_back(alarm); }
  bool wants_keys() const override { return static_cast<bool>(key_hook); }
  void on_key(const KeyInUse& key) override { key_hook(key); }
  std::size_t count(Alarm alarm) const {
    return static_cast<std::size_t>(std::count(alarms.begin(), alarms.end(), alarm));
  }

  DomainConfig config;
  std::optional<DomainConfig> next;
  bool goes_on = false, busy = false;
  int looks = 0;
  CounterStore own;
  CounterStore* store;
  std::uint64_t block = UINT64_MAX;  ///< what a reservation gives at most
  bool store_is_broken = false;
  base::Rng rng{77};
  std::vector<Alarm> alarms;
  std::function<void(const KeyInUse&)> key_hook;
};

inline DomainConfig direct_config(std::uint64_t key = 0) {
  DomainConfig c;
  c.sdi = 0x00a1b2;
  c.keys.push_back({.an = false, .key = key_number(key)});
  return c;
}
inline DomainConfig cluster_config(std::uint64_t key = 0) {
  DomainConfig c = direct_config(key);
  c.mode = Mode::kCluster;
  return c;
}

inline net::FabricAddress host(std::uint32_t n) {
  return net::FabricAddress::from_v4(0x0a000000u + n);
}
inline net::FabricAddress host6(std::uint8_t n) {
  return *net::FabricAddress::parse("fd00::" + std::to_string(n));
}

/// One endpoint's security, with packets of its own.
class Node {
 public:
  Node(DomainConfig config, net::FabricAddress own, CounterStore* store = nullptr,
       Carrier carrier = {}, const CipherLibrary& ciphers = openssl_ciphers())
      : keys(std::move(config), store), address(own), domain(keys, carrier, own, ciphers) {
    EXPECT_EQ(domain.why_not_usable(), "");
  }

  /// `text` sealed, or nothing when it was refused.
  std::optional<Bytes> seal(const Bytes& text, const net::FabricAddress& to,
                            std::uint16_t entropy = 7) {
    net::Packet packet = pool_.allocate();
    std::copy(text.begin(), text.end(), packet.append(text.size()));
    last_refusal = domain.seal(packet, to, entropy);
    if (last_refusal) return std::nullopt;
    const auto bytes = packet.bytes();
    return Bytes(bytes.begin(), bytes.end());
  }
  /// What is in the sealed packet, or nothing when it was refused.
  std::optional<Bytes> open(const Bytes& sealed, const net::FabricAddress& from,
                            std::uint16_t entropy = 7, bool is_trimmed = false) {
    net::Packet packet = pool_.allocate();
    std::copy(sealed.begin(), sealed.end(), packet.append(sealed.size()));
    last_refusal = domain.open(packet, {from, address, entropy}, is_trimmed);
    if (last_refusal) return std::nullopt;
    const auto bytes = packet.bytes();
    return Bytes(bytes.begin(), bytes.end());
  }

  FakeKeys keys;
  net::FabricAddress address;
  SecureDomain domain;
  SecureDomain::Refusal last_refusal;

 private:
  net::HeapPacketPool pool_{4, 9000};
};

inline Bytes text_of(std::size_t size, std::uint64_t seed = 5) {
  Bytes out(size);
  base::Rng rng(seed);
  for (auto& byte : out) byte = static_cast<std::uint8_t>(rng.next_u32());
  if (!out.empty()) out[0] = 2 << 3;  // looks like a request
  return out;
}

/// The key manager says this from now on.
inline void tell(Node& node, DomainConfig c) {
  node.keys.next = std::move(c);
  node.domain.service();
}

}  // namespace uet::tss::test
