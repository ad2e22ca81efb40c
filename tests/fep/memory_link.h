/// Two ports joined in memory, on virtual time: what one sends arrives at the other after
/// serialization and delay, or is lost, repeated or overtaken as a seeded generator says. Allocates
/// nothing after construction.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "lib/base/rng.h"
#include "lib/net/heap_packet_pool.h"
#include "lib/net/port.h"

namespace uet::test {

using base::Duration;
using base::Instant;

struct LinkConfig {
  double loss = 0, reorder = 0, duplicate = 0;
  Duration delay = Duration::from_us(5);
  Duration reorder_delay = Duration::from_us(40);
  base::BitRate rate = base::BitRate::from_gbps(25);
  std::size_t ip_mtu = 4422;
  /// IP MTU of the device at each side where they differ, 0: ip_mtu. The way carries the less of the two, which both
  /// ports know, and loses what is larger.
  std::array<std::size_t, 2> ip_mtus{};
  /// Two devices on one Ethernet: each port knows the MTU of its own.
  bool knows_own_mtu_only = false;
  std::uint16_t run_packets = 1;  ///< that each port says it moves as one
  std::uint64_t seed = 1;
  net::SendFailure send_failure;  ///< that both ports tell of
  /// Called for each packet that would be sent; true drops it.
  std::function<bool(std::size_t from, std::span<const std::uint8_t> bytes)> drop;
  /// While it is true, that side's port takes nothing.
  std::function<bool(std::size_t side)> refuses;
  /// Sees each packet that was sent, whole, whether it arrives or not.
  std::function<void(std::size_t from, const net::TxPacket& packet)> tap;
};

class MemoryLink {
 public:
  explicit MemoryLink(const LinkConfig& config) : config_(config), rng_(config.seed) {
    for (std::size_t side = 0; side < 2; ++side) ends_[side].init(*this, side);
  }

  net::Port& port(std::size_t side) { return ends_[side]; }
  net::HeapPacketPool& pool(std::size_t side) { return ends_[side].pool_; }
  LinkConfig& config() { return config_; }
  std::uint64_t lost() const { return lost_; }
  /// Of those lost, packets that no way of this MTU carries.
  std::uint64_t too_large() const { return too_large_; }
  std::size_t carries() const { return std::min(ends_[0].facts().ip_mtu, ends_[1].facts().ip_mtu); }
  static net::FabricAddress address(std::size_t side) {
    return net::FabricAddress::from_v4(0x0a000001u + static_cast<std::uint32_t>(side));
  }
  /// Arrival of the next packet at either side.
  Instant next_arrival() const {
    Instant next = Instant::never();
    for (const End& end : ends_) next = std::min(next, end.next_deadline());
    return next;
  }
  /// Puts raw bytes on the way to `side`.
  void inject(Instant now, std::size_t side, std::span<const std::uint8_t> bytes,
              net::FabricAddress from, std::uint16_t entropy, net::TosByte tos) {
    ends_[side].arrive(now, bytes, from, entropy, tos);
  }

 private:
  class End final : public net::Port {
   public:
    void init(MemoryLink& link, std::size_t side) {
      link_ = &link;
      side_ = side;
      facts_.name = "memory";
      facts_.address = address(side);
      facts_.ip_mtu =
          link.config_.ip_mtus[side] != 0 ? link.config_.ip_mtus[side] : link.config_.ip_mtu;
      facts_.link_rate = link.config_.rate;
      facts_.run_packets = link.config_.run_packets;
      waiting_.reserve(kPackets);
    }
    const net::PortFacts& facts() const override { return facts_; }
    net::PacketPool& pool() override { return pool_; }
    net::SendFailure last_send_failure() const override { return link_->config_.send_failure; }
    std::size_t receive(Instant now, std::span<net::RxPacket> out) override {
      std::size_t n = 0;
      for (; n < out.size() && !waiting_.empty() && waiting_.front().at <= now; ++n) {
        std::pop_heap(waiting_.begin(), waiting_.end(), later);
        out[n] = std::move(waiting_.back().rx);
        waiting_.pop_back();
      }
      return n;
    }
    std::size_t send(Instant now, std::span<net::TxPacket> in) override {
      std::size_t n = 0;
      if (link_->config_.refuses && link_->config_.refuses(side_)) return 0;
      for (; n < in.size() && busy_until_ <= now + kQueueTime; ++n) {
        busy_until_ =
            std::max(busy_until_, now) +
            facts_.link_rate.time_for(static_cast<std::int64_t>(in[n].packet.size()) + 66);
        link_->carry(busy_until_, side_, in[n]);
        in[n].packet.reset();
      }
      return n;
    }
    net::Way way_to(Instant, const net::FabricAddress&) override {
      return {.ip_mtu = link_->config_.knows_own_mtu_only ? facts_.ip_mtu : link_->carries()};
    }
    Instant next_deadline() const override {
      return waiting_.empty() ? Instant::never() : waiting_.front().at;
    }
    void on_deadline(Instant) override {}
    std::size_t send_room(Instant now) const override {
      return busy_until_ <= now + kQueueTime ? SIZE_MAX : 0;
    }

    void arrive(Instant at, std::span<const std::uint8_t> bytes, net::FabricAddress from,
                std::uint16_t entropy, net::TosByte tos) {
      net::Packet copy = pool_.allocate();
      if (!copy || waiting_.size() == waiting_.capacity() || bytes.size() > copy.tailroom()) return;
      // Word by word: tests count the bytes that the endpoint copies with memcpy.
      std::uint8_t* to = copy.append(bytes.size());
      std::size_t i = 0;
      for (; i + 8 <= bytes.size(); i += 8) {
        std::uint64_t word;
        __builtin_memcpy(&word, bytes.data() + i, 8);
        *static_cast<volatile std::uint64_t*>(&word_) = word;
        __builtin_memcpy(to + i, &word_, 8);
      }
      for (; i < bytes.size(); ++i) static_cast<volatile std::uint8_t*>(to)[i] = bytes[i];
      waiting_.push_back({at, next_number_++,
                          net::RxPacket{.packet = std::move(copy),
                                        .source = from,
                                        .destination = facts_.address,
                                        .entropy = entropy,
                                        .tos = tos}});
      std::push_heap(waiting_.begin(), waiting_.end(), later);
    }

   private:
    friend class MemoryLink;
    static constexpr std::size_t kPackets = 2048;
    static constexpr Duration kQueueTime = Duration::from_us(50);
    struct Waiting {
      Instant at;
      std::uint64_t number;  ///< keeps the order of packets that arrive at the same time
      net::RxPacket rx;
    };
    static bool later(const Waiting& a, const Waiting& b) {
      return a.at != b.at ? a.at > b.at : a.number > b.number;
    }
    MemoryLink* link_ = nullptr;
    std::size_t side_ = 0;
    net::PortFacts facts_;
    net::HeapPacketPool pool_{kPackets, 9000};
    std::vector<Waiting> waiting_;
    std::uint64_t next_number_ = 0;
    std::uint64_t word_ = 0;
    Instant busy_until_;
  };

  void carry(Instant leaves, std::size_t from, const net::TxPacket& tx) {
    const auto bytes = tx.packet.bytes();
    if (config_.tap) config_.tap(from, tx);
    constexpr std::size_t kIpv4AndUdp = 28;
    const bool is_too_large = bytes.size() + kIpv4AndUdp > carries();
    too_large_ += is_too_large ? 1 : 0;
    if (is_too_large || (config_.drop && config_.drop(from, bytes)) || rng_.chance(config_.loss)) {
      ++lost_;
      return;
    }
    const int copies = rng_.chance(config_.duplicate) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      Instant at = leaves + config_.delay;
      if (rng_.chance(config_.reorder)) at = at + config_.reorder_delay;
      ends_[1 - from].arrive(at, bytes, address(from), tx.entropy, tx.tos);
    }
  }

  LinkConfig config_;
  base::Rng rng_;
  std::array<End, 2> ends_;
  std::uint64_t lost_ = 0;
  std::uint64_t too_large_ = 0;
};

}  // namespace uet::test
