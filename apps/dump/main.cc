/// uet-dump: decodes captures of Ultra Ethernet Transport.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "apps/dump/filter.h"
#include "apps/dump/ladder.h"
#include "apps/dump/line.h"
#include "apps/dump/names.h"
#include "apps/dump/ring.h"
#include "apps/dump/stats.h"
#include "apps/dump/viewer/page.h"
#include "apps/page/page.h"
#include "apps/program.h"
#include "lib/base/version.h"
#include "lib/wire/packet_runs.h"

namespace uet::dump {
namespace {

enum ExitCode { kDone = 0, kFailed = 1, kUsage = 2 };
constexpr int kFilesMax = 16;  ///< of the viewer

struct Settings {
  std::vector<std::string> files = {"-"};
  bool json = false, verbose = false, stats = false, ladder = false;
  LineStyle style;
  std::uint64_t count = 0;
  Filter filter;
  std::string crc = "detect";
  unsigned udp_port = wire::kUdpPort, ip_protocol = wire::kNativeProtocol;
  unsigned dscp_trimmed = wire::DissectOptions{}.dscp_trimmed;
  unsigned dscp_trimmed_lasthop = wire::DissectOptions{}.dscp_trimmed_lasthop;
  std::uint32_t payload_mtu = 0;
  std::string key_log;
  std::string html;  ///< where the viewer goes

  std::vector<std::string> inputs() const {
    std::vector<std::string> all = files;
    if (!key_log.empty()) all.push_back(key_log);
    return all;
  }

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

/// Opens the capture and says on stderr what it misses.
bool open(CaptureFiles& files, const std::string& path) {
  if (!files.open(path)) {
    fail(path, fmt::format("{}. Give the path of a pcap or pcapng file, or -",
                           std::generic_category().message(errno)));
    return false;
  }
  if (files.packets_missing() > 0)
    fmt::print(
        stderr,
        "uet-dump: {}: the beginning is missing: {} packets were overwritten, the ring was full; "
        "FI_UET_PCAP=PATH,size=..,files=..,snap=.. makes it larger\n",
        path, files.packets_missing());
  return true;
}

/// Reads the file of --keys, if there is one. False, and says why, when it cannot be read.
bool read_keys(const Settings& settings, std::optional<keys::CaptureKeys>& keys) {
  if (settings.key_log.empty()) return true;
  auto logged = keys::read_key_log(settings.key_log);
  if (!logged) {
    fmt::print(stderr, "uet-dump: {}\n", logged.error());
    return false;
  }
  keys.emplace(std::move(*logged));
  return true;
}

/// Calls visit(packet, matches) for each packet until it returns false. Returns the exit code. Says on stderr how many packets are
/// missing between those, and adds their number to `missing`, which begins at 0.
template <typename Visit>
int for_each_packet(const Settings& settings, const std::string& path, CaptureFiles& files,
                    std::uint64_t& missing, Visit&& visit) {
  const wire::DissectOptions options = settings.dissect_options();
  wire::PacketReader reader(files, options);
  DecodedPacket packet;
  std::optional<keys::CaptureKeys> keys;
  if (!read_keys(settings, keys)) return kFailed;
  while (reader.next(packet.captured)) {
    ++packet.number;
    missing += packet.captured.lost_before;
    packet.report = report_frame(packet.captured.link, packet.captured.data,
                                 packet.captured.wire_length, options, keys ? &*keys : nullptr);
    if (!visit(packet, settings.filter.matches(packet.report))) break;
  }
  if (missing > 0)
    fmt::print(stderr,
               "uet-dump: {}: {} packets between these are missing: the end that captured could "
               "not write them\n",
               path, missing);
  if (reader.has_missed())
    fmt::print(stderr,
               "uet-dump: {}: some frames hold runs of packets that cannot be told apart: capture "
               "whole packets, with FI_UET_PORT=udp,merge=0, or with FI_UET_PCAP\n",
               path);
  if (reader.error().empty()) return kDone;
  std::fflush(stdout);
  return fail(path, fmt::format("{} (after packet {})", reader.error(), packet.number));
}

int dump(const Settings& settings) {
  CaptureFiles files;
  const std::string& path = settings.files.front();
  if (!open(files, path)) return kFailed;
  CaptureStatistics statistics;
  statistics.set_packets_missing(files.packets_missing());
  LinePrinter lines(settings.style);
  std::uint64_t shown = 0, missing = 0;
  const int status = for_each_packet(
      settings, path, files, missing, [&](const DecodedPacket& packet, bool matches) {
        if (!matches) {
          lines.skip(packet);
          return true;
        }
        if (settings.stats)
          statistics.add(packet);
        else if (settings.json)
          fmt::print("{}\n", to_json(packet).dump(-1, ' ', false,
                                                  nlohmann::json::error_handler_t::replace));
        else
          fmt::print("{}\n", settings.verbose ? to_detailed_text(packet) : lines.line(packet));
        return ++shown != settings.count;
      });
  if (settings.filter.psn && shown == 0 && status == kDone)
    fmt::print(stderr,
               "uet-dump: {}: no packet with that PSN; --psn takes those on the wire, which "
               "--absolute-psns shows\n",
               path);
  statistics.set_packets_missing_between(missing);
  if (settings.stats)
    fmt::print("{}", settings.json ? statistics.to_json().dump(2) + "\n" : statistics.to_text());
  return status;
}

int show_ladder(const Settings& settings) {
  Ladder ladder;
  LinePrinter lines(settings.style);
  for (const Ladder::Side side : {Ladder::kLeft, Ladder::kRight}) {
    CaptureFiles files;
    const std::string& path = settings.files[side];
    if (!open(files, path)) return kFailed;
    bool is_full = false;
    std::uint64_t missing = 0;
    const int status = for_each_packet(settings, path, files, missing,
                                       [&](const DecodedPacket& packet, bool matches) {
                                         const std::string summary = lines.summary(packet);
                                         is_full = matches && !ladder.add(side, packet, summary);
                                         return !is_full;
                                       });
    if (is_full)
      fmt::print(stderr, "uet-dump: {}: only the first {} packets are shown\n", path,
                 Ladder::kPacketsMax);
    if (status != kDone) return status;
  }
  fmt::print("{}", ladder.to_text(settings.style.colour));
  return kDone;
}

/// Event logs and captures into one page. A capture that cannot be read to its end is in it as well, and then kFailed is returned.
int write_html(const Settings& settings) {
  if (const std::string why = why_no_place(settings.html, settings.inputs()); !why.empty()) {
    fail("--html " + settings.html, why);
    return kUsage;
  }
  if (!page::can_draw()) return fail("--html", page::drawing_missing("uet-dump"));
  if (std::optional<keys::CaptureKeys> keys; !read_keys(settings, keys)) return kFailed;
  Story story;
  int worst = kDone;
  for (const std::string& path : settings.files) {
    if (is_event_log(path)) {
      if (!read_event_log(path, story)) return fail(path, std::generic_category().message(errno));
      continue;
    }
    CaptureFiles files;
    if (!open(files, path)) return kFailed;
    story.begin_file(std::filesystem::path(path).filename().string(), "capture");
    if (files.packets_missing() > 0)
      story.add_note(fmt::format("The beginning is missing: {} packets were overwritten.",
                                 files.packets_missing()));
    // A capture of a process that was killed may end in the middle of a packet: what is there is shown.
    std::uint64_t missing = 0;
    const int status = for_each_packet(settings, path, files, missing,
                                       [&](const DecodedPacket& packet, bool matches) {
                                         if (matches) story.add_packet(packet);
                                         return true;
                                       });
    if (missing > 0)
      story.add_note(
          fmt::format("{} packets between these are missing: the end that captured "
                      "could not write them.",
                      missing));
    if (status != kDone) story.add_note("The file cannot be read to its end.");
    worst = std::max(worst, status);
  }
  const std::string page = to_html(story, fmt::format("{}", fmt::join(settings.files, ", ")));
  return write_page(settings.html, page)
             ? worst
             : fail(settings.html, std::generic_category().message(errno));
}

/// A name that is known, or a usage error with the nearest one.
CLI::Option* add_name(CLI::App& app, const std::string& option, std::string& to, const char* what,
                      std::span<const std::string_view> known, const std::string& help) {
  return app
      .add_option_function<std::string>(
          option,
          [&to, option, what, known](const std::string& name) {
            if (const std::string why = why_unknown(what, name, known); !why.empty())
              throw CLI::ValidationError(option, why);
            to = name;
          },
          help)
      ->type_name("NAME");
}

void add_filters(CLI::App& app, Filter& filter) {
  add_name(app, "--layer", filter.layer, "layer", known_layers(),
           "only packets with this layer: eth, vlan, ipv4, ipv6, udp, entropy, tss, pds, ses, ext, "
           "crc, icv, cipher");
  add_name(app, "--type", filter.type, "type", known_types(),
           "only this PDS type, control type, NACK code, SES form or opcode, by name");
  app.add_option("--pdc", filter.pdc, "only packets with this PDC identifier at either end");
  app.add_option("--job", filter.job, "only packets of this job_id");
  app.add_option("--message", filter.message, "only packets of this message_id");
  app.add_option_function<std::string>(
         "--psn",
         [&filter](const std::string& text) {
           filter.psn = parse_psns(text);
           if (!filter.psn)
             throw CLI::ValidationError("--psn", "'" + text + "' is no PSN and no range as 7..9");
         },
         "only packets with this PSN (N or A..B, as on the wire), and ACKs and NACKs about it")
      ->type_name("PSNS");
  app.add_flag("--retransmissions", filter.only_retransmissions,
               "only packets that were sent before");
  app.add_flag("--problems", filter.only_problems, "only packets that something is wrong with");
}

void add_looks(CLI::App& app, Settings& s) {
  const std::map<std::string, TimeForm> forms = {
      {"relative", TimeForm::kRelative}, {"delta", TimeForm::kDelta}, {"day", TimeForm::kDay}};
  app.add_option("--time", s.style.time,
                 "since the first packet, since the line before, or time of day")
      ->transform(CLI::CheckedTransformer(forms))
      ->type_name("relative|delta|day");
  app.add_flag("--absolute-psns", s.style.absolute_psns,
               "PSNs as on the wire, not from the first of the PDC");
  s.style.colour = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  app.add_option_function<std::string>(
         "--color",
         [&s](const std::string& when) {
           if (when != "auto") s.style.colour = when == "always";
         },
         "auto: on a terminal, unless NO_COLOR is set")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

/// The forms differ in how many files they take, which CLI11 cannot know.
class Help : public CLI::Formatter {
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: uet-dump [OPTIONS] [file]\n"
           "       uet-dump --ladder [OPTIONS] file file\n"
           "       uet-dump --html OUT [OPTIONS] file...\n";
  }
};

int run(int argc, char** argv) {
  Settings s;
  CLI::App app{"Decode captures of Ultra Ethernet Transport (pcap, pcapng)."};
  app.name("uet-dump");
  app.formatter(std::make_shared<Help>());
  app.set_version_flag("--version", std::string(base::kVersion));
  auto* const files =
      app.add_option("file", s.files,
                     "capture file, or - for standard input; the older files of a ring are found")
          ->expected(1, kFilesMax);
  auto* const html =
      app.add_option("--html", s.html,
                     "write a page that shows the event logs (FI_UET_TRACE, FI_UET_PATH_LOG) and "
                     "captures of one or both ends")
          ->type_name("OUT");
  app.add_flag("--json", s.json, "one JSON object per packet; with --stats, one object");
  app.add_flag("-v,--verbose", s.verbose, "every field of every layer");
  app.add_flag("--stats", s.stats, "sums over the capture instead of packets");
  app.add_option("-c,--count", s.count, "stop after this many packets that match");
  auto* const ladder = app.add_flag(
      "--ladder", s.ladder, "two captures, one of each end: who sent what, and when it came");
  add_filters(app, s.filter);
  add_looks(app, s);
  // Of the output packet by packet, which these replace.
  for (const char* const option : {"--json", "--verbose", "--stats", "--count", "--time"})
    app.get_option(option)->excludes(html)->excludes(ladder);
  html->excludes(ladder);
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
  s.style.absolute_psns |= s.filter.psn.has_value();  // shown as they were asked for
  if (html->count() > 0 && files->count() == 0) {
    fmt::print(stderr, "uet-dump: --html {}: no file to read; write --html OUT FILE...\n", s.html);
    return kUsage;
  }
  if (html->count() > 0) return write_html(s);
  const std::size_t wanted = s.ladder ? 2 : 1;
  if (s.files.size() != wanted) {
    fmt::print(stderr, "uet-dump: {} capture file{} wanted, not {}\n", wanted,
               wanted == 1 ? "" : "s", s.files.size());
    return kUsage;
  }
  return s.ladder ? show_ladder(s) : dump(s);
}

}  // namespace
}  // namespace uet::dump

int main(int argc, char** argv) {
  return uet::apps::run_program("uet-dump", [&] { return uet::dump::run(argc, argv); });
}
