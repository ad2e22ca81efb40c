/// Every setting of an endpoint, declared once: what `fi_info -e` lists, what FI_UET_CONFIG may
/// hold, what the man page says and what the code reads all come from the list in list.cc.
///
/// Knows texts and ranges. Knows nothing of libfabric and reads no environment: values arrive
/// through a lookup function.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fep/fep.h"
#include "lib/base/result.h"
#include "lib/net/fabric_address.h"
#include "lib/net/port_plugin.h"

namespace uet::fep {

enum class Progress : std::uint8_t { kAuto, kManual, kThread };
enum class CompletionLevel : std::uint8_t { kTransmit, kInject };
enum class Encapsulation : std::uint8_t { kUdp, kIp };
enum class Protection : std::uint8_t { kAuto, kCrc, kNone, kTss };
enum class KeysSignal : std::uint8_t { kNone, kHup, kUsr1, kUsr2 };
enum class AddressMode : std::uint8_t { kRelative, kAbsolute };

struct Setting;

/// The values in force.
struct Settings {
  // Port and address. `ports` and `addresses` are lists; the owner of the process picks one entry
  // of each.
  std::vector<std::string> ports;
  std::vector<std::string> addresses;
  std::string ifname;
  net::FabricAddress gateway;
  std::uint64_t prefix = 0;
  std::uint64_t vlan = 0;
  Encapsulation encap = Encapsulation::kUdp;
  std::uint64_t udp_port = 0;
  std::uint64_t ip_protocol = 0;
  std::uint64_t mtu = 0;
  std::uint64_t pool = 0;
  std::string dpdk_args;
  std::uint64_t dpdk_rxd = 0;
  std::uint64_t dpdk_txd = 0;
  std::uint64_t dpdk_burst = 0;
  std::uint64_t max_payload = 0;
  Protection protect = Protection::kAuto;
  std::string keys;
  std::string key_log;
  KeysSignal keys_signal = KeysSignal::kNone;
  // Job and identity.
  std::uint64_t job = 0;
  std::vector<std::uint64_t> jobs;
  AddressMode mode = AddressMode::kRelative;
  std::uint64_t pid_on_fep = 0;
  std::uint64_t ri = 0;
  std::optional<std::uint64_t> initiator_id;
  // Transport.
  cc::Algorithm cc = cc::Algorithm::kNscc;
  std::optional<cc::LoadBalancing> lb;  ///< none: as the number of planes suggests
  std::uint64_t paths = 0;
  bool trimming = false;
  bool rod_reorder = false;
  bool spray_ordered = false;
  std::uint64_t link_gbps = 0;
  std::uint64_t link_mbps = 0;
  base::Duration base_rtt;
  base::Duration rto_init;
  base::Duration rto_max;
  base::Duration tail_loss_time;
  base::Duration peer_timeout;
  std::uint64_t retry = 0;
  std::uint64_t mpr = 0;
  std::uint64_t max_pdc = 0;
  std::string pds_parameters;
  base::Duration pdc_idle;
  // Provider.
  Progress progress = Progress::kAuto;
  CompletionLevel completion = CompletionLevel::kTransmit;
  std::uint64_t inject_size = 0;
  std::uint64_t tx_size = 0;
  std::uint64_t rx_size = 0;
  std::uint64_t overflow_bytes = 0;
  std::uint64_t overflow_msgs = 0;
  bool flow_control = true;
  bool rendezvous = false;
  std::uint64_t rendezvous_from = 0;  ///< 0: none begins so
  std::uint64_t rendezvous_eager = 0;
  bool deferrable = false;
  bool small_headers = false;
  std::uint64_t overflow_max = 0;
  base::Duration restart_limit;
  bool reject_long = false;
  bool mr_endpoint = false;
  bool allow_all_mr = false;
  // Seeing inside.
  std::string trace;
  std::string path_log;
  std::string pcap;
  std::string impair;
  std::uint64_t seed = 0;
  std::string config;

  /// Who gave each value that is no default, by key: "FI_UET_CC", or the path of the file.
  std::map<std::string_view, std::string> chosen_by;
  /// "default" for the others.
  std::string who_chose(std::string_view key) const;
  /// `text` with the file or profile behind each variable in it that has its value from there: "FI_UET_MTU (in uet.toml)".
  std::string with_origins(std::string_view text) const;

  /// The text of one variable without its FI_UET_ prefix, or nothing when it is not set.
  using Lookup = std::function<std::optional<std::string>(std::string_view key)>;

  /// Defaults, then the file that CONFIG names, then what `lookup` finds. On failure a sentence
  /// that names the setting, the bad value and what is allowed.
  static base::Result<Settings, std::string> load(const Lookup& lookup);

  /// What is wrong whatever the port; empty: nothing.
  std::string why_no_port_suits() const;

  /// What a Fep on a port with these facts runs with. Fails when MAX_PAYLOAD does not fit the port, or
  /// when keys are wanted and cannot be used: never is anything sent in clear instead. Reads the key
  /// file and reserves counters, so each result is for one Fep. Where another process may have the address later, resource indices begin at
  /// one that comes from `process_number`. [decision 168]
  base::Result<FepConfig, std::string> fep_config(const net::PortFacts& facts,
                                                  std::uint32_t process_number = 0) const;

  /// The same where nothing is set, for a port that has room for packets.
  static FepConfig default_config(const net::PortFacts& facts);

  /// What opening entry `spec` of `ports` at `address` needs; the key of its tables comes from `rng`, which stays where it is.
  net::PortRequest port_request(std::string spec, net::FabricAddress address,
                                const base::Rng& rng) const;
};

/// One row of the list.
struct Setting {
  enum class Kind : std::uint8_t {
    kText,
    kBool,
    kInteger,
    kSize,
    kDuration,
    kChoice,
    kAddress,
    kTextList,
    kNumberList
  };
  /// Where the value goes. Choices store the index of the word that was given.
  using Target =
      std::variant<std::string Settings::*, bool Settings::*, std::uint64_t Settings::*,
                   std::optional<std::uint64_t> Settings::*, base::Duration Settings::*,
                   net::FabricAddress Settings::*, std::vector<std::string> Settings::*,
                   std::vector<std::uint64_t> Settings::*, void (*)(Settings&, std::size_t)>;

  std::string_view key;    ///< FI_UET_<key>; in the file the same in lower case
  std::string_view group;  ///< heading in the man page
  Kind kind{};
  std::string_view fallback;  ///< default, as a user would write it
  Target target;
  std::string_view help;
  std::uint64_t min = 0;  ///< kInteger, kSize, kNumberList; kDuration in nanoseconds
  std::uint64_t max = 0;
  std::string_view
      choices{};  ///< kChoice: words; kInteger: the only allowed numbers; separated by spaces
  std::string_view unit;        ///< kDuration: that of a number without one
  bool libfabric_only = false;  ///< uet::Endpoint has no use for it
};

/// The list, in the order of documentation.
std::span<const Setting> settings();

/// "help (type or choices; default ...)": one line for parameter listings.
std::string describe(const Setting& setting);

/// Names in `environment` ("NAME=value" entries up to a null pointer) that begin with FI_UET_ but
/// are no setting.
std::vector<std::string> unknown_variables(const char* const* environment);

/// What to tell of such a name; `list` has all settings.
std::string about_unknown_variable(const std::string& name, std::string_view list);

/// The setting that a misspelt variable (with or without FI_UET_) is probably about; empty when none is near.
std::string nearest_setting(std::string_view name);

/// Key and text of every entry of a configuration file, or of the profile that "profile:NAME" stands for, or why it cannot
/// be read. The keys are not checked.
base::Result<std::vector<std::pair<std::string, std::string>>, std::string> read_settings_file(
    const std::string& path);

}  // namespace uet::fep
