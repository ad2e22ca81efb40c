#include "tests/wire/vectors.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace uet::wire::test {
namespace {

std::vector<VectorPacket> load() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(UET_VECTORS_DIRECTORY))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<VectorPacket> out;
  for (const auto& file : files) {
    const auto json = nlohmann::json::parse(std::ifstream(file));
    for (const auto& p : json.at("packets")) {
      VectorPacket packet{.name = json.at("name"),
                          .title = json.at("title"),
                          .is_frame = p.at("frame"),
                          .is_sealed = p.at("sealed"),
                          .bytes = from_hex(p.at("hex")),
                          .layers = {}};
      for (const auto& l : p.at("layers"))
        packet.layers.push_back(
            {.layer = l.at("layer"),
             .header = l.value("header", ""),
             .bytes = from_hex(l.at("hex")),
             .fields = l.value("fields", std::map<std::string, std::string>())});
      out.push_back(std::move(packet));
    }
  }
  return out;
}

}  // namespace

const std::vector<VectorPacket>& golden_packets() {
  static const std::vector<VectorPacket> packets = load();
  return packets;
}

std::vector<std::uint8_t> from_hex(const std::string& hex) {
  std::vector<std::uint8_t> out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return out;
}

std::string to_hex(const std::vector<std::uint8_t>& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::uint8_t b : bytes) {
    out += kDigits[b >> 4];
    out += kDigits[b & 15];
  }
  return out;
}

U128 number_from(const std::string& text) {
  if (text.starts_with('-')) return {.hi = 0, .lo = static_cast<std::uint64_t>(std::stoll(text))};
  if (!text.starts_with("0x")) return {.hi = 0, .lo = std::stoull(text)};
  const std::string digits = text.substr(2);
  const std::size_t low = digits.size() > 16 ? digits.size() - 16 : 0;
  return {.hi = low == 0 ? 0 : std::stoull(digits.substr(0, low), nullptr, 16),
          .lo = std::stoull(digits.substr(low), nullptr, 16)};
}

}  // namespace uet::wire::test
