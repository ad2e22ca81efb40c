#include "lib/dpdk/flow_rules.h"

#include <rte_errno.h>
#include <rte_flow.h>

#include <array>
#include <cstring>

namespace uet::dpdk {

namespace {

std::string words_of(const rte_flow_error& said, int code) {
  return said.message != nullptr ? said.message : rte_strerror(code < 0 ? -code : code);
}

/// The headers that a packet for us has, with what must match in them.
class Pattern {
 public:
  explicit Pattern(const FlowTarget& target) {
    add(RTE_FLOW_ITEM_TYPE_ETH, nullptr, nullptr);
    if (target.vlan != 0) {
      vlan_.tci = rte_cpu_to_be_16(target.vlan);
      vlan_mask_.tci = RTE_BE16(0x0fff);
      add(RTE_FLOW_ITEM_TYPE_VLAN, &vlan_, &vlan_mask_);
    }
    if (target.address.is_v4())
      add_v4(target);
    else
      add_v6(target);
    if (!target.native_ip) {
      udp_.hdr.dst_port = rte_cpu_to_be_16(target.udp_port);
      udp_mask_.hdr.dst_port = 0xffff;
      add(RTE_FLOW_ITEM_TYPE_UDP, &udp_, &udp_mask_);
    }
    add(RTE_FLOW_ITEM_TYPE_END, nullptr, nullptr);
  }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  const rte_flow_item* items() const { return items_.data(); }

 private:
  void add(rte_flow_item_type type, const void* spec, const void* mask) {
    items_[count_++] = rte_flow_item{.type = type, .spec = spec, .last = nullptr, .mask = mask};
  }
  void add_v4(const FlowTarget& target) {
    v4_.hdr.dst_addr = rte_cpu_to_be_32(target.address.v4());
    v4_mask_.hdr.dst_addr = 0xffff'ffff;
    if (target.native_ip) {
      v4_.hdr.next_proto_id = target.ip_protocol;
      v4_mask_.hdr.next_proto_id = 0xff;
    }
    add(RTE_FLOW_ITEM_TYPE_IPV4, &v4_, &v4_mask_);
  }
  void add_v6(const FlowTarget& target) {
    std::memcpy(v6_.hdr.dst_addr, target.address.bytes().data(), 16);
    std::memset(v6_mask_.hdr.dst_addr, 0xff, 16);
    if (target.native_ip) {
      v6_.hdr.proto = target.ip_protocol;
      v6_mask_.hdr.proto = 0xff;
    }
    add(RTE_FLOW_ITEM_TYPE_IPV6, &v6_, &v6_mask_);
  }

  std::array<rte_flow_item, 5> items_{};
  std::size_t count_ = 0;
  rte_flow_item_vlan vlan_{}, vlan_mask_{};
  rte_flow_item_ipv4 v4_{}, v4_mask_{};
  rte_flow_item_ipv6 v6_{}, v6_mask_{};
  rte_flow_item_udp udp_{}, udp_mask_{};
};

}  // namespace

bool is_bifurcated(const std::string& driver) {
  return driver.rfind("mlx5", 0) == 0 || driver.rfind("net_mlx", 0) == 0;
}

bool isolate_flows(std::uint16_t port, std::string& error) {
  rte_flow_error said{};
  const int result = rte_flow_isolate(port, 1, &said);
  if (result == 0) return true;
  error = words_of(said, result);
  return false;
}

bool steer_flows(std::uint16_t port, std::uint16_t queue, const FlowTarget& target,
                 std::string& error) {
  const Pattern pattern(target);
  const rte_flow_attr attributes{
      .group = 0, .priority = 0, .ingress = 1, .egress = 0, .transfer = 0, .reserved = 0};
  const rte_flow_action_queue to{.index = queue};
  const std::array<rte_flow_action, 2> actions = {
      rte_flow_action{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to},
      rte_flow_action{.type = RTE_FLOW_ACTION_TYPE_END, .conf = nullptr}};
  rte_flow_error said{};
  // Gone with the device when it is closed.
  if (rte_flow_create(port, &attributes, pattern.items(), actions.data(), &said) != nullptr)
    return true;
  error = words_of(said, rte_errno);
  return false;
}

}  // namespace uet::dpdk
