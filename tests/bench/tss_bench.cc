/// What security costs: the cipher alone, sealing and opening of packets as the stack does it, and two whole endpoints on
/// a link in memory with and without it. Rates are of payload; compare rows of one run.
#include <benchmark/benchmark.h>

#include "fep/security.h"
#include "tests/bench/write_loop.h"
#include "tests/tss/fake_keys.h"

namespace uet::test {
namespace {

using namespace tss;  // NOLINT: this file is about nothing else

/// 0: OpenSSL; 1: intel-ipsec-mb. Null when this machine has no use for it.
const CipherLibrary* library(std::int64_t n) {
  return n == 0 ? &openssl_ciphers() : multi_buffer_ciphers();
}

constexpr std::size_t kPackets = 16;  // in turn, as in a burst

/// Addresses, UDP header and TSS header of IPv4.
constexpr std::size_t kAadBytes = 28;

/// The cipher alone.
template <bool kOpenToo>
void cipher(benchmark::State& state) {
  const CipherLibrary* lib = library(state.range(0));
  if (lib == nullptr) return state.SkipWithError("not for this processor");
  const auto seal = lib->make(Direction::kSeal), open = lib->make(Direction::kOpen);
  for (Cipher* c : {seal.get(), open.get()}) c->set_key(tss::test::key_number(1));
  const auto size = static_cast<std::size_t>(state.range(1));
  std::vector<std::vector<std::uint8_t>> text(kPackets, std::vector<std::uint8_t>(size + 16));
  const std::vector<std::uint8_t> aad(kAadBytes);
  Iv iv{};
  std::size_t n = 0;
  for (auto _ : state) {
    auto& t = text[n++ % kPackets];
    iv[11] = static_cast<std::uint8_t>(n);
    seal->seal(iv, aad, std::span(t).first(size), t.data() + size);
    if (kOpenToo && !open->open(iv, aad, std::span(t).first(size), t.data() + size)) std::abort();
  }
  state.SetBytesProcessed(state.iterations() * state.range(1));
}

void cipher_seal(benchmark::State& state) {
  cipher<false>(state);
}
void cipher_seal_and_open(benchmark::State& state) {
  cipher<true>(state);
}

/// Packets as the stack hands them to seal() and open().
struct Packets {
  explicit Packets(std::size_t size) : pool(kPackets + 2, size + 256) {
    for (std::size_t i = 0; i < kPackets; ++i) {
      all.push_back(pool.allocate());
      std::fill_n(all.back().append(size), size, 0x10);
    }
  }
  net::HeapPacketPool pool;
  std::vector<net::Packet> all;
};

/// Bursts of 16 packets, sealed together, by the cipher alone and as the stack does it; compare with cipher_seal and packet_seal.
void cipher_seal_burst(benchmark::State& state) {
  const CipherLibrary* lib = library(state.range(0));
  if (lib == nullptr) return state.SkipWithError("not for this processor");
  const auto seal = lib->make(Direction::kSeal);
  const auto sealer = lib->make_sealer();
  seal->set_key(tss::test::key_number(1));
  const auto size = static_cast<std::size_t>(state.range(1));
  std::vector<std::vector<std::uint8_t>> text(kPackets, std::vector<std::uint8_t>(size + 16));
  const std::vector<std::uint8_t> aad(kAadBytes);
  std::array<SealJob, kPackets> jobs;
  std::uint8_t n = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < kPackets; ++i)
      jobs[i] = {seal.get(), {1, ++n}, aad, std::span(text[i]).first(size), text[i].data() + size};
    sealer->seal(jobs);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kPackets) *
                          state.range(1));
}

void packet_seal_burst(benchmark::State& state) {
  const CipherLibrary* lib = library(state.range(0));
  if (lib == nullptr) return state.SkipWithError("not for this processor");
  tss::test::Node a(tss::test::direct_config(), tss::test::host(1), nullptr, {}, *lib);
  Packets p(static_cast<std::size_t>(state.range(1)));
  for (auto _ : state) {
    for (net::Packet& packet : p.all)
      if (a.domain.seal_later(packet, tss::test::host(2), 7)) std::abort();
    a.domain.seal_pending();
    for (net::Packet& packet : p.all) {
      packet.trim_front(a.domain.header_bytes());
      packet.trim_back(kIcvBytes);
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kPackets) *
                          state.range(1));
}

/// intel-ipsec-mb without bursts: what the whole stack would be.
class OneByOne final : public CipherLibrary {
 public:
  std::string_view name() const override { return "one by one"; }
  std::unique_ptr<Cipher> make(Direction direction) const override {
    return multi_buffer_ciphers()->make(direction);
  }
};

template <bool kOpenToo>
void packets(benchmark::State& state) {
  const CipherLibrary* lib = library(state.range(0));
  if (lib == nullptr) return state.SkipWithError("not for this processor");
  tss::DomainConfig config =
      state.range(2) == 0 ? tss::test::direct_config() : tss::test::cluster_config();
  tss::test::Node a(config, tss::test::host(1), nullptr, {}, *lib);
  tss::test::Node b(config, tss::test::host(2), nullptr, {}, *lib);
  Packets p(static_cast<std::size_t>(state.range(1)));
  std::size_t n = 0;
  for (auto _ : state) {
    net::Packet& packet = p.all[n++ % kPackets];
    if (a.domain.seal(packet, b.address, 7)) std::abort();
    if (kOpenToo) {
      if (b.domain.open(packet, {a.address, b.address, 7})) std::abort();
    } else {
      packet.trim_front(a.domain.header_bytes());
      packet.trim_back(kIcvBytes);
    }
  }
  state.SetBytesProcessed(state.iterations() * state.range(1));
}

void packet_seal(benchmark::State& state) {
  packets<false>(state);
}
void packet_seal_and_open(benchmark::State& state) {
  packets<true>(state);
}

enum class How : std::int64_t { kNone, kCrc, kOpenssl, kMultiBuffer, kOneByOne };

/// Writes of 1 MiB between two endpoints that share this core: each packet is built, sealed, opened and placed.
void whole_stack(benchmark::State& state) {
  const How how{state.range(0)};
  if (how >= How::kMultiBuffer && library(1) == nullptr)
    return state.SkipWithError("not for this processor");
  std::array<std::shared_ptr<tss::test::FakeKeys>, 2> keys;
  FepPair pair({.delay = Duration::from_us(1),
                .rate = base::BitRate::from_gbps(100),
                .ip_mtu = static_cast<std::size_t>(state.range(1)) + 326},
               {{"PROTECT", how == How::kNone ? "none" : "crc"}}, false, std::nullopt, false,
               [&](std::size_t side, const net::PortFacts& facts, fep::FepConfig& config) {
                 if (how < How::kOpenssl) return;
                 keys[side] = std::make_shared<tss::test::FakeKeys>(tss::test::direct_config());
                 static const OneByOne one_by_one;
                 const CipherLibrary& lib =
                     how == How::kOneByOne ? one_by_one : *library(how == How::kOpenssl ? 0 : 1);
                 auto security = fep::Security::open(keys[side], facts, lib);
                 config.protection = fep::DataProtection::kTss;
                 config.security = *security;
               });
  write_messages(state, pair, 1 << 20);
}

BENCHMARK(cipher_seal)->ArgNames({"mb", "bytes"})->ArgsProduct({{0, 1}, {256, 1024, 4096, 8192}});
BENCHMARK(packet_seal)
    ->ArgNames({"mb", "bytes", "cluster"})
    ->ArgsProduct({{0, 1}, {256, 1024, 4096, 8192}, {0, 1}});
BENCHMARK(cipher_seal_burst)
    ->ArgNames({"mb", "bytes"})
    ->ArgsProduct({{0, 1}, {256, 1024, 4096, 8192}});
BENCHMARK(packet_seal_burst)
    ->ArgNames({"mb", "bytes"})
    ->ArgsProduct({{0, 1}, {256, 1024, 4096, 8192}});
BENCHMARK(cipher_seal_and_open)->ArgNames({"mb", "bytes"})->ArgsProduct({{0, 1}, {4096, 8192}});
BENCHMARK(packet_seal_and_open)
    ->ArgNames({"mb", "bytes", "cluster"})
    ->ArgsProduct({{0, 1}, {4096, 8192}, {0, 1}});
BENCHMARK(whole_stack)
    ->ArgNames({"how", "payload"})
    ->ArgsProduct({{0, 1, 2, 3, 4}, {1024, 4096, 8192}});

}  // namespace
}  // namespace uet::test

BENCHMARK_MAIN();
