/// uet-perf: benchmarks between two processes.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <optional>

#include "apps/perf/pin.h"
#include "apps/perf/raw_bench.h"
#ifdef UET_PERF_FABRIC
#include "apps/perf/fabric_bench.h"
#endif

namespace {

using uet::net::FabricAddress;

CLI::Option* add_address(CLI::App& app, const std::string& name, FabricAddress& to,
                         const std::string& help) {
  return app
      .add_option_function<std::string>(
          name,
          [name, &to](const std::string& text) {
            const auto address = FabricAddress::parse(text);
            if (!address)
              throw CLI::ValidationError(name, "'" + text + "' is not an IPv4 or IPv6 address");
            to = *address;
          },
          help)
      ->type_name("ADDRESS");
}

CLI::App* add_raw(CLI::App& app, uet::perf::RawOptions& o) {
  CLI::App* raw = app.add_subcommand("raw", "a port without UET: the baseline");
  o.request.spec = "udp";
  raw->add_option("--port", o.request.spec,
                  "udp[:<interface or address>] or dpdk:<device>[,key=value...]; udp alone is the "
                  "one that has --address")
      ->capture_default_str();
  add_address(*raw, "--address", o.request.address, "our address");
  add_address(*raw, "--peer", o.peer, "address of the other side")->required();
  raw->add_flag("--server", o.is_server, "answer the other side, which measures");
  raw->add_flag("--copy", o.copy, "copy the payload once on each side, and nothing else");
  raw->add_option("--size", o.size, "bytes of a packet behind the UDP header")
      ->check(CLI::Range(64, 9000))
      ->capture_default_str();
  raw->add_option("--seconds", o.seconds,
                  "length of each throughput measurement; the median of five parts counts")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  raw->add_option("--pings", o.pings, "round trips to measure")
      ->check(CLI::Range(10, 100'000'000))
      ->capture_default_str();
  raw->add_option("--timeout", o.timeout_s, "seconds to wait for the other side")
      ->check(CLI::Range(1u, 86400u))
      ->capture_default_str();
  raw->add_option("--prefix", o.request.prefix_length,
                  "prefix length of our address (24, for IPv6 64)");
  add_address(*raw, "--gateway", o.request.gateway, "next hop outside of the prefix");
  raw->add_option("--vlan", o.request.vlan, "802.1Q VLAN");
  raw->add_option("--mtu", o.request.mtu, "IP MTU");
  raw->add_flag("--native-ip", o.request.native_ip, "IP with entropy header instead of UDP");
  raw->add_flag("--json", o.json, "print one JSON object");
  return raw;
}

#ifdef UET_PERF_FABRIC
using uet::perf::FabricOptions;

void add_sizes(CLI::App& app, std::vector<std::uint64_t>& sizes) {
  app.add_option_function<std::string>(
         "--size,--sizes",
         [&sizes](const std::string& text) {
           const auto parsed = uet::perf::parse_sizes(text);
           if (!parsed)
             throw CLI::ValidationError(
                 "--sizes", "'" + text + "' is no list of sizes; write 4096, 64,4k,1M or 8..4M");
           sizes = *parsed;
         },
         "bytes of a message: 4096, 64,4k,1M or 8..4M (1M; 8 for latency and rate)")
      ->type_name("SIZES");
}

/// What the two sides must have alike: the client decides, and a server that is told otherwise refuses.
void add_what(CLI::App& app, FabricOptions& o) {
  app.add_option("tests", o.tests,
                 "write (default), read, send, tagged-latency, tagged-rate: one or several")
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(uet::perf::kTests), std::end(uet::perf::kTests))))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option_function<std::string>(
         "--provider", [&o](const std::string& text) { o.providers = uet::perf::split_list(text); },
         "libfabric providers, measured in turn: uet or uet,tcp (uet)")
      ->type_name("NAMES");
  add_sizes(app, o.sizes);
  app.add_option("--count", o.count, "messages of a run (by size: 64 MiB in all, 16 to 10000)")
      ->check(CLI::Range(std::uint64_t{1}, uet::perf::kCountMax));
  app.add_option("--window", o.window, "operations in flight (16)")
      ->check(CLI::Range(std::uint64_t{1}, uet::perf::kWindowMax));
  app.add_flag("--ordered", o.ordered, "ask for send-after-send order");
}

void add_how(CLI::App& app, FabricOptions& o) {
  app.add_option("--runs", o.runs,
                 "client: runs of each figure; their minimum, median and maximum are printed")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--warm-up", o.warm_up,
                 "client: messages before the first run (a tenth, 1000 at most)")
      ->check(CLI::Range(std::uint64_t{0}, uet::perf::kCountMax));
  app.add_flag("!--no-verify", o.verify, "client: do not look at the bytes that arrived");
  auto* const csv = app.add_flag_callback(
      "--csv", [&o] { o.format = uet::perf::Format::kCsv; },
      "client: print comma-separated values");
  app.add_flag_callback(
         "--json", [&o] { o.format = uet::perf::Format::kJson; }, "client: print one JSON object")
      ->excludes(csv);
}

CLI::App* add_fabric(CLI::App& app, FabricOptions& o) {
  CLI::App* fabric = app.add_subcommand("fabric", "any libfabric provider");
  add_what(*fabric, o);
  add_how(*fabric, o);
  fabric->add_option("--peer", o.peer, "control address of the server; left out: be the server");
  fabric->add_option("--listen", o.listen, "server: control address to listen on");
  fabric->add_option("--control-port", o.control_port, "TCP port beside the fabric")
      ->capture_default_str();
  fabric
      ->add_option("--timeout", o.timeout_s,
                   "give up after so many seconds in which nothing happens")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  fabric->footer(
      "Example: the side without --peer is the server; it does what the client asks for.\n"
      "  FI_UET_ADDR=127.0.0.2 uet-perf fabric &\n"
      "  FI_UET_ADDR=127.0.0.3 uet-perf fabric write read --peer 127.0.0.1 --sizes 4k..1M");
  return fabric;
}
#endif

}  // namespace

/// Exit codes: 0 done, 1 the thing asked for failed, 2 usage.
int main(int argc, char** argv) {
  CLI::App app("Benchmarks for UET, between two processes", "uet-perf");
  app.set_version_flag("--version", UET_VERSION);
  app.require_subcommand(1);
  // The last one counts, so that scripts can add to a command.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  std::optional<int> cpu;
  uet::perf::RawOptions raw_options;
  CLI::App* raw = add_raw(app, raw_options);
#ifdef UET_PERF_FABRIC
  uet::perf::FabricOptions fabric_options;
  CLI::App* fabric = add_fabric(app, fabric_options);
#endif
  for (CLI::App* mode : app.get_subcommands({}))
    mode->add_option("--pin", cpu, "stay on this core")
        ->check(CLI::Range(0, 1023))
        ->type_name("CPU");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    if (cpu) uet::perf::pin_to(*cpu);
    if (raw->parsed()) return uet::perf::run_raw(raw_options);
#ifdef UET_PERF_FABRIC
    if (fabric->parsed()) return uet::perf::run_fabric(fabric_options);
#endif
  } catch (const std::exception& error) {
    std::fprintf(stderr, "uet-perf: %s\n", error.what());
    return 1;
  }
  return 2;
}
