#include "apps/dump/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/wire/net_headers.h"
#include "lib/wire/ses_rules.h"

namespace uet::dump {
namespace {

using wire::BytesKind;
using wire::Problem;

/// [WIRE 4.14] What the offsets of a PDS header mean.
std::vector<DerivedValue> derived_from(const Layer& layer) {
  std::vector<DerivedValue> out;
  // PSNs wrap at 2^32; offsets have a sign.
  const auto psn = [&](std::string_view name, std::uint64_t base, std::uint64_t offset) {
    out.push_back({name, static_cast<std::uint32_t>(base + offset)});
  };
  const auto* const clear = layer.find("clear_psn_offset");
  if (clear != nullptr) psn("clear_psn", layer.number("psn"), clear->value.lo);
  const auto* const start = layer.find("psn_offset");
  if (start != nullptr) psn("start_psn", layer.number("psn"), -start->value.lo);
  if (const auto* ack = layer.find("ack_psn_offset")) {
    if (layer.number("p") != 0)
      out.push_back({"probe_opaque", static_cast<std::uint16_t>(ack->value.lo)});
    else
      psn("ack_psn", layer.number("cack_psn"), ack->value.lo);
  }
  const auto* const sack = layer.find("sack_psn_offset");
  if (sack != nullptr) psn("sack_base", layer.number("cack_psn"), sack->value.lo);
  if (const auto* mpr = layer.find("mpr")) out.push_back({"mp_range", mpr->value.lo * 128});
  return out;
}

class ReportBuilder final : public wire::DissectVisitor {
 public:
  ReportBuilder(Report& report, const keys::CaptureKeys* keys) : report_(report), keys_(keys) {}

  std::optional<Bytes> open(const wire::SealedPacket& sealed) override {
    const wire::UetContext& c = sealed.context;
    const auto source = address_of(c.source), destination = address_of(c.destination);
    if (keys_ == nullptr || !source || !destination || c.encapsulation.size() < 4)
      return std::nullopt;
    const tss::Route route{*source, *destination,
                           base::load_be<std::uint16_t>(c.encapsulation.data()),
                           base::load_be<std::uint16_t>(c.encapsulation.data() + 2)};
    tss::Carrier carrier{.is_udp = c.encapsulation.size() == wire::UdpHeader::kSize};
    if (carrier.is_udp) carrier.udp_port = base::load_be<std::uint16_t>(c.encapsulation.data() + 2);
    // The cipher text follows the header in the frame.
    const std::span whole(sealed.tss_header.data(),
                          sealed.tss_header.size() + sealed.sealed.size());
    const auto outcome = keys_->open(whole, route, carrier, clear_);
    if (outcome == keys::CaptureKeys::Outcome::kOpened) return clear_;
    if (outcome == keys::CaptureKeys::Outcome::kRefused)
      on_problem(Problem::kTssRefused, c.offset, tss::parse_header(whole)->sdi, 0);
    return std::nullopt;
  }

  void on_header(const wire::HeaderType& type, std::string_view name, std::size_t offset,
                 Bytes raw) override {
    Layer layer{.layer = type.layer,
                .header = name,
                .form = type.name,
                .offset = offset,
                .length = type.size,
                .fields = type.decode(raw.data()),
                .derived = {}};
    layer.derived = derived_from(layer);
    report_.layers.push_back(std::move(layer));
  }

  void on_bytes(BytesKind kind, std::size_t offset, Bytes bytes) override {
    switch (kind) {
      case BytesKind::kPayload:
        report_.payload_bytes += bytes.size();
        break;
      case BytesKind::kCrc:
        add_bytes_layer("crc", "UET_CRC", offset, bytes, true);
        break;
      case BytesKind::kIcv:
        add_bytes_layer("icv", "TSS_ICV", offset, bytes, true);
        break;
      case BytesKind::kCipher:
        add_bytes_layer("cipher", "TSS_CIPHER", offset, bytes, false);
        break;
      case BytesKind::kIpOptions:
      case BytesKind::kIpExtension:
        add_bytes_layer("ipext", kind == BytesKind::kIpOptions ? "OPTIONS" : "EXTENSION", offset,
                        bytes, false);
        break;
      case BytesKind::kUndecoded:
        add_bytes_layer("undecoded", "UNDECODED", offset, bytes, false);
        break;
      case BytesKind::kPadding:
        add_bytes_layer("padding", "PADDING", offset, bytes, false);
        break;
    }
  }

  void on_problem(Problem problem, std::size_t offset, std::uint64_t a, std::uint64_t b) override {
    report_.problems.push_back({problem, offset, a, b});
  }

 private:
  static std::optional<net::FabricAddress> address_of(std::span<const std::uint8_t> bytes) {
    if (bytes.size() == 4)
      return net::FabricAddress::from_v4(base::load_be<std::uint32_t>(bytes.data()));
    if (bytes.size() != 16) return std::nullopt;
    std::array<std::uint8_t, 16> v6;
    std::copy_n(bytes.begin(), v6.size(), v6.begin());
    return net::FabricAddress::from_v6(v6);
  }

  /// A layer without a declared header: its bytes as one field when they are few, else only its
  /// length.
  void add_bytes_layer(std::string_view name, std::string_view header, std::size_t offset,
                       std::span<const std::uint8_t> bytes, bool with_bytes) {
    Layer layer{.layer = name,
                .header = header,
                .form = name,
                .offset = offset,
                .length = bytes.size(),
                .fields = {},
                .derived = {}};
    if (with_bytes && bytes.size() == wire::kUetCrcBytes) {
      wire::FieldValue field{.info = {.name = "crc", .meaning = "CRC-32C", .width = 32}};
      field.value.lo = base::load_be<std::uint32_t>(bytes.data());
      layer.fields.push_back(field);
    } else if (with_bytes && bytes.size() <= wire::kTssIcvBytes) {
      wire::FieldValue field{.info = {.name = name,
                                      .meaning = "AES-GCM tag",
                                      .width = 128,
                                      .kind = wire::FieldKind::kBytes}};
      field.bytes_size = static_cast<std::uint8_t>(bytes.size());
      std::copy(bytes.begin(), bytes.end(), field.bytes.begin());
      layer.fields.push_back(field);
    }
    report_.layers.push_back(std::move(layer));
  }

  Report& report_;
  const keys::CaptureKeys* keys_;
  std::vector<std::uint8_t> clear_;  ///< of the packet that is being walked
};

}  // namespace

const wire::FieldValue* Layer::find(std::string_view name) const {
  const auto it = std::find_if(fields.begin(), fields.end(),
                               [&](const wire::FieldValue& f) { return f.info.name == name; });
  return it == fields.end() ? nullptr : &*it;
}

std::uint64_t Layer::number(std::string_view name, std::uint64_t otherwise) const {
  const wire::FieldValue* f = find(name);
  return f == nullptr ? otherwise : f->value.lo;
}

std::string ReportedProblem::to_string() const {
  const wire::ProblemDescription& d = wire::describe(problem);
  return fmt::format("{}: {}", d.name,
                     fmt::format(fmt::runtime(d.text), fmt::arg("a", a), fmt::arg("b", b)));
}

bool ReportedProblem::is_fault() const {
  const bool is_discovery =
      (problem == Problem::kNotIp && a == static_cast<std::uint64_t>(wire::EtherType::kArp)) ||
      (problem == Problem::kNotUet && a == static_cast<std::uint64_t>(wire::IpProtocol::kIcmpV6));
  return problem != Problem::kCaptureCut && !is_discovery;
}

const Layer* Report::find(std::string_view layer) const {
  const auto it =
      std::find_if(layers.begin(), layers.end(), [&](const Layer& l) { return l.layer == layer; });
  return it == layers.end() ? nullptr : &*it;
}

namespace {

/// What the SES header says, where it does; else what is left behind the headers without a CRC.
std::size_t payload_on_the_wire(const Report& report, std::size_t wire_length) {
  const Layer* ses = report.find("ses");
  if (ses == nullptr || report.is_trimmed) return report.payload_bytes;
  const Layer* const ext = report.find("ext");
  const Layer& last = ext == nullptr ? *ses : *ext;
  const std::size_t start = last.offset + last.length;
  if (start >= wire_length) return report.payload_bytes;
  const std::size_t rest = wire_length - start;
  if (const std::uint64_t said = ses->number("payload_length"); said != 0 && said <= rest)
    return said;
  if (ses->number("eom") != 0 && ses->number("request_length") != 0)
    return std::min<std::uint64_t>(ses->number("request_length"), rest);
  return wire::payload_mtu_within(rest);
}

}  // namespace

Report report_frame(wire::LinkType link, std::span<const std::uint8_t> frame,
                    std::size_t wire_length, const wire::DissectOptions& options,
                    const keys::CaptureKeys* keys) {
  Report report;
  ReportBuilder builder(report, keys);
  wire::dissect_frame(link, frame, wire_length, options, builder);
  for (const char* ip : {"ipv4", "ipv6"}) {
    if (const Layer* layer = report.find(ip)) {
      const std::uint64_t dscp = layer->number("dscp");
      report.is_trimmed = dscp == options.dscp_trimmed || dscp == options.dscp_trimmed_lasthop;
    }
  }
  if (const Layer* udp = report.find("udp")) {
    const auto port = static_cast<std::uint16_t>(udp->number("dst_port"));
    if (port != options.udp_port && wire::ReturnPort::is_one(port)) report.destination_port = port;
  }
  if (const Layer* said = report.find("return_port"))
    report.source_port = static_cast<std::uint16_t>(said->number("udp_port"));
  report.payload_wire_bytes =
      frame.size() >= wire_length ? report.payload_bytes : payload_on_the_wire(report, wire_length);
  return report;
}

}  // namespace uet::dump
