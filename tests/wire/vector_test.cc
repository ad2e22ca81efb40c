/// The 30 golden vectors, both ways.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "apps/dump/report.h"
#include "lib/wire/header_type.h"
#include "tests/wire/vectors.h"

namespace uet::wire::test {
namespace {

const HeaderType& type_named(const std::string& name) {
  for (const HeaderType& type : header_types())
    if (type.name == name) return type;
  throw std::runtime_error("no header is called " + name);
}

/// The values that `layer` lists; what a list leaves out is 0.
std::vector<FieldValue> values_of(const VectorLayer& layer) {
  std::vector<FieldValue> values;
  for (const FieldInfo& info : type_named(layer.header).fields) values.push_back({.info = info});
  for (const auto& [name, text] : layer.fields) {
    // The second word of a PROBE's answer goes by another name.
    const std::string field =
        name == "probe_opaque" && layer.header == "ack" ? "ack_psn_offset" : name;
    const auto at = std::find_if(values.begin(), values.end(), [&](const FieldValue& v) {
      return !v.info.is_reserved && v.info.name == field;
    });
    if (at == values.end()) {
      ADD_FAILURE() << layer.header << " has no field " << field;
    } else if (at->info.kind == FieldKind::kBytes) {
      const auto bytes = from_hex(text);
      EXPECT_EQ(8 * bytes.size(), at->info.width);
      std::copy(bytes.begin(), bytes.end(), at->bytes.begin());
    } else {
      at->value = number_from(text);
    }
  }
  return values;
}

class GoldenVector : public testing::TestWithParam<std::size_t> {
 protected:
  const VectorPacket& packet() const { return golden_packets()[GetParam()]; }
};

// Covers: WIRE-V1, WIRE-V2, WIRE-V3, WIRE-V4, WIRE-V5, WIRE-V6, WIRE-V7, WIRE-V8
// Covers: WIRE-V9, WIRE-V10, WIRE-V11, WIRE-V12, WIRE-V13, WIRE-V14, WIRE-V15, WIRE-V16
// Covers: WIRE-V17, WIRE-V18, WIRE-V19, WIRE-V20, WIRE-V21, WIRE-V22, WIRE-V23, WIRE-V24
// Covers: WIRE-V25, WIRE-V26, WIRE-V27, WIRE-V28, WIRE-V29, WIRE-V30
TEST_P(GoldenVector, fields_encode_to_the_bytes) {
  for (const VectorLayer& layer : packet().layers) {
    if (layer.header.empty()) continue;
    const HeaderType& type = type_named(layer.header);
    std::vector<std::uint8_t> out(type.size, 0xff);
    EXPECT_TRUE(type.encode(values_of(layer), out.data()));
    EXPECT_EQ(to_hex(out), to_hex(layer.bytes)) << packet().name << " " << layer.header;
  }
}

TEST_P(GoldenVector, bytes_decode_to_the_fields) {
  for (const VectorLayer& layer : packet().layers) {
    if (layer.header.empty()) continue;
    const HeaderType& type = type_named(layer.header);
    ASSERT_EQ(layer.bytes.size(), type.size);
    for (const FieldValue& v : type.decode(layer.bytes.data())) {
      if (v.info.is_reserved) continue;
      const std::string name(v.info.name);
      if (name == "ack_psn_offset" && layer.fields.contains("probe_opaque"))
        continue;  // checked by the whole-packet test
      const auto listed = layer.fields.find(name);
      if (v.info.kind == FieldKind::kBytes) {
        ASSERT_NE(listed, layer.fields.end()) << name;
        EXPECT_EQ(to_hex({v.as_bytes().begin(), v.as_bytes().end()}), listed->second);
      } else {
        const U128 want = listed == layer.fields.end() ? U128{} : number_from(listed->second);
        EXPECT_EQ(v.value, want) << packet().name << " " << layer.header << "." << name;
      }
    }
  }
}

TEST_P(GoldenVector, whole_packet_decodes_layer_by_layer) {
  const auto link = packet().is_frame ? LinkType::kEthernet : LinkType::kUet;
  const dump::Report report =
      dump::report_frame(link, packet().bytes, packet().bytes.size(), DissectOptions{});
  std::size_t i = 0, payload = 0;
  for (const VectorLayer& want : packet().layers) {
    if (want.layer == "data") {
      payload = want.bytes.size();
      continue;
    }
    if (packet().is_sealed && (want.layer == "pds" || want.layer == "ses")) continue;
    ASSERT_LT(i, report.layers.size());
    const dump::Layer& got = report.layers[i++];
    EXPECT_EQ(got.layer, want.layer);
    EXPECT_EQ(got.length, want.bytes.size());
    for (const auto& [name, text] : want.fields) {
      if (const FieldValue* field = got.find(name)) {
        if (field->info.kind == FieldKind::kBytes) {
          EXPECT_EQ(to_hex({field->as_bytes().begin(), field->as_bytes().end()}), text);
        } else {
          EXPECT_EQ(field->value, number_from(text)) << name;
        }
      } else {
        ASSERT_EQ(name, "probe_opaque");
        EXPECT_EQ(got.derived.at(0).value, number_from(text).lo);
      }
    }
  }
  EXPECT_EQ(i, report.layers.size());
  EXPECT_EQ(report.payload_bytes, packet().is_sealed ? 0 : payload);
  // Three vectors leave the payload out that their headers announce.
  const bool lacks_payload =
      packet().name == "V22" || packet().name == "V27" || packet().name == "V28";
  EXPECT_EQ(report.problems.size(), lacks_payload ? 1U : 0U);
}

std::string name_of_case(const testing::TestParamInfo<std::size_t>& tested) {
  return golden_packets()[tested.param].name + "_" + std::to_string(tested.param);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenVector, testing::Range<std::size_t>(0, 32), name_of_case);

TEST(GoldenVectors, there_are_thirty) {
  EXPECT_EQ(golden_packets().size(), 32U);
}

/// What a report says, as one text: for "did anything change?".
std::string summary(const dump::Report& report) {
  std::string out;
  for (const dump::Layer& layer : report.layers) {
    out += std::string(layer.header) + ":";
    for (const FieldValue& f : layer.fields) {
      out += std::to_string(f.value.hi) + "," + std::to_string(f.value.lo) + ",";
      out += to_hex({f.as_bytes().begin(), f.as_bytes().end()});
    }
  }
  return out;
}

TEST_P(GoldenVector, every_truncation_is_named) {
  const auto link = packet().is_frame ? LinkType::kEthernet : LinkType::kUet;
  const auto& bytes = packet().bytes;
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const std::vector<std::uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<long>(n));
    const dump::Report report = dump::report_frame(link, cut, n, DissectOptions{});
    EXPECT_FALSE(report.problems.empty())
        << packet().name << " cut to " << n << " of " << bytes.size();
    const dump::Report captured = dump::report_frame(link, cut, bytes.size(), DissectOptions{});
    EXPECT_FALSE(captured.problems.empty())
        << packet().name << " captured up to " << n << " of " << bytes.size();
  }
}

TEST_P(GoldenVector, every_bit_flip_is_named_or_another_valid_packet) {
  const auto link = packet().is_frame ? LinkType::kEthernet : LinkType::kUet;
  auto bytes = packet().bytes;
  const dump::Report intact = dump::report_frame(link, bytes, bytes.size(), DissectOptions{});
  const std::size_t headers_end =
      intact.layers.back().layer == "crc" || intact.payload_bytes > 0
          ? bytes.size() - intact.payload_bytes - (intact.layers.back().layer == "crc" ? 4 : 0)
          : bytes.size();
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const auto mask = static_cast<std::uint8_t>(0x80U >> (bit % 8));
    bytes[bit / 8] ^= mask;
    const dump::Report report = dump::report_frame(link, bytes, bytes.size(), DissectOptions{});
    bytes[bit / 8] ^= mask;
    ASSERT_FALSE(report.layers.empty() && report.problems.empty());
    // Payload and cipher text carry no meaning here; everything else must show.
    const bool is_opaque = (bit / 8 >= headers_end && intact.find("crc") == nullptr) ||
                           (packet().is_sealed && report.find("cipher") != nullptr);
    if (report.problems.empty() && !is_opaque) {
      EXPECT_NE(summary(report), summary(intact)) << packet().name << " bit " << bit;
    }
  }
}

}  // namespace
}  // namespace uet::wire::test
