/// uet-perf: benchmarks between two processes.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>

#include "apps/command_word.h"
#include "apps/perf/baseline_bench.h"
#ifdef UET_PERF_FABRIC
#include "apps/perf/collective_bench.h"
#include "apps/perf/fabric_group.h"
#endif
#include "apps/perf/fabric_bench.h"
#include "apps/perf/pin.h"
#include "apps/perf/raw_bench.h"
#include "apps/program.h"
#include "lib/base/quantity.h"
#include "lib/base/version.h"

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
  CLI::Option* copy =
      raw->add_flag("--copy", o.copy, "copy the payload once on each side, and nothing else");
  raw->add_option_function<std::string>(
         "--memory",
         [&o](const std::string& text) {
           using namespace uet::perf;
           const auto bytes =
               uet::base::parse_byte_size(text, std::uint64_t{1} << kMostMemoryShift);
           if (!bytes || *bytes < (1u << kLeastMemoryShift) || !std::has_single_bit(*bytes))
             throw CLI::ValidationError("--memory",
                                        "'" + text + "' is not a power of two within 64k and 1G");
           o.memory_shift = static_cast<unsigned>(std::countr_zero(*bytes));
         },
         "memory that --copy goes through on this side: as much as all messages under way that it "
         "is compared with take (1M); a server goes through what its client does, and no more than "
         "this")
      ->type_name("SIZE")
      ->needs(copy);
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

using uet::perf::FabricOptions;

/// `what` says of what, `usual` what counts when none is given.
void add_sizes(CLI::App& app, std::vector<std::uint64_t>& sizes, const std::string& what,
               const std::string& usual) {
  app.add_option_function<std::string>(
         "--size,--sizes",
         [&sizes](const std::string& text) {
           const auto parsed = uet::perf::parse_sizes(text);
           if (!parsed)
             throw CLI::ValidationError(
                 "--sizes", "'" + text + "' is no list of sizes; write 4096, 64,4k,1M or 8..4M");
           sizes = *parsed;
         },
         "bytes of " + what + ": 4096, 64,4k,1M or 8..4M (" + usual + ")")
      ->type_name("SIZES");
}

CLI::Option* add_tests(CLI::App& app, FabricOptions& o, std::span<const std::string_view> known,
                       const std::string& help) {
  return app.add_option("tests", o.tests, help)
      ->check(CLI::IsMember(std::vector<std::string>(known.begin(), known.end())))
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

/// `most` says how many `things` a run has at most where the size decides.
void add_count(CLI::App& app, FabricOptions& o, const std::string& things,
               const std::string& most) {
  app.add_option("--count", o.count,
                 things + " of a run (by size: 64 MiB in all, 16 to " + most + ")")
      ->check(CLI::Range(std::uint64_t{1}, uet::perf::kCountMax));
}

void add_window(CLI::App& app, FabricOptions& o) {
  app.add_option("--window", o.window, "operations in flight (16)")
      ->check(CLI::Range(std::uint64_t{1}, uet::perf::kWindowMax));
}

#ifdef UET_PERF_FABRIC
void add_providers(CLI::App& app, FabricOptions& o) {
  app.add_option_function<std::string>(
         "--provider", [&o](const std::string& text) { o.providers = uet::perf::split_list(text); },
         "libfabric providers, measured in turn: uet or uet,tcp (uet)")
      ->type_name("NAMES");
}

/// What the two sides must have alike: the client decides, and a server that is told otherwise refuses.
void add_what(CLI::App& app, FabricOptions& o) {
  add_tests(app, o, uet::perf::kTests,
            "write (default), read, send, tagged-rate, or write-latency, read-latency, "
            "send-latency, tagged-latency: one or several");
  add_providers(app, o);
  add_sizes(app, o.sizes, "a message", "1M; 8 for latency and rate");
  add_count(app, o, "messages", "10000, for latency to 1000");
  add_window(app, o);
  app.add_flag("--ordered", o.ordered, "ask for send-after-send order");
}

#endif

/// `who` is the side that takes these options, with a colon; `things` is what a run has a number of.
void add_runs(CLI::App& app, FabricOptions& o, const std::string& who, const std::string& things) {
  auto* const runs =
      app.add_option("--runs", o.runs,
                     who + "runs of each figure; their minimum, median and maximum are printed")
          ->check(CLI::Range(1, 10'000))
          ->capture_default_str();
  app.add_option("--seconds", o.seconds,
                 who + "as many runs of each figure as begin within so many seconds")
      ->check(CLI::Range(0.1, 86400.0))
      ->excludes(runs);
  app.add_option("--warm-up", o.warm_up,
                 who + things + " before the first run (a tenth of a run, 1000 at most)")
      ->check(CLI::Range(std::uint64_t{0}, uet::perf::kCountMax));
  auto* const csv = app.add_flag_callback(
      "--csv", [&o] { o.format = uet::perf::Format::kCsv; }, who + "print comma-separated values");
  app.add_flag_callback(
         "--json", [&o] { o.format = uet::perf::Format::kJson; }, who + "print one JSON object")
      ->excludes(csv);
}

/// `server` is the side that listens.
void add_control(CLI::App& app, FabricOptions& o, const std::string& server) {
  app.add_option("--peer", o.peer, "control address of " + server + "; left out: be " + server);
  app.add_option("--listen", o.listen, "without --peer: control address to listen on");
  app.add_option("--control-port", o.control_port, "TCP port beside the fabric")
      ->capture_default_str();
  app.add_option("--timeout", o.timeout_s, "give up after so many seconds in which nothing happens")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
}

/// Names on stderr what was asked for and changes nothing.
void note_idle_options(const CLI::App& mode, const FabricOptions& o) {
  const auto note = [](const std::string& names, const char* why) {
    if (!names.empty()) std::fprintf(stderr, "uet-perf: %s: %s\n", names.c_str(), why);
  };
  std::string of_client;
  for (const char* name : {"--runs", "--seconds", "--warm-up", "--csv", "--json", "--no-verify"})
    if (o.peer.empty() && mode.get_option_no_throw(name) != nullptr && mode.count(name) > 0)
      of_client += (of_client.empty() ? "" : ", ") + std::string(name);
  note(of_client, "of the client alone; without --peer this is the server");
  const bool is_latency =
      !o.tests.empty() && std::all_of(o.tests.begin(), o.tests.end(), uet::perf::is_latency_test);
  if (o.window && is_latency)
    note("--window", "latency tests have one operation in flight, whatever it says");
  if (!o.peer.empty() && !o.listen.empty())
    note("--listen", "of the server alone; with --peer this is the client");
}

CLI::App* add_tcp(CLI::App& app, FabricOptions& o) {
  CLI::App* tcp = app.add_subcommand("tcp", "kernel TCP without a fabric");
  add_tests(*tcp, o, uet::perf::kTcpTests, "send (default), send-latency: one or both");
  add_sizes(*tcp, o.sizes, "a message", "1M; 8 for latency");
  add_count(*tcp, o, "messages", "10000, for latency to 1000");
  add_runs(*tcp, o, "client: ", "messages");
  add_control(*tcp, o, "the server");
  return tcp;
}

CLI::App* add_copy(CLI::App& app, FabricOptions& o) {
  CLI::App* copy = app.add_subcommand("copy", "memcpy in this process");
  add_sizes(*copy, o.sizes, "a copy", "1M");
  add_count(*copy, o, "copies", "10000");
  add_window(*copy, o);
  add_runs(*copy, o, "", "copies");
  return copy;
}

#ifdef UET_PERF_FABRIC
CLI::App* add_collective(CLI::App& app, uet::perf::CollectiveOptions& o) {
  CLI::App* collective =
      app.add_subcommand("collective", "collective operations of several processes");
  FabricOptions& common = o.common;
  add_tests(*collective, common, uet::perf::kCollectives,
            "all-reduce-ring (default), all-reduce-tree, all-gather, reduce-scatter, broadcast, "
            "all-to-all: one or several");
  collective->add_option("--ranks", o.ranks, "processes in all")
      ->check(CLI::Range(1u, uet::perf::kMembersMax))
      ->capture_default_str();
  collective
      ->add_option("--local", o.local,
                   "of them, processes of this host, which are started here (all; with --peer 1)")
      ->check(CLI::Range(1u, uet::perf::kMembersMax));
  add_providers(*collective, common);
  add_sizes(*collective, common.sizes, "the whole operation", "1M");
  collective->add_option("--type", o.type, "of the elements: float, double or int32")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(uet::perf::kElementTypes),
                                                     std::end(uet::perf::kElementTypes))))
      ->capture_default_str();
  collective->add_option("--op", o.reduction, "reduction: sum, max or min")
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(uet::perf::kReductions),
                                                     std::end(uet::perf::kReductions))))
      ->capture_default_str();
  collective->add_option("--count", common.count, "calls of a run (by size, 5 to 200)")
      ->check(CLI::Range(std::uint64_t{1}, uet::perf::kCountMax));
  add_runs(*collective, common, "rank 0: ", "calls");
  add_control(*collective, common, "rank 0");
  collective->add_flag("--pin-each", o.pin_each, "the processes of this host on a core each");
  collective->footer(
      "Example: four processes of this host, and two more of another one\n"
      "  uet-perf collective all-reduce-ring --ranks 6 --local 4 --sizes 1k..4M\n"
      "  uet-perf collective --peer HOST --local 2");
  return collective;
}

CLI::App* add_fabric(CLI::App& app, FabricOptions& o) {
  CLI::App* fabric = app.add_subcommand("fabric", "any libfabric provider");
  add_what(*fabric, o);
  add_runs(*fabric, o, "client: ", "messages");
  fabric->add_flag_callback(
      "--no-verify", [&o] { o.verify = false; }, "client: do not look at the bytes that arrived");
  add_control(*fabric, o, "the server");
  fabric->footer(
      "Example: the side without --peer is the server; it does what the client asks for.\n"
      "  uet-perf fabric &\n"
      "  uet-perf fabric write read --peer 127.0.0.1 --sizes 4k..1M");
  return fabric;
}
#endif

/// Exit codes: 0 done, 1 the thing asked for failed, 2 usage.
int run(int argc, char** argv) {
  CLI::App app("Benchmarks for UET, between two processes", "uet-perf");
  app.footer("Examples: uet-perf(1); in the source tree, man ./docs/man/uet-perf.1");
  app.set_version_flag("--version", std::string(uet::base::kVersion));
  app.require_subcommand(1);
  // The last one counts, so that scripts can add to a command.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  std::optional<int> cpu;
  uet::perf::RawOptions raw_options;
  CLI::App* raw = add_raw(app, raw_options);
  FabricOptions tcp_options, copy_options;
  CLI::App* tcp = add_tcp(app, tcp_options);
  CLI::App* copy = add_copy(app, copy_options);
#ifdef UET_PERF_FABRIC
  FabricOptions fabric_options;
  CLI::App* fabric = add_fabric(app, fabric_options);
  uet::perf::CollectiveOptions collective_options;
  CLI::App* collective = add_collective(app, collective_options);
#endif
  for (CLI::App* mode : app.get_subcommands({}))
    mode->add_option("--pin", cpu, "stay on this core")
        ->check(CLI::Range(0, 1023))
        ->type_name("CPU");
  if (const std::string wrong = uet::apps::wrong_command(app, argc, argv); !wrong.empty()) {
    std::fprintf(stderr, "uet-perf: %s\n", wrong.c_str());
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    if (cpu) uet::perf::pin_to(*cpu);
    if (raw->parsed()) return uet::perf::run_raw(raw_options);
    if (tcp->parsed()) {
      note_idle_options(*tcp, tcp_options);
      return uet::perf::run_tcp(tcp_options);
    }
    if (copy->parsed()) return uet::perf::run_copy(copy_options);
#ifdef UET_PERF_FABRIC
    if (fabric->parsed()) {
      note_idle_options(*fabric, fabric_options);
      return uet::perf::run_fabric(fabric_options);
    }
    if (collective->parsed()) return uet::perf::run_collective_bench(collective_options);
#endif
  } catch (const std::exception& error) {
    std::fprintf(stderr, "uet-perf: %s\n", error.what());
    return 1;
  }
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  return uet::apps::run_program("uet-perf", [&] { return run(argc, argv); });
}
