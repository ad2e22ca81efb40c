/// uet-dump: decodes captures of Ultra Ethernet Transport.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/dump/filter.h"
#include "apps/dump/render.h"
#include "apps/dump/stats.h"

namespace uet::dump {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2 };

class FileSource : public wire::ByteSource {
 public:
  explicit FileSource(std::FILE* file) : file_(file) {}
  std::size_t read(std::span<std::uint8_t> out) override {
    return std::fread(out.data(), 1, out.size(), file_);
  }

 private:
  std::FILE* file_;
};

struct CloseFile {
  void operator()(std::FILE* f) const {
    if (f != stdin) std::fclose(f);
  }
};

struct Settings {
  std::string file = "-";
  bool json = false, verbose = false, stats = false;
  std::uint64_t count = 0;
  Filter filter;
  std::string crc = "detect";
  unsigned udp_port = wire::kUdpPort, ip_protocol = wire::kNativeProtocol;
  unsigned dscp_trimmed = wire::DissectOptions{}.dscp_trimmed;
  unsigned dscp_trimmed_lasthop = wire::DissectOptions{}.dscp_trimmed_lasthop;
  std::uint32_t payload_mtu = 0;
  std::string key_log;

  wire::DissectOptions dissect_options() const {
    return {.crc = crc == "always"  ? wire::CrcPolicy::kAlways
                   : crc == "never" ? wire::CrcPolicy::kNever
                                    : wire::CrcPolicy::kDetect,
            .udp_port = static_cast<std::uint16_t>(udp_port),
            .native_protocol = static_cast<std::uint8_t>(ip_protocol),
            .dscp_trimmed = static_cast<std::uint8_t>(dscp_trimmed),
            .dscp_trimmed_lasthop = static_cast<std::uint8_t>(dscp_trimmed_lasthop),
            .payload_mtu = payload_mtu};
  }
};

int fail(const std::string& file, const std::string& why) {
  fmt::print(stderr, "uet-dump: {}: {}\n", file, why);
  return kFailed;
}

int dump(const Settings& settings) {
  const std::unique_ptr<std::FILE, CloseFile> file(
      settings.file == "-" ? stdin : std::fopen(settings.file.c_str(), "rb"));
  if (file == nullptr)
    return fail(settings.file, fmt::format("{}. Give the path of a pcap or pcapng file, or -",
                                           std::generic_category().message(errno)));
  FileSource source(file.get());
  wire::CaptureReader reader(source);
  Statistics statistics;
  DecodedPacket packet;
  std::uint64_t shown = 0;
  const wire::DissectOptions options = settings.dissect_options();
  std::optional<keys::CaptureKeys> keys;
  if (!settings.key_log.empty()) {
    auto logged = keys::read_key_log(settings.key_log);
    if (!logged) {
      fmt::print(stderr, "uet-dump: {}\n", logged.error());
      return kFailed;
    }
    keys.emplace(std::move(*logged));
  }
  while (reader.next(packet.captured)) {
    ++packet.number;
    packet.report = report_frame(packet.captured.link, packet.captured.data,
                                 packet.captured.wire_length, options, keys ? &*keys : nullptr);
    if (!settings.filter.matches(packet.report)) continue;
    if (settings.stats)
      statistics.add(packet);
    else if (settings.json)
      fmt::print("{}\n",
                 to_json(packet).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    else
      fmt::print("{}\n", settings.verbose ? to_detailed_text(packet) : to_line(packet));
    if (++shown == settings.count) break;
  }
  if (settings.stats)
    fmt::print("{}", settings.json ? statistics.to_json().dump(2) + "\n" : statistics.to_text());
  if (!reader.error().empty()) {
    std::fflush(stdout);
    return fail(settings.file, fmt::format("{} (after packet {})", reader.error(), packet.number));
  }
  return std::fflush(stdout) == 0 ? kDone : kFailed;
}

int run(int argc, char** argv) {
  Settings s;
  CLI::App app{"Decode captures of Ultra Ethernet Transport (pcap, pcapng)."};
  app.name("uet-dump");
  app.add_option("file", s.file, "capture file, or - for standard input")->capture_default_str();
  app.add_flag("--json", s.json, "one JSON object per packet; with --stats, one object");
  app.add_flag("-v,--verbose", s.verbose, "every field of every layer");
  app.add_flag("--stats", s.stats, "sums over the capture instead of packets");
  app.add_option("-c,--count", s.count, "stop after this many packets that match");
  app.add_option("--layer", s.filter.layer,
                 "only packets with this layer: eth, vlan, ipv4, ipv6, udp, entropy, tss, pds, "
                 "ses, ext, crc, icv, cipher");
  app.add_option("--type", s.filter.type,
                 "only this PDS type, control type, NACK code, SES form or opcode, by name");
  app.add_option("--pdc", s.filter.pdc, "only packets with this PDC identifier at either end");
  app.add_option("--job", s.filter.job, "only packets of this job_id");
  app.add_option("--message", s.filter.message, "only packets of this message_id");
  app.add_flag("--problems", s.filter.only_problems, "only packets that something is wrong with");
  app.add_option("--crc", s.crc, "is a UET CRC at the end of packets")
      ->check(CLI::IsMember({"detect", "always", "never"}))
      ->capture_default_str();
  app.add_option("--udp-port", s.udp_port, "UDP destination port of UET")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app.add_option("--ip-protocol", s.ip_protocol, "IP protocol of native UET")
      ->check(CLI::Range(1, 255))
      ->capture_default_str();
  app.add_option("--dscp-trimmed", s.dscp_trimmed, "DSCP of trimmed packets")
      ->check(CLI::Range(0, 63))
      ->capture_default_str();
  app.add_option("--dscp-trimmed-lasthop", s.dscp_trimmed_lasthop,
                 "DSCP of packets trimmed at the last hop")
      ->check(CLI::Range(0, 63))
      ->capture_default_str();
  app.add_option("--keys", s.key_log, "key log (FI_UET_KEY_LOG) to open sealed packets with");
  app.add_option("--payload-mtu", s.payload_mtu,
                 "complain about full packets of any other payload size");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kDone : kUsage;
  }
  return dump(s);
}

}  // namespace
}  // namespace uet::dump

int main(int argc, char** argv) {
  return uet::dump::run(argc, argv);
}
