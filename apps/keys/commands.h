/// What uet-keys does, apart from its command line. Each returns the exit status and says what it did
/// or why not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace uet::apps::keys {

struct NewOptions {
  std::string out;
  std::string mode = "direct";
  std::uint32_t sdi = 0;  ///< 0: random
  std::optional<std::uint32_t> ssi;
  std::optional<std::uint32_t> server_id;  ///< server mode with SSI; else 0
  std::vector<std::uint32_t> jobs;
  std::string state_folder;  ///< empty: the user's
  std::string opening = "0rtt";
  std::uint32_t replay_window = 65536;
  bool renew = false;  ///< cluster: a derived key for every 2^32 packets
};
int make_new(const NewOptions& options);

struct DeriveOptions {
  std::string file, out;
  std::optional<std::uint32_t> ssi;
  std::vector<std::string>
      ip;  ///< all addresses of the client; one where the key is that of an address
  std::optional<std::uint32_t> sdi;
};
/// A client's file out of a server's. With SSI it lists the client there; one that is listed gets no address more.
int derive(const DeriveOptions& options);

struct InstallOptions {
  std::string file, state_folder;
  // This host's own; else those that it recorded the last time.
  std::optional<std::uint32_t> ssi, server_id;
  /// Names of keys under which, the operator says, this host never sent.
  std::vector<std::string> never_sent;
};
/// On a host that got a copy of a file: makes the counter state of keys that it never had, and puts what is this host's own into the file.
/// To another folder the counters are carried along.
int install(const InstallOptions& options);

enum class RotateStep : std::uint8_t { kAdd, kSwitch };
/// kSwitch: to the newer key, or to the one that `to` names as the output of uet-keys does.
int rotate(const std::string& file, RotateStep step, std::optional<std::uint32_t> sdi,
           const std::string& to = "");
/// Removes the key that packets no longer leave under; the newer one only when `key` names it.
int retire(const std::string& file, std::optional<std::uint32_t> sdi, const std::string& key = "");
int check(const std::string& file);

}  // namespace uet::apps::keys
