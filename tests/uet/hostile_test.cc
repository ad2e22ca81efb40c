/// Garbage for a while, on real sockets: random bytes, packets of the endpoints themselves again, changed, and with forged
/// sources. Two endpoints go on talking meanwhile and every byte of theirs has to be right. Three seconds, or a minute with
/// UET_TEST_DEPTH=long; built with the sanitizers by ./check.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "lib/base/rng.h"
#include "tests/net/udp_capture.h"
#include "uet/endpoint.h"

namespace uet {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSeed = 4793;
const char* const kAddresses[] = {"127.0.78.1", "127.0.78.2"};

std::chrono::seconds duration() {
  const char* depth = std::getenv("UET_TEST_DEPTH");
  return std::chrono::seconds(depth != nullptr && std::string_view(depth) == "long" ? 60 : 3);
}

/// A socket that sends to the UET port from an address of its choice.
class Attacker {
 public:
  explicit Attacker(const char* address) : socket_(::socket(AF_INET, SOCK_DGRAM, 0)) {
    const sockaddr_in from = place(address, 0);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
  }
  ~Attacker() { ::close(socket_); }
  Attacker(const Attacker&) = delete;
  Attacker& operator=(const Attacker&) = delete;

  /// What the kernel does not take is as good as lost.
  void send(const char* to, const Bytes& bytes) {
    const sockaddr_in at = place(to, 4793);
    sent_ += ::sendto(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT,
                      reinterpret_cast<const sockaddr*>(&at), sizeof at) >= 0;
  }
  std::uint64_t sent() const { return sent_; }

 private:
  static sockaddr_in place(const char* address, std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    inet_pton(AF_INET, address, &at.sin_addr);
    return at;
  }
  int socket_;
  std::uint64_t sent_ = 0;
};

class HostileNetwork : public testing::Test {
 protected:
  HostileNetwork() : rng_(kSeed) { RecordProperty("seed", static_cast<int>(kSeed)); }

  void open(const std::map<std::string, std::string>& more = {}) {
    for (int i = 0; i < 2; ++i) {
      std::map<std::string, std::string> settings{{"port", "udp"}, {"addr", kAddresses[i]}};
      if (i == 0) settings.insert(more.begin(), more.end());
      std::string error;
      sides_[i] = Endpoint::open(settings, error);
      ASSERT_NE(sides_[i], nullptr) << error;
    }
    peer_ = sides_[0]->add_peer(sides_[1]->address()).value();
  }

  /// One tagged message from side 0 to side 1, with `meanwhile` between the turns.
  template <typename F>
  void talk(std::size_t size, F&& meanwhile) {
    Bytes out(size), in(size);
    for (auto& b : out) b = static_cast<std::uint8_t>(rng_.next_u32());
    ASSERT_EQ(sides_[1]->receive(size, 0, in.data(), in.size(), nullptr), Post::kAccepted);
    while (sides_[0]->send(peer_, size, out.data(), out.size(), nullptr) == Post::kTryAgain) turn();
    int left = 2;
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    while (left > 0 && Clock::now() < deadline) {
      meanwhile();
      turn();
      for (auto& side : sides_)
        while (const auto done = side->poll()) {
          EXPECT_TRUE(done->ok) << done->reason;
          --left;
        }
    }
    ASSERT_EQ(left, 0) << "honest traffic stands still";
    ASSERT_EQ(in, out);
  }
  void turn() {
    for (auto& side : sides_) side->turn();
  }

  Bytes random_bytes() {
    Bytes bytes(1 + rng_.below(rng_.chance(0.9) ? 128 : 9000));
    for (auto& b : bytes) b = static_cast<std::uint8_t>(rng_.next_u32());
    // A known packet type half of the time, so that more than the first check is reached.
    if (rng_.chance(0.5)) bytes[0] = static_cast<std::uint8_t>(rng_.below(16) << 3 | rng_.below(8));
    return bytes;
  }
  Bytes mutated(Bytes bytes) {
    switch (rng_.below(4)) {
      case 0:
        bytes.resize(1 + rng_.below(static_cast<std::uint32_t>(bytes.size())));
        break;
      case 1:
        bytes.insert(bytes.end(), rng_.below(64), 0xa5);
        break;
      default:
        for (std::uint32_t i = 0; i <= rng_.below(6); ++i)
          bytes[rng_.below(static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size(), 64)))] ^=
              static_cast<std::uint8_t>(1 << rng_.below(8));
    }
    return bytes;
  }

  std::unique_ptr<Endpoint> sides_[2];
  Peer peer_;
  base::Rng rng_;
};

TEST_F(HostileNetwork, random_bytes_and_changed_packets__disturb_no_peer) {
  const auto capture = std::filesystem::temp_directory_path() /
                       ("uet-hostile-" + std::to_string(::getpid()) + ".pcapng");
  ASSERT_NO_FATAL_FAILURE(open({{"pcap", capture.string()}}));
  for (const std::size_t size : {1U, 5'000U, 100'000U, 100'001U})
    ASSERT_NO_FATAL_FAILURE(talk(size, [] {}));
  for (auto& side : sides_) side.reset();
  std::vector<Bytes> recorded;
  for (auto& datagram : net::testing::datagrams_of(capture))
    recorded.push_back(std::move(datagram.payload));
  std::filesystem::remove(capture);
  ASSERT_GT(recorded.size(), 20u);

  ASSERT_NO_FATAL_FAILURE(open());
  // One has the address of a talker: only ports and the CRC tell them apart.
  Attacker stranger("127.0.78.9"), impostor(kAddresses[0]);
  const auto attack = [&] {
    for (Attacker* attacker : {&stranger, &impostor})
      for (const char* victim : kAddresses) {
        const Bytes& packet = recorded[rng_.below(static_cast<std::uint32_t>(recorded.size()))];
        attacker->send(victim, random_bytes());
        attacker->send(victim, mutated(packet));
        if (attacker == &stranger) attacker->send(victim, packet);
      }
  };
  const auto end = Clock::now() + duration();
  std::uint64_t messages = 0;
  for (; Clock::now() < end; ++messages)
    ASSERT_NO_FATAL_FAILURE(talk(1 + rng_.below(30'000), attack));
  std::printf("%llu hostile packets, %llu messages between them\n",
              static_cast<unsigned long long>(stranger.sent() + impostor.sent()),
              static_cast<unsigned long long>(messages));
  EXPECT_GT(stranger.sent() + impostor.sent(), 1000u);
  EXPECT_GT(messages, 2u);
}

}  // namespace
}  // namespace uet
