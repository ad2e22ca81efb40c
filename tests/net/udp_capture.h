/// Packets of the UDP port out of the captures that FI_UET_PCAP writes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

#include "lib/wire/capture_reader.h"

namespace uet::net::testing {

struct CapturedDatagram {
  std::uint32_t source = 0;  ///< IPv4 address
  bool is_outbound = false;
  std::vector<std::uint8_t> payload;  ///< what stands behind the UDP header
};

class FileSource final : public wire::ByteSource {
 public:
  explicit FileSource(const std::filesystem::path& path) : file_(path, std::ios::binary) {}
  std::size_t read(std::span<std::uint8_t> out) override {
    file_.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    return static_cast<std::size_t>(file_.gcount());
  }

 private:
  std::ifstream file_;
};

/// All of them, in the order of the file.
inline std::vector<CapturedDatagram> datagrams_of(const std::filesystem::path& path) {
  constexpr std::size_t kEthernet = 14, kIpv4 = 20, kUdp = 8, kSourceAt = kEthernet + 12;
  FileSource source(path);
  wire::CaptureReader reader(source);
  std::vector<CapturedDatagram> all;
  for (wire::CapturedPacket packet; reader.next(packet);) {
    const auto& d = packet.data;
    if (packet.link != wire::LinkType::kEthernet || d.size() <= kEthernet + kIpv4 + kUdp) continue;
    const std::uint32_t from = std::uint32_t{d[kSourceAt]} << 24 | d[kSourceAt + 1] << 16 |
                               d[kSourceAt + 2] << 8 | d[kSourceAt + 3];
    all.push_back({.source = from,
                   .is_outbound = packet.is_outbound,
                   .payload = {d.begin() + kEthernet + kIpv4 + kUdp, d.end()}});
  }
  EXPECT_EQ(reader.error(), "");
  return all;
}

}  // namespace uet::net::testing
