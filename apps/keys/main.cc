// uet-keys: makes, rotates and checks key files. See uet-keys(1).

#include <CLI/CLI.hpp>

#include "apps/command_word.h"
#include "apps/keys/commands.h"
#include "apps/program.h"
#include "keys/host_identity.h"
#include "lib/base/version.h"

namespace keys = uet::apps::keys;

namespace {

int run(int argc, char** argv) {
  CLI::App app(
      "Keys of secure UET endpoints: makes, rotates and checks the file that FI_UET_KEYS names",
      "uet-keys");
  app.set_version_flag("--version", std::string(uet::base::kVersion));
  app.require_subcommand(1);
  int status = 0;
  std::string file;
  std::optional<std::uint32_t> sdi;
  const CLI::Range server_ids(0u, uet::keys::kMaxServers - 1);
  const auto with_file = [&](CLI::App* sub) {
    sub->add_option("FILE", file, "key file")->required();
    return sub;
  };

  keys::NewOptions fresh;
  auto* make = app.add_subcommand("new", "a file with one secure domain and one random key");
  make->add_option("--out", fresh.out, "the file to make; it must not exist")->required();
  make->add_option("--mode", fresh.mode, "direct (one key for all), cluster or server")
      ->check(CLI::IsMember({"direct", "cluster", "server"}))
      ->capture_default_str();
  make->add_option("--sdi", fresh.sdi, "identifier of the domain; random if not given")
      ->check(CLI::Range(1u, 0xffffffu));
  make->add_option("--ssi", fresh.ssi, "name senders by SSI instead of by address; this host's");
  make->add_option("--server-id", fresh.server_id,
                   "server mode with --ssi: a number that no other server of the domain has")
      ->check(server_ids);
  make->add_option("--job", fresh.jobs, "JobIDs of the domain; any if not given");
  make->add_option("--state-dir", fresh.state_folder, "where packet counters are kept");
  make->add_option("--opening", fresh.opening, "0rtt or 1rtt")
      ->check(CLI::IsMember({"0rtt", "1rtt"}))
      ->capture_default_str();
  make->add_option("--replay-window", fresh.replay_window,
                   "packets of each sender that are told apart; a power of two, or 0")
      ->capture_default_str();
  make->add_flag("--renew", fresh.renew, "cluster mode: a new derived key every 2^32 packets");
  make->callback([&] { status = keys::make_new(fresh); });

  keys::DeriveOptions client;
  auto* derive = app.add_subcommand("derive", "the file of one client, out of a server's");
  derive->add_option("FILE", client.file, "the server's key file")->required();
  derive->add_option("--out", client.out, "the client's file; it must not exist")->required();
  derive->add_option("--ssi", client.ssi, "the client's SSI");
  derive
      ->add_option("--ip", client.ip,
                   "the client's address; IPv6 with --ssi only. Once for each that it has")
      ->allow_extra_args(false);
  derive->add_option("--sdi", client.sdi, "which domain, if there are several");
  derive->callback([&] { status = keys::derive(client); });

  keys::InstallOptions here;
  auto* install = app.add_subcommand("install", "prepare this host for a copied file");
  install->add_option("FILE", here.file, "key file")->required();
  install->add_option("--ssi", here.ssi, "this host's SSI; needed the first time");
  install
      ->add_option("--server-id", here.server_id,
                   "this server's number in a domain with SSI; needed the first time")
      ->check(server_ids);
  install->add_option("--state-dir", here.state_folder,
                      "where packet counters are kept here from now on");
  install
      ->add_option("--never-sent-here", here.never_sent,
                   "begin counters of the key with this name, though this host may have had it: it "
                   "never sent under it")
      ->allow_extra_args(false);
  install->callback([&] { status = keys::install(here); });

  bool do_switch = false;
  std::string key;
  auto* rotate = with_file(app.add_subcommand("rotate", "add a second key, or send under it"));
  auto* switches = rotate->add_flag("--switch", do_switch, "send under the newer key from now on");
  rotate->add_option("--to", key, "the key to send under, by its name")->needs(switches);
  rotate->add_option("--sdi", sdi, "which domain, if there are several");
  rotate->callback([&] {
    status = keys::rotate(file, do_switch ? keys::RotateStep::kSwitch : keys::RotateStep::kAdd, sdi,
                          key);
  });

  auto* retire = with_file(app.add_subcommand("retire", "remove the key that is not sent under"));
  retire->add_option("--sdi", sdi, "which domain, if there are several");
  retire->add_option("--key", key, "the key to remove, by its name: also the newer one");
  retire->callback([&] { status = keys::retire(file, sdi, key); });

  with_file(app.add_subcommand("check", "whether endpoints can use the file, and its state"))
      ->callback([&] { status = keys::check(file); });

  if (const std::string wrong = uet::apps::wrong_command(app, argc, argv); !wrong.empty()) {
    std::fprintf(stderr, "uet-keys: %s\n", wrong.c_str());
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  return uet::apps::run_program("uet-keys", [&] { return run(argc, argv); });
}
