/// The golden vectors of tests/vectors, loaded.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/wire/u128.h"

namespace uet::wire::test {

struct VectorLayer {
  std::string layer;   ///< as in Layer::layer of a report; "data" for payload
  std::string header;  ///< kName of the declared header; empty for bytes
  std::vector<std::uint8_t> bytes;
  std::map<std::string, std::string> fields;  ///< fields not listed are 0
};

struct VectorPacket {
  std::string name;  ///< "V17"
  std::string title;
  bool is_frame = false;   ///< begins with Ethernet; otherwise with the first UET byte
  bool is_sealed = false;  ///< PDS, SES and payload are encrypted in `bytes`
  std::vector<std::uint8_t> bytes;
  std::vector<VectorLayer> layers;
};

/// All of them, in order. V17 and V18 are two packets each.
const std::vector<VectorPacket>& golden_packets();

std::vector<std::uint8_t> from_hex(const std::string& hex);
std::string to_hex(const std::vector<std::uint8_t>& bytes);
/// "-3", "17", "0x0A1B": up to 128 bits; negative values sign-extended in lo.
U128 number_from(const std::string& text);

}  // namespace uet::wire::test
