/// uet-perf: benchmarks between two processes.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

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
                  "udp[:<interface or address>] or dpdk:<device>[,key=value...]")
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
CLI::App* add_fabric(CLI::App& app, uet::perf::FabricOptions& o) {
  CLI::App* fabric = app.add_subcommand("fabric", "any libfabric provider");
  fabric->add_option("test", o.test, "write, read, send, tagged-latency or tagged-rate")
      ->check(CLI::IsMember({"write", "read", "send", "tagged-latency", "tagged-rate"}))
      ->capture_default_str();
  fabric->add_option("--provider", o.provider, "libfabric provider")->capture_default_str();
  fabric->add_option("--peer", o.peer, "control address of the server; left out: be the server");
  fabric->add_option("--listen", o.listen, "server: control address to listen on");
  fabric->add_option("--control-port", o.control_port, "TCP port beside the fabric")
      ->capture_default_str();
  fabric->add_option("--size", o.size, "bytes of a message")->capture_default_str();
  fabric->add_option("--count", o.count, "messages measured")->capture_default_str();
  fabric->add_option("--window", o.window, "operations in flight")->capture_default_str();
  fabric->add_option("--timeout", o.timeout_s, "seconds to wait for the other side")
      ->capture_default_str();
  fabric->add_flag("--ordered", o.ordered, "ask for send-after-send order");
  fabric->add_flag("!--no-verify", o.verify, "do not look at the bytes that arrived");
  fabric->add_flag("--json", o.json, "print one JSON object");
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
  uet::perf::RawOptions raw_options;
  CLI::App* raw = add_raw(app, raw_options);
#ifdef UET_PERF_FABRIC
  uet::perf::FabricOptions fabric_options;
  CLI::App* fabric = add_fabric(app, fabric_options);
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
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
