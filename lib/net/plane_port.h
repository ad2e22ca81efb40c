/// Several ports of one endpoint as one port: each leads into a fabric of its own (a plane), all have the same address.
/// [CC 7.8]
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "lib/base/trace.h"
#include "lib/net/port.h"

namespace uet::net {

/// One thread. Packets to send wait inside, a burst for each plane, when its device takes no more: a plane that is busy must
/// not hold up the others. A plane that cannot be used at the moment, because its link is down or because it has
/// refused everything for long while another one worked, is not among planes_up().
///
/// Buffers of the first port's pool leave by any plane, so all must be able to send them: DPDK ports can, and kernel ports can.
class PlanePort final : public Port {
 public:
  /// Packets that may wait for one plane. At least what an endpoint builds in one burst.
  static constexpr std::size_t kWaiting = 64;

  /// Two to kMaxPlanes ports with one address and one encapsulation. `trace` counts drops and must outlive the port.
  PlanePort(std::vector<std::unique_ptr<Port>> planes, base::Trace& trace);
  ~PlanePort() override;

  const PortFacts& facts() const override { return facts_; }
  PacketPool& pool() override { return members_.front().port->pool(); }
  std::size_t receive(base::Instant now, std::span<RxPacket> out) override;
  std::size_t send(base::Instant now, std::span<TxPacket> in) override;
  std::size_t send_room(base::Instant now) const override;

  std::uint8_t planes_up(base::Instant now) override;
  std::size_t plane_room(base::Instant now, unsigned plane) const override;
  PlaneCounters plane_counters(unsigned plane) const override;
  SendFailure last_send_failure() const override;

  std::uint16_t wire_entropy(std::uint16_t entropy) const override {
    return plane_wire_entropy(entropy, 0);
  }
  std::uint16_t plane_wire_entropy(std::uint16_t entropy, unsigned plane) const override {
    return members_[plane].port->wire_entropy(entropy);
  }

  /// The narrowest of all planes: a message takes any of them.
  Way way_to(base::Instant now, const FabricAddress& destination) override;

  base::Instant next_deadline() const override;
  void on_deadline(base::Instant now) override;
  /// True when every plane can be slept on. A sleeper watches wakeup_fds().
  bool arm_wakeup() override;
  void abandon_in_child() override {
    for (Member& member : members_) member.port->abandon_in_child();
  }
  /// Descriptors of the planes; empty when one of them has none.
  std::vector<int> wakeup_fds() const;

 private:
  /// One plane: its port, and what waits for its device.
  struct Member {
    std::unique_ptr<Port> port;
    std::array<TxPacket, kWaiting> waiting;
    std::size_t first = 0, last = 0;  ///< those that wait are [first, last)
    bool has_link = true;
    bool refuses = false;
    base::Instant taken_at;     ///< when its device took something last
    base::Instant stuck_since;  ///< while packets wait
    PlaneCounters counters;

    bool is_up() const { return has_link && !refuses; }
    std::size_t count() const { return last - first; }
  };

  base::BitRate sum_of_rates() const;
  bool push(base::Instant now, Member& member, TxPacket& packet);
  void flush_all(base::Instant now);
  void flush(base::Instant now, Member& member);
  void drop_waiting(base::Instant now, Member& member);
  void look_at_links(base::Instant now);
  bool is_stuck(base::Instant now, const Member& member) const;

  base::Trace& trace_;
  std::vector<Member> members_;
  PortFacts facts_;
  std::size_t turn_ = 0;  ///< whose packets are received first
  base::Instant next_look_;
  base::Instant retry_at_ = base::Instant::never();  ///< something waits
};

}  // namespace uet::net
