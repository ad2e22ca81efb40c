#include "apps/drill/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "apps/drill/values.h"
#include "lib/base/quantity.h"
#include "lib/base/version.h"

namespace uet::drill {

namespace {

void add_address(CLI::App& app, const std::string& name, net::FabricAddress& to,
                 const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [name, &to](const std::string& text) {
           const auto address = net::FabricAddress::parse(text);
           if (!address)
             throw CLI::ValidationError(name, "'" + text + "' is not an IPv4 or IPv6 address");
           to = *address;
         },
         help)
      ->type_name("ADDRESS");
}

void add_time(CLI::App& app, const std::string& name, base::Duration& to, const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [name, &to](const std::string& text) {
           const auto time = base::parse_duration(text);
           if (!time || *time <= base::Duration{} || *time > base::Duration::from_seconds(3600))
             throw CLI::ValidationError(name, "'" + text + "' is no time up to an hour: 200ms, 5s");
           to = *time;
         },
         help)
      ->type_name("TIME");
}

void add_number(CLI::App& app, const std::string& name, std::uint64_t& to,
                const std::string& help) {
  return static_cast<void>(app.add_option_function<std::string>(
                                  name,
                                  [name, &to](const std::string& text) {
                                    const auto value = number(text);
                                    if (!value)
                                      throw CLI::ValidationError(name,
                                                                 "'" + text + "' is no number");
                                    to = *value;
                                  },
                                  help)
                               ->type_name("NUMBER"));
}

void add_capabilities(CLI::App& app, const std::string& name, std::set<std::string>& to,
                      const std::string& help) {
  app.add_option_function<std::vector<std::string>>(
         name,
         [name, &to](const std::vector<std::string>& names) {
           for (const std::string& capability : names) {
             if (find_capability(capability) == nullptr)
               throw CLI::ValidationError(name, "there is no capability '" + capability + "'");
             to.insert(capability);
           }
         },
         help)
      ->allow_extra_args(false)
      ->delimiter(',')
      ->type_name("CAPABILITY,...");
}

void add_port(CLI::App& app, Options& o) {
  o.port.spec = "udp";
  app.add_option("--port", o.port.spec,
                 "udp[:<interface or address>] or dpdk:<device>[,key=value...]")
      ->capture_default_str();
  add_address(app, "--address", o.port.address, "our address");
  app.add_option("--prefix", o.port.prefix_length, "prefix length of our address (24, for IPv6 64)")
      ->check(CLI::Range(1, 128));
  add_address(app, "--gateway", o.port.gateway, "next hop outside of the prefix");
  app.add_option("--vlan", o.port.vlan, "802.1Q VLAN");
  app.add_option("--mtu", o.port.mtu, "IP MTU")->check(CLI::Range(576, 65535));
  app.add_flag("--native-ip", o.port.native_ip, "IP with entropy header instead of UDP");
  app.add_option("--udp-port", o.port.udp_port, "of UET")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app.add_option("--impair", o.impair, "as FI_UET_IMPAIR: a bad network of our own");
}

void add_peer(CLI::App& app, Options& o) {
  Peer& p = o.peer;
  app.add_option("--ri", p.resource_index, "resource index of its endpoint")
      ->check(CLI::Range(0, 4095))
      ->capture_default_str();
  app.add_option("--pid", p.pid_on_fep, "its PIDonFEP")
      ->check(CLI::Range(0, 4095))
      ->capture_default_str();
  app.add_option("--job", p.job_id, "JobID")->check(CLI::Range(0, 0xffffff))->capture_default_str();
  app.add_flag_callback(
      "--absolute", [&p] { p.relative = false; }, "absolute addressing");
  app.add_option("--initiator", p.initiator, "our initiator identifier")->capture_default_str();
  add_number(app, "--key", p.key, "key of 16 KiB of its memory that we may read and write");
  add_number(app, "--base", p.base, "what stands for the first byte of that memory (0)");
  app.add_option("--payload", p.payload_mtu, "payload MTU")
      ->check(CLI::IsMember({1024, 2048, 4096, 8192}))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--protect", [&p](const std::string& text) { p.has_crc = text == "crc"; },
         "crc (as if not given) or none")
      ->check(CLI::IsMember({"crc", "none"}));
  app.add_option("--keys", p.keys,
                 "key file, as the endpoint's FI_UET_KEYS: packets are secured (TSS)");
  app.add_option("--initiate", p.initiate,
                 "command that makes it initiate $UET_DRILL_OPERATION (write, send, read) of "
                 "$UET_DRILL_BYTES bytes with the endpoint at $UET_DRILL_ADDRESS");
  app.add_flag("--by-hand", p.is_by_hand, "a person makes it initiate, when asked on stderr");
  add_capabilities(app, "--with", o.with, "what it can do besides the usual; see below");
  add_capabilities(app, "--without", o.without, "what it cannot do");
}

/// What the other options say of capabilities.
void derive_capabilities(const CLI::App& app, Peer& peer) {
  if (app.count("--key") > 0) peer.can.insert("memory");
  if (peer.relative) peer.can.insert("relative");
  if (!peer.keys.empty())
    for (const char* const unlike : {"any-start", "trimming"}) peer.can.erase(unlike);
  if (peer.has_crc && peer.keys.empty()) peer.can.insert("crc");
  if (!peer.initiate.empty() || peer.is_by_hand) peer.can.insert("initiator");
}

/// Throws where --with contradicts another option.
void check_wishes(const Options& o, bool has_key) {
  const struct {
    const char* capability;
    bool is_impossible;
    const char* why;
  } contradictions[] = {
      {"crc", !o.peer.has_crc, "--protect none was said"},
      {"crc", !o.peer.keys.empty(), "packets under --keys have none"},
      {"relative", !o.peer.relative, "--absolute was said"},
      {"initiator", o.peer.initiate.empty() && !o.peer.is_by_hand, "give --initiate or --by-hand"},
      {"memory", !has_key, "give --key"},
      {"secured", o.peer.keys.empty(), "give --keys"},
      {"two-keys", o.peer.keys.empty(), "give --keys"},
      {"replay-window", o.peer.keys.empty(), "give --keys"},
      {"tsc-floor", o.peer.keys.empty(), "give --keys"},
      {"no-trim-hints", o.peer.keys.empty(), "give --keys"},
      {"epoch", o.peer.keys.empty(), "give --keys"},
      {"ssi-keys", o.peer.keys.empty(), "give --keys"},
  };
  for (const std::string& name : o.with)
    if (o.without.contains(name))
      throw CLI::ValidationError("--with", name + ": --without names it as well");
  for (const auto& [capability, is_impossible, why] : contradictions)
    if (is_impossible && o.with.contains(capability))
      throw CLI::ValidationError("--with", fmt::format("{}: {}", capability, why));
}

}  // namespace

void apply_wishes(Options& o) {
  o.peer.can.insert(o.with.begin(), o.with.end());
  for (const std::string& name : o.without) o.peer.can.erase(name);
}

std::optional<int> parse_options(int argc, char** argv, Options& o) {
  CLI::App app("Plays packet scripts against a live UET endpoint and says what it gets wrong.",
               "uet-drill");
  app.set_version_flag("--version", std::string(base::kVersion));
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  std::string peer;
  app.add_option("endpoint", peer, "address of the endpoint under test")->type_name("ADDRESS");
  app.add_option("scripts", o.scripts,
                 "files, folders, or how names begin (PDS-12, SES); all that are installed")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_port(app, o);
  add_peer(app, o);
  add_time(app, "--patience", o.timing.patience, "for an expected packet (2s)");
  add_time(app, "--quiet", o.timing.quiet, "of silence that proves silence (150ms)");
  add_time(app, "--reach", o.timing.reach, "for the first sign of life (5s)");
  app.add_option("--out", o.out,
                 "folder for report.html, report.json and a capture of each script");
  app.add_option("--seed", o.seed, "of identifiers and PSNs; 0: another each time");
  app.add_flag("--json", o.json, "print one JSON object");
  app.add_flag("--list", o.list, "only name the scripts");
  app.footer("Capabilities:\n" + list_capabilities() +
             "\nExit status: 0 every script that was played passed, 1 not so, 2 wrong usage.");
  try {
    app.parse(argc, argv);
    check_wishes(o, app.count("--key") > 0);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  derive_capabilities(app, o.peer);
  apply_wishes(o);
  if (o.list) {
    if (!peer.empty()) o.scripts.insert(o.scripts.begin(), peer);
    return {};
  }
  const auto address = net::FabricAddress::parse(peer);
  if (address && address->is_v4() && o.port.prefix_length > 32) {
    fmt::print(stderr, "uet-drill: --prefix {} is longer than an IPv4 address\n",
               o.port.prefix_length);
    return 2;
  }
  if (address && *address == o.port.address) {
    fmt::print(stderr, "uet-drill: --address {} is the endpoint's own: scripts need another\n",
               peer);
    return 2;
  }
  if (address) {
    o.peer.address = *address;
    return {};
  }
  fmt::print(stderr, "uet-drill: {}\n",
             peer.empty() ? "which endpoint? Give its address; --help says more"
                          : "'" + peer + "' is not an IPv4 or IPv6 address");
  return 2;
}

}  // namespace uet::drill
