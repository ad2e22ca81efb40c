/// An enemy's side of its conversations with one endpoint: bytes choose packets, which use what the endpoint's answers have
/// taught.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/sim/attack_packets.h"
#include "tests/fuzz/choices.h"

namespace uet::fuzz {

class Conversations {
 public:
  /// Speaks as `peers` hosts.
  Conversations(std::size_t peers, std::uint32_t payload_mtu) : peers_(peers), mtu_(payload_mtu) {}

  struct Packet {
    std::size_t peer = 0;
    sim::AttackBytes bytes;  ///< without trailer
    bool is_trimmed = false;
  };
  Packet packet(Choices& in);
  /// The endpoint has sent this to host `peer`.
  void learn(std::size_t peer, Bytes bytes);

 private:
  static constexpr std::size_t kTalks = 8;
  struct Talk {
    sim::Conversation c;
    std::size_t peer = 0;
  };
  Talk* find(std::size_t peer, std::uint16_t own_id);
  void remember(const Talk& talk);

  const std::size_t peers_;
  const std::uint32_t mtu_;
  std::vector<Talk> talks_;
  std::size_t next_ = 0;
};

}  // namespace uet::fuzz
