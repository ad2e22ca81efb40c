// The vectors of the specification's summary: positive, changed on the way, forged. [TSS 14]
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/base/byte_cursor.h"
#include "tests/tss/fake_keys.h"

namespace uet::tss::test {
namespace {

using Json = nlohmann::json;

const Json& vectors() {
  static const Json all = Json::parse(std::ifstream(UET_TSS_VECTORS));
  return all;
}
Bytes hex(const Json& j) {
  return from_hex(j.get<std::string>());
}
std::uint64_t number(const Json& j) {
  return std::stoull(j.get<std::string>(), nullptr, 16);
}
const Json& packet(const std::string& id) {
  for (const Json& p : vectors()["packets"])
    if (p["id"] == id) return p;
  ADD_FAILURE() << id;
  std::abort();
}

/// An IP packet, taken apart as a port does.
struct OnTheWire {
  explicit OnTheWire(const Bytes& ip) {
    const bool is_v4 = ip[0] >> 4 == 4;
    const std::size_t ip_header = is_v4 ? 20 : 40;
    const std::size_t length =
        is_v4 ? base::load_be<std::uint16_t>(&ip[2]) : 40u + base::load_be<std::uint16_t>(&ip[4]);
    carrier.is_udp = ip[is_v4 ? 9 : 6] == 17;
    source = address(ip, is_v4 ? 12 : 8, is_v4);
    destination = address(ip, is_v4 ? 16 : 24, is_v4);
    entropy = base::load_be<std::uint16_t>(&ip[ip_header]);
    if (carrier.is_udp) carrier.udp_port = base::load_be<std::uint16_t>(&ip[ip_header + 2]);
    const auto begin =
        ip.begin() + static_cast<std::ptrdiff_t>(ip_header + (carrier.is_udp ? 8 : 4));
    // Behind the IP packet there may be padding.
    uet.assign(begin, ip.begin() + static_cast<std::ptrdiff_t>(std::min(length, ip.size())));
  }
  static net::FabricAddress address(const Bytes& ip, std::size_t at, bool is_v4) {
    if (is_v4) return net::FabricAddress::from_v4(base::load_be<std::uint32_t>(&ip[at]));
    std::array<std::uint8_t, 16> v6;
    std::copy_n(ip.begin() + static_cast<std::ptrdiff_t>(at), 16, v6.begin());
    return net::FabricAddress::from_v6(v6);
  }
  net::FabricAddress source, destination;
  std::uint16_t entropy = 0;
  Carrier carrier;
  Bytes uet;
};

enum class End : std::uint8_t { kSender, kReceiver };

/// The secure domain that a vector's packet belongs to, as one of its ends has it.
DomainConfig domain_of(const Json& p, End end) {
  DomainConfig c;
  c.sdi = static_cast<std::uint32_t>(number(p["sdi"]));
  c.ssi_mode = p["sp"] == 1;
  c.epoch = p["epoch"];
  c.clear_bytes = static_cast<std::uint8_t>(p["coff"].get<int>() - (c.ssi_mode ? 16 : 12));
  const std::string mode = p["mode"];
  c.mode = mode == "direct" ? Mode::kDirect : mode == "cluster" ? Mode::kCluster : Mode::kServer;
  if (c.mode == Mode::kCluster)
    c.rekey = {.mask = number(p["rekey_mask"]), .shift = p["rekey_shift"].get<unsigned>()};
  const bool sender_is_server = p["role"] == "server";
  if (c.mode == Mode::kServer)
    c.role = (end == End::kSender) == sender_is_server ? Role::kServer : Role::kClient;
  if (c.mode == Mode::kServer && c.ssi_mode) {
    c.partition = {.bits = 1, .id = c.role == Role::kServer ? 1u : 0u};
    const OnTheWire wire(hex(p["protected_ip_packet"]));
    if (c.role == Role::kServer)
      c.members = {{static_cast<std::uint32_t>(number(p["ssi"])),
                    sender_is_server ? wire.destination : wire.source}};
  }
  if (c.ssi_mode && c.role != Role::kServer) c.ssi = static_cast<std::uint32_t>(number(p["ssi"]));
  KeyConfig key{.an = p["an"] == 1, .key = key_of(hex(p["sdk_i"]))};
  if (c.role == Role::kClient) {
    key.key = key_of(hex(p["aead_key"]));
    const Bytes mask = hex(p["ivmask"]);
    key.mask = Mask(std::span<const std::uint8_t, 12>(mask.data(), 12));
    key.epoch = p["epoch"];
  }
  c.tx_an = key.an;
  c.keys = {key};
  return c;
}

Node receiver(const Json& p, const OnTheWire& wire,
              const CipherLibrary& ciphers = openssl_ciphers()) {
  return Node(domain_of(p, End::kReceiver), wire.destination, nullptr, wire.carrier, ciphers);
}

std::vector<const CipherLibrary*> libraries() {
  std::vector<const CipherLibrary*> all{&openssl_ciphers()};
  if (multi_buffer_ciphers() != nullptr) all.push_back(multi_buffer_ciphers());
  return all;
}

Context context_of(const Json& v) {
  const Bytes raw = hex(v["context"]);
  const std::size_t at = raw.size() == 10 ? 0 : 4;
  Context c{.epoch = base::load_be<std::uint16_t>(&raw[at]),
            .rekey = base::load_be<std::uint32_t>(&raw[at + 2])};
  if (raw.size() == 10) {
    c.identity = Identity::of_ssi(base::load_be<std::uint32_t>(&raw[6]));
  } else {
    std::array<std::uint8_t, 16> v6;
    std::copy_n(raw.begin() + 10, 16, v6.begin());
    c.identity = Identity::of_address(net::FabricAddress::from_v6(v6));
  }
  return c;
}

Bytes derived(const Key& initial, Label label, const Context& context) {
  const DerivedKey key = KeyDerivation(initial).derive(label, context);
  Bytes out;
  for (const std::uint8_t b : key.key.bytes()) out.push_back(b);
  for (const std::uint8_t b : key.mask.bytes()) out.push_back(b);
  return out;
}
Bytes derived(const Json& v) {
  return derived(key_of(hex(v["sdk_i"])), v["label"] == "U1" ? Label::kCluster : Label::kServer,
                 context_of(v));
}

// Covers: TSS-T1, TSS-T2, TSS-T33
TEST(TssVectors, derived_keys) {
  ASSERT_EQ(vectors()["kdf"].size(), 9u);
  for (const Json& v : vectors()["kdf"]) EXPECT_EQ(derived(v), hex(v["out44"])) << v["id"];
}

// Covers: TSS-T3
TEST(TssVectors, derived_keys_are_not_those_of_known_mistakes) {
  ASSERT_EQ(vectors()["kdf_wrong"].size(), 3u);
  const Bytes ours = derived(vectors()["kdf"][0]);
  for (const Json& v : vectors()["kdf_wrong"]) EXPECT_NE(ours, hex(v["out44"])) << v["id"];
}

/// The same function from single blocks of AES: subkey S1, then one encryption per output block.
Bytes derived_from_blocks(const Key& initial, Label label, const Context& context) {
  EVP_CIPHER_CTX* ecb = EVP_CIPHER_CTX_new();
  EVP_EncryptInit_ex(ecb, EVP_aes_256_ecb(), nullptr, initial.data(), nullptr);
  EVP_CIPHER_CTX_set_padding(ecb, 0);
  const auto encrypt = [&](std::array<std::uint8_t, 16> block) {
    int n = 0;
    EVP_EncryptUpdate(ecb, block.data(), &n, block.data(), 16);
    return block;
  };
  auto s1 = encrypt({});
  const bool carry = (s1[0] & 0x80) != 0;
  for (std::size_t i = 0; i < 16; ++i)
    s1[i] = static_cast<std::uint8_t>(s1[i] << 1 | (i < 15 ? s1[i + 1] >> 7 : 0));
  if (carry) s1[15] ^= 0x87;

  Bytes fixed{'U', static_cast<std::uint8_t>(label == Label::kCluster ? '1' : '2'), 0};
  const auto identity = context.identity.bytes();
  if (identity.size() == 16) fixed.insert(fixed.end(), 4, 0);
  for (int shift : {8, 0}) fixed.push_back(static_cast<std::uint8_t>(context.epoch >> shift));
  for (int shift : {24, 16, 8, 0})
    fixed.push_back(static_cast<std::uint8_t>(context.rekey >> shift));
  fixed.insert(fixed.end(), identity.begin(), identity.end());
  fixed.insert(fixed.end(), {0x01, 0x60});

  Bytes out;
  for (std::uint8_t i = 1; i <= 3; ++i) {
    Bytes input{i};
    input.insert(input.end(), fixed.begin(), fixed.end());
    std::array<std::uint8_t, 16> state{};
    for (std::size_t at = 0; at < input.size(); at += 16) {
      const bool is_last = at + 16 == input.size();
      for (std::size_t b = 0; b < 16; ++b) state[b] ^= input[at + b] ^ (is_last ? s1[b] : 0);
      state = encrypt(state);
    }
    out.insert(out.end(), state.begin(), state.end());
  }
  EVP_CIPHER_CTX_free(ecb);
  out.resize(44);
  return out;
}

// Covers: TSS-T4
TEST(TssVectors, derived_keys_agree_with_single_blocks_of_aes) {
  base::Rng rng(4);
  for (int i = 0; i < 100'000; ++i) {
    const Key initial = key_number(rng.next_u64() % 512);
    Context context{.epoch = static_cast<std::uint16_t>(rng.next_u32()), .rekey = rng.next_u32()};
    if (rng.chance(0.5)) {
      context.identity = Identity::of_ssi(rng.next_u32());
    } else {
      std::array<std::uint8_t, 16> v6;
      for (auto& b : v6) b = static_cast<std::uint8_t>(rng.next_u32());
      context.identity = Identity::of_address(net::FabricAddress::from_v6(v6));
    }
    const Label label = rng.chance(0.5) ? Label::kCluster : Label::kServer;
    ASSERT_EQ(derived(initial, label, context), derived_from_blocks(initial, label, context)) << i;
  }
}

// Covers: TSS-T5
TEST(TssVectors, ivs) {
  ASSERT_EQ(vectors()["iv"].size(), 7u);
  for (const Json& v : vectors()["iv"]) {
    const Bytes mask = hex(v["ivmask"]);
    const Iv iv = make_iv(static_cast<std::uint32_t>(number(v["prefix"])), number(v["tsc"]),
                          Mask(std::span<const std::uint8_t, 12>(mask.data(), 12)));
    EXPECT_EQ(Bytes(iv.begin(), iv.end()), hex(v["iv"])) << v["id"];
  }
}

// Covers: TSS-T6, TSS-T18, TSS-T30
TEST(TssVectors, packets_are_sealed_to_the_last_bit) {
  ASSERT_EQ(vectors()["packets"].size(), 11u);
  for (const CipherLibrary* library : libraries()) {
    for (const Json& p : vectors()["packets"]) {
      const OnTheWire plain(hex(p["plain_ip_packet"])), sealed(hex(p["protected_ip_packet"]));
      const DomainConfig config = domain_of(p, End::kSender);
      CounterStore store;
      store[fingerprint_of(config.keys[0].key)] = number(p["counter"]) & ((1ull << 47) - 1);
      Node sender(config, plain.source, &store, plain.carrier, *library);
      const auto out = sender.seal(plain.uet, plain.destination, plain.entropy);
      ASSERT_TRUE(out.has_value()) << p["id"];
      EXPECT_EQ(*out, sealed.uet) << p["id"] << " " << library->name();
      EXPECT_EQ(out->size() - plain.uet.size(), p["sp"] == 1 ? 32u : 28u);
    }
  }
}

// Covers: TSS-T7
TEST(TssVectors, packets_are_opened_from_the_wire) {
  for (const CipherLibrary* library : libraries()) {
    for (const Json& p : vectors()["packets"]) {
      const OnTheWire wire(hex(p["protected_ip_packet"]));
      Node node = receiver(p, wire, *library);
      EXPECT_EQ(node.open(wire.uet, wire.source, wire.entropy),
                OnTheWire(hex(p["plain_ip_packet"])).uet)
          << p["id"] << " " << library->name();
      EXPECT_EQ(node.domain.stats().in_auth_pkts, 1u);
    }
  }
}

// Covers: TSS-T9
TEST(TssVectors, what_switches_change_is_accepted) {
  ASSERT_EQ(vectors()["mutations_accepted"].size(), 2u);
  for (const Json& m : vectors()["mutations_accepted"]) {
    const Json& p = packet(m["base"]);
    const OnTheWire wire(hex(m["protected_ip_packet"]));
    Node node = receiver(p, wire);
    EXPECT_EQ(node.open(wire.uet, wire.source, wire.entropy),
              OnTheWire(hex(p["plain_ip_packet"])).uet)
        << m["id"];
  }
}

// Covers: TSS-T15
TEST(TssVectors, bytes_behind_the_ip_packet_do_not_matter) {
  for (std::size_t padding = 4; padding <= 20; ++padding) {
    Bytes ip = hex(packet("PKT-1")["protected_ip_packet"]);
    ip.insert(ip.end(), padding, 0x55);
    const OnTheWire wire(ip);
    EXPECT_TRUE(receiver(packet("PKT-1"), wire).open(wire.uet, wire.source, wire.entropy));
  }
}

/// Where the specification's counter is.
std::uint64_t counted(const SecurityStats& s, const std::string& name) {
  if (name.starts_with("in_auth_fail_pkts")) return s.in_auth_fail_pkts;
  if (name.starts_with("in_errored_pkts")) return s.in_errored_pkts;
  if (name.starts_with("in_invalid_sa")) return s.in_invalid_sa;
  if (name.starts_with("in_invalid")) return s.in_invalid;
  if (name.starts_with("in_rx_encryption_bypass_pkts"))
    return s.in_rx_encryption_bypass_pkts * s.in_binding_failure_pkts;
  return 0;
}

// Covers: TSS-T10, TSS-T11, TSS-T12, TSS-T13, TSS-T14, TSS-T36, TSS-T47, TSS-T50
TEST(TssVectors, forged_packets_are_refused_and_counted) {
  ASSERT_EQ(vectors()["negative"].size(), 15u);
  for (const Json& n : vectors()["negative"]) {
    const Json& p = packet(n["base"]);
    const OnTheWire wire(hex(n["protected_ip_packet"]));
    Node node = receiver(p, wire);
    if (n["id"] == "NEG-15") {  // a duplicate: packet delivery tells it apart
      EXPECT_TRUE(node.open(wire.uet, wire.source, wire.entropy));
      EXPECT_TRUE(node.open(wire.uet, wire.source, wire.entropy));
      continue;
    }
    const std::uint64_t derived_before = node.domain.stats().keys_derived;
    EXPECT_FALSE(node.open(wire.uet, wire.source, wire.entropy)) << n["id"];
    EXPECT_EQ(counted(node.domain.stats(), n["counter"]), 1u) << n["id"];
    EXPECT_EQ(node.domain.sources_known(), 0u);
    if (n["counter"] != "in_auth_fail_pkts") {
      EXPECT_EQ(node.domain.stats().keys_derived, derived_before) << n["id"];
    }
  }
}

// Covers: TSS-T10
TEST(TssVectors, no_single_bit_can_be_flipped) {
  const Json& p = packet("PKT-1");
  const Bytes good = hex(p["protected_ip_packet"]);
  const OnTheWire genuine(good);
  Node node = receiver(p, genuine);
  for (std::size_t bit = 12 * 8; bit < good.size() * 8; ++bit) {
    // Ports drop a wrong destination port and a wrong UDP length; a checksum they do not show.
    const std::size_t at = bit / 8;
    if (at >= 22 && at < 28) continue;
    Bytes ip = good;
    ip[at] ^= static_cast<std::uint8_t>(1 << (bit % 8));
    const OnTheWire wire(ip);
    net::FabricAddress to = node.address;
    node.address = wire.destination;
    EXPECT_FALSE(node.open(wire.uet, wire.source, wire.entropy)) << "bit " << bit;
    node.address = to;
  }
  EXPECT_EQ(node.domain.stats().in_auth_pkts, 0u);
  EXPECT_EQ(node.domain.sources_known(), 0u);
  EXPECT_TRUE(node.open(genuine.uet, genuine.source, genuine.entropy));
}

TEST(TssVectors, trimmed_packet_can_be_read_and_is_not_believed) {
  const Json& t = vectors()["trimmed"][0];
  const Json& p = packet(t["base"]);
  const OnTheWire wire(hex(t["protected_ip_packet"]));
  for (const CipherLibrary* library : libraries()) {
    const auto cipher = library->make(Direction::kOpen);
    cipher->set_key(key_of(hex(p["aead_key"])));
    Bytes text(wire.uet.begin() + 16, wire.uet.end());
    const Bytes iv = hex(p["iv"]);
    Iv fixed;
    std::copy_n(iv.begin(), fixed.size(), fixed.begin());
    cipher->peek(fixed, text);
    EXPECT_EQ(text, hex(t["unverified_plaintext"])) << library->name();
  }
}

// Covers: TSS-T49
TEST(TssVectors, trimmed_packet_is_a_hint_from_a_known_sender_and_only_when_wanted) {
  const Json& t = vectors()["trimmed"][0];
  const Json& p = packet(t["base"]);
  const OnTheWire whole(hex(p["protected_ip_packet"])), cut(hex(t["protected_ip_packet"]));
  for (const CipherLibrary* library : libraries()) {
    for (const bool is_wanted : {false, true}) {
      DomainConfig config = domain_of(p, End::kReceiver);
      config.trim_hints = is_wanted;
      Node node(config, whole.destination, nullptr, whole.carrier, *library);
      const auto peek = [&] { return node.open(cut.uet, cut.source, cut.entropy, true); };
      EXPECT_FALSE(peek()) << "of a sender that is not known";
      ASSERT_TRUE(node.open(whole.uet, whole.source, whole.entropy));
      const auto hint = peek();
      ASSERT_EQ(hint.has_value(), is_wanted);
      if (hint) {
        EXPECT_EQ(*hint, hex(t["unverified_plaintext"]));
      }
      const SecurityStats& stats = node.domain.stats();
      EXPECT_EQ(stats.in_trim_hint_pkts, is_wanted ? 1u : 0u);
      EXPECT_EQ(stats.in_trimmed_pkts, is_wanted ? 1u : 2u);
      EXPECT_EQ(stats.in_auth_fail_pkts, 0u);
      EXPECT_EQ(stats.in_auth_pkts, 1u);
      Bytes short_one = cut.uet;
      short_one.pop_back();
      EXPECT_FALSE(node.open(short_one, cut.source, cut.entropy, true)) << "less than a PDS header";
    }
  }
}

}  // namespace
}  // namespace uet::tss::test
