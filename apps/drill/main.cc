/// uet-drill: packet scripts against a live endpoint.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "apps/drill/options.h"
#include "apps/drill/report.h"
#include "apps/drill/script_folder.h"
#include "apps/program.h"
#include "lib/base/version.h"
#include "lib/ports/open_port.h"
#include "lib/ports/tool_words.h"

namespace uet::drill {
namespace {

int complain(const std::string& what, int status = 1) {
  fmt::print(stderr, "uet-drill: {}\n", what);
  return status;
}

int list(const std::vector<Script>& scripts) {
  for (const Script& s : scripts) fmt::print("{}: {}\n", s.name, s.title);
  return 0;
}

SuiteReport head_of(const Options& options, const net::PortFacts& facts) {
  SuiteReport report;
  report.peer = options.peer.address.to_string();
  report.port = facts.name;
  report.address = facts.address.to_string();
  report.version = base::kVersion;
  report.capabilities = {options.peer.can.begin(), options.peer.can.end()};
  report.started = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr)));
  return report;
}

/// Empty, or what went wrong.
std::string write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  if (file) file << text << std::flush;
  return file ? "" : fmt::format("{}: cannot be written: {}", path, std::strerror(errno));
}

int play(Options options, const std::vector<Script>& scripts) {
  base::Trace trace{16};
  std::string error = ports::why_unreachable(options.port.address, options.peer.address);
  if (!error.empty()) return complain(error, 2);
  const auto port = ports::open_port(
      {.request = options.port, .impair = options.impair, .pcap = {}}, trace, error);
  if (port == nullptr) return complain(ports::in_options(error));
  error = ports::why_unreachable(port->facts().address, options.peer.address);
  if (!error.empty()) return complain(error, 2);
  std::unique_ptr<Sealing> sealing;
  if (!options.peer.keys.empty()) {
    sealing = Sealing::open(options.peer.keys, options.peer.job_id, port->facts(), error);
    if (sealing == nullptr) return complain("--keys: " + error);
    options.peer.can.merge(sealing->capabilities());
    apply_wishes(options);
  }
  LiveLink link(*port, trace, options.peer.address, options.peer.has_crc, sealing.get());
  const std::uint64_t seed =
      options.seed != 0 ? options.seed : static_cast<std::uint64_t>(clock_now().ns());
  LiveTestbed testbed(link, options.peer, options.timing, seed);
  SuiteReport report = head_of(options, port->facts());
  run_suite(scripts, {.out = options.out, .timing = options.timing}, link, testbed, report,
            [&](const Result& result) {
              const bool is_over =
                  result.outcome.verdict == Verdict::kSkip && !report.trouble.empty();
              if (!options.json && !is_over) fmt::print("{}", to_text(result));
              std::fflush(stdout);
            });
  fmt::print("{}", options.json ? to_json(report) : summary(report));
  if (!options.out.empty()) {
    error = write_file(options.out + "/report.html", to_html(report));
    if (error.empty()) error = write_file(options.out + "/report.json", to_json(report));
    if (!error.empty()) return complain(error);
    if (!options.json) fmt::print("report: {}/report.html\n", options.out);
  }
  const bool was_played = report.count(Verdict::kSkip) < report.results.size();
  if (!was_played && report.trouble.empty()) return complain("no script was played");
  return report.has_passed() ? 0 : 1;
}

int run(int argc, char** argv) {
  Options options;
  if (const auto status = parse_options(argc, argv, options)) return *status;
  std::string error;
  const auto scripts = find_scripts(options.scripts, error);
  if (!error.empty()) return complain(error, 2);
  if (options.list) return list(scripts);
  if (!options.out.empty()) {
    std::error_code failed;
    std::filesystem::create_directories(options.out, failed);
    if (failed) return complain(options.out + ": " + failed.message());
  }
  return play(options, scripts);
}

}  // namespace
}  // namespace uet::drill

int main(int argc, char** argv) {
  return uet::apps::run_program("uet-drill", [&] { return uet::drill::run(argc, argv); });
}
