/// A whole endpoint on virtual time and the enemy it faces: what the fuzzer's bytes choose becomes packets, time and the
/// program's own operations.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "fep/fep.h"
#include "lib/net/heap_packet_pool.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/conversations.h"
#include "tests/fuzz/targets.h"

namespace uet::fuzz {

/// Takes what the fuzzer sends; remembers what the endpoint sends.
class EnemyPort final : public net::Port {
 public:
  EnemyPort();

  void arrive(net::FabricAddress from, Bytes bytes, net::TosByte tos);
  /// What the endpoint has sent and the enemy has not looked at.
  std::deque<std::pair<net::FabricAddress, std::vector<std::uint8_t>>>& sent() { return sent_; }
  std::uint64_t packets() const { return packets_; }
  std::size_t packets_held() const {
    return pool_.capacity() - pool_.available() - waiting_.size();
  }
  bool has_waiting() const { return !waiting_.empty(); }

  // net::Port
  const net::PortFacts& facts() const override { return facts_; }
  net::PacketPool& pool() override { return pool_; }
  std::size_t receive(base::Instant now, std::span<net::RxPacket> out) override;
  std::size_t send(base::Instant now, std::span<net::TxPacket> in) override;

 private:
  static constexpr std::size_t kPackets = 1024, kPacketBytes = 2048, kRemembered = 64;
  net::PortFacts facts_;
  net::HeapPacketPool pool_{kPackets, kPacketBytes};
  std::deque<net::RxPacket> waiting_;
  std::deque<std::pair<net::FabricAddress, std::vector<std::uint8_t>>> sent_;
  std::uint64_t packets_ = 0;
};

class Enemy final : public ses::CompletionSink {
 public:
  Enemy();
  ~Enemy() override;

  /// One step: a packet, time, or an operation of the endpoint's own program.
  void step(Choices& in);
  /// The enemy is silent from now on: everything must come to rest, and nothing may be kept.
  void finish();

  void on_completion(ses::EndpointId endpoint, const ses::Completion& completion) override;

 private:
  static constexpr std::size_t kPeers = 3;
  static constexpr std::uint32_t kMtu = 1024;

  void packet(Choices& in);
  void pass_time(Choices& in);
  void operate(Choices& in);
  void run_until(base::Instant end);
  void turn();
  void learn();
  void check_turns() const;

  base::Rng rng_{4793};
  EnemyPort port_;
  base::Trace trace_{64};
  base::Instant now_ = base::Instant::from_ns(1'000'000);
  const base::Instant begin_ = now_;
  std::unique_ptr<fep::Fep> fep_;
  ses::EndpointId endpoint_ = 0;
  std::array<ses::PeerId, kPeers> peers_{};
  Conversations talks_{kPeers, kMtu};
  std::vector<std::uint8_t> memory_, local_;
  std::vector<bool> done_;  ///< by context: the operation has completed
  std::uint64_t turns_ = 0, steps_ = 0;
};

}  // namespace uet::fuzz
