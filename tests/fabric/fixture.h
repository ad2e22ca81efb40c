/// A fabric between devices of memory, turned by the test, and frames made by the same code that endpoints use.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/fabric/commands.h"
#include "apps/fabric/emulator.h"
#include "lib/net/checksum.h"
#include "lib/net/frame_format.h"
#include "tests/net/memory_device.h"

namespace uet::fabric {

using net::Bytes;

inline net::MacAddress mac_of(std::size_t leg) {
  return {0x02, 0, 0, 0, 0, static_cast<std::uint8_t>(leg + 1)};
}

inline net::FabricAddress address_of(std::size_t leg, bool is_v6 = false) {
  if (!is_v6) return net::FabricAddress::from_v4(0x0a000001u + static_cast<std::uint32_t>(leg));
  std::array<std::uint8_t, 16> bytes{0xfd};
  bytes[15] = static_cast<std::uint8_t>(leg + 1);
  return net::FabricAddress::from_v6(bytes);
}

/// What a test may choose of a frame.
struct FrameSpec {
  std::size_t from = 0, to = 1;
  std::size_t uet_bytes = 1000;
  std::uint16_t entropy = 1000;
  net::TosByte tos = net::TosByte::of(18, 2);  ///< may be trimmed and marked
  bool is_v6 = false;
  bool is_native = false;
  std::uint16_t vlan = 0;
  std::uint16_t udp_port = 4793;
  Bytes front;  ///< the first bytes of the UET packet; the rest counts up
};

inline net::FrameFormat format_of(const FrameSpec& spec) {
  return {.mac = mac_of(spec.from),
          .address = address_of(spec.from, spec.is_v6),
          .vlan = spec.vlan,
          .udp_encapsulation = !spec.is_native,
          .udp_port = spec.udp_port};
}

inline Bytes frame_of(const FrameSpec& spec) {
  static net::HeapPacketPool pool(16, 16384);
  net::Packet packet = pool.allocate();
  std::uint8_t* at = packet.append(spec.uet_bytes);
  for (std::size_t i = 0; i < spec.uet_bytes; ++i)
    at[i] = i < spec.front.size() ? spec.front[i] : static_cast<std::uint8_t>(i);
  net::build_frame(format_of(spec), mac_of(spec.to), address_of(spec.to, spec.is_v6), spec.tos,
                   spec.entropy, packet);
  return {packet.bytes().begin(), packet.bytes().end()};
}

class FabricTest : public testing::Test {
 protected:
  /// `text` is a scenario without legs; `legs` are added, one on each leaf in turn.
  void start(std::string text, std::size_t legs) {
    text += "\n[[leg]]\nport = \"dpdk:memory%n\"\ncount = " + std::to_string(legs) + "\n";
    auto scenario = Scenario::parse(text, "test.toml");
    ASSERT_TRUE(scenario) << scenario.error();
    std::vector<std::unique_ptr<net::FrameDevice>> devices;
    for (std::size_t i = 0; i < legs; ++i) {
      devices.push_back(std::make_unique<net::MemoryDevice>(mac_of(i), 4096, 9200));
      devices_.push_back(static_cast<net::MemoryDevice*>(devices.back().get()));
    }
    fabric_ = std::make_unique<Emulator>(*scenario, std::move(devices));
    commands_ = std::make_unique<Commands>(*fabric_, CommandHooks{});
    for (const TimedCommand& c : fabric_->scenario().commands) command(c.text);
  }

  void command(const std::string& line) {
    const Json reply = commands_->run(line);
    EXPECT_TRUE(reply["ok"].get<bool>()) << line << ": " << reply.dump();
  }
  std::string refusal(const std::string& line) {
    const Json reply = commands_->run(line);
    EXPECT_FALSE(reply["ok"].get<bool>()) << line;
    return reply.value("error", "");
  }

  net::MemoryDevice& device(std::size_t leg) { return *devices_[leg]; }
  std::vector<Bytes>& sent(std::size_t leg) { return devices_[leg]->sent; }
  void inject(const FrameSpec& spec) { device(spec.from).inject(frame_of(spec)); }

  /// Turns in small steps, as the real loop does.
  void run_for(base::Duration time) {
    const sim::SimTime end = now_ + sim::SimSpan::from(time);
    while (now_ < end) {
      now_ = now_ + sim::SimSpan::from(base::Duration::from_us(20));
      fabric_->turn(now_);
    }
  }
  /// All hosts send something, so that nothing is flooded afterwards.
  void introduce() {
    for (std::size_t i = 0; i < devices_.size(); ++i)
      inject({.from = i, .to = (i + 1) % devices_.size(), .uet_bytes = 64});
    run_for(base::Duration::from_ms(10));
    for (auto* d : devices_) d->sent.clear();
  }

  /// The frame as the endpoint at leg `to` sees it; the reason when it refuses it.
  static base::Result<net::ParsedFrame, base::DropReason> received(const Bytes& frame,
                                                                   const FrameSpec& spec) {
    FrameSpec at = spec;
    at.from = spec.to;
    net::ParsedFrame parsed;
    if (const auto refused = net::parse_frame(format_of(at), frame, parsed)) return *refused;
    return parsed;
  }

  std::vector<net::MemoryDevice*> devices_;
  std::unique_ptr<Emulator> fabric_;
  std::unique_ptr<Commands> commands_;
  sim::SimTime now_;
};

}  // namespace uet::fabric
