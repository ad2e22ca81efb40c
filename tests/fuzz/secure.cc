// Sealed packets that were changed on the way, bytes that never were a packet, and key files.
#include <algorithm>
#include <optional>
#include <vector>

#include "keys/key_file.h"
#include "lib/base/check.h"
#include "lib/net/heap_packet_pool.h"
#include "tests/fuzz/targets.h"
#include "tss/secure_domain.h"

namespace uet::fuzz {
namespace {

/// Keys that never change and counters without end.
struct FixedKeys final : tss::KeyManager {
  explicit FixedKeys(tss::DomainConfig c) : config(std::move(c)) {}
  tss::DomainConfig domain() override { return config; }
  std::optional<tss::CounterRange> reserve(const tss::Fingerprint&, std::uint64_t count) override {
    return tss::CounterRange{0, count};
  }
  void fill_random(std::span<std::uint8_t> out) override { std::fill(out.begin(), out.end(), 7); }
  tss::DomainConfig config;
};

/// Of two ends with the same `choice` and the same `secret` one can open what the other has sealed.
tss::DomainConfig domain_of(std::uint8_t choice, std::uint8_t secret) {
  tss::DomainConfig c;
  c.sdi = 0x1234;
  c.max_sources = 4;
  c.mode = choice & 1 ? tss::Mode::kCluster : tss::Mode::kDirect;
  c.ssi_mode = (choice & 2) != 0;
  c.ssi = c.ssi_mode ? 5 : 0;
  c.clear_bytes = choice & 4 ? 12 : 0;
  c.replay_window = choice & 8 ? 64 : 0;
  c.reject_old_epochs = (choice & 16) != 0;
  c.trim_hints = (choice & 128) != 0;
  if ((choice & 33) == 33) c.rekey = {.mask = 0xff00, .shift = 8};
  tss::KeyConfig key;
  for (std::size_t i = 0; i < key.key.size(); ++i)
    key.key.data()[i] = static_cast<std::uint8_t>(secret + i);
  c.keys = {key};
  return c;
}

struct Node {
  Node(std::uint8_t choice, net::FabricAddress own, std::uint8_t secret = 0)
      : keys(domain_of(choice, secret)),
        address(own),
        domain(keys, {.is_udp = (choice & 64) == 0}, own, tss::openssl_ciphers()) {}
  FixedKeys keys;
  net::FabricAddress address;
  tss::SecureDomain domain;
};

net::Packet packet_of(net::HeapPacketPool& pool, Bytes bytes) {
  net::Packet packet = pool.allocate();
  std::copy(bytes.begin(), bytes.end(), packet.append(bytes.size()));
  return packet;
}

bool equals(const net::Packet& packet, Bytes bytes) {
  return std::ranges::equal(packet.bytes(), bytes);
}

}  // namespace

void sealed(Bytes input) {
  if (input.size() < 2 || input.size() > 1500) return;
  static net::HeapPacketPool pool(4, 2048);
  Node sender(input[0], net::FabricAddress::from_v4(1));
  Node receiver(input[0], net::FabricAddress::from_v4(2));
  const std::size_t edits = std::min<std::size_t>(input[1] % 8, (input.size() - 2) / 3);
  const Bytes text = input.subspan(2 + 3 * edits);

  // Bytes that never were a packet: almost surely refused, and nothing else. No end seals with this key: a fuzzer that watches
  // comparisons learns what `sender` seals below and would send it as its own.
  Node stranger(input[0], net::FabricAddress::from_v4(2), 1);
  net::Packet invented = packet_of(pool, input.subspan(1));
  const bool was_taken = !stranger.domain.open(invented, {sender.address, stranger.address, 9});
  UET_CHECK(!was_taken);
  UET_CHECK(stranger.domain.sources_known() == 0);
  invented.reset();

  if (text.size() < 12) return;
  net::Packet packet = packet_of(pool, text);
  UET_CHECK(!sender.domain.seal(packet, receiver.address, 9));
  const std::vector<std::uint8_t> genuine(packet.bytes().begin(), packet.bytes().end());
  for (std::size_t i = 0; i < edits; ++i) {
    const std::uint8_t* edit = input.data() + 2 + 3 * i;
    const std::size_t at = (edit[0] << 8 | edit[1]) % packet.size();
    if (edit[2] == 0)
      packet.trim_back(std::min<std::size_t>(at, packet.size() - 1));
    else
      packet.bytes()[at] ^= edit[2];
  }
  const bool is_changed = !equals(packet, genuine);
  const bool is_opened = !receiver.domain.open(packet, {sender.address, receiver.address, 9});
  UET_CHECK(is_opened == !is_changed);
  if (is_opened) UET_CHECK(equals(packet, text));
  UET_CHECK(receiver.domain.sources_known() == (is_opened ? 1u : 0u));
  packet.reset();

  // As a switch may have left it, also changed: at most a hint, and nothing is remembered.
  net::Packet rest = packet_of(pool, genuine);
  rest.trim_back(input[1] % rest.size());
  rest.bytes()[input[0] % rest.size()] ^= input[1];
  const auto before = receiver.domain.stats();
  if (!receiver.domain.open(rest, {sender.address, receiver.address, 9}, true)) {
    UET_CHECK(is_opened && receiver.domain.config().trim_hints);
    UET_CHECK(rest.size() == 16);
    UET_CHECK(receiver.domain.stats().in_trim_hint_pkts == before.in_trim_hint_pkts + 1);
  }
  UET_CHECK(receiver.domain.stats().in_auth_pkts == before.in_auth_pkts);
  UET_CHECK(receiver.domain.sources_known() == (is_opened ? 1u : 0u));
}

void key_file(Bytes input) {
  const keys::SecretText text(input.begin(), input.end());
  const auto file = keys::parse_key_file(text, "/folder");
  if (!file) return UET_CHECK(!file.error().empty());
  UET_CHECK(!file->domains.empty());
  for (const tss::DomainConfig& d : file->domains) UET_CHECK(tss::why_unusable(d).empty());
}

}  // namespace uet::fuzz
