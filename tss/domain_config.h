/// What a key manager tells a secure domain. [TSS 3, 13]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/units.h"
#include "lib/net/fabric_address.h"
#include "tss/locked_memory.h"
#include "tss/secret.h"

namespace uet::tss {

/// [TSS 5] direct: one key for all. cluster: every member derives the sender's key. server: the
/// server derives each client's key, and a client has only its own.
enum class Mode : std::uint8_t { kDirect, kCluster, kServer };
enum class Role : std::uint8_t { kPeer, kServer, kClient };
/// How a target judges the first packet of a delivery context. [TSS 11.2]
enum class OpeningMethod : std::uint8_t { kExpected, kChallenge };

struct KeyConfig {
  bool an = false;
  Key key;                   ///< the domain's initial key; a client's own derived key
  std::optional<Mask> mask;  ///< client only
  std::uint16_t epoch = 0;   ///< client only: the epoch that its key was derived for
};

using KeyList = std::vector<KeyConfig, LockedAllocator<KeyConfig>>;

/// A new derived key every so many packets, cluster mode only. [TSS 7.3]
struct Rekey {
  std::uint64_t mask = 0;  ///< of the counter; 0: off
  unsigned shift = 0;      ///< index of the lowest bit of the mask
};

/// Who may send in the domain. [TSS 10.2]
struct Member {
  std::uint32_t ssi = 0;  ///< 0 in a domain without SSI
  net::FabricAddress address;
  auto operator<=>(const Member&) const = default;
};

/// The upper `bits` bits of our counters are `id`, so that senders with one key and one IV prefix
/// never share a counter. In server mode with SSI the top bit is set at servers and clear at clients. [TSS 5]
struct CounterPartition {
  unsigned bits = 0;
  std::uint32_t id = 0;
  bool operator==(const CounterPartition&) const = default;
};

inline constexpr std::uint32_t kSdiMax = 0xff'ffff;
inline constexpr unsigned kCounterBits = 48;
inline constexpr std::uint64_t kCounterMax = (1ull << kCounterBits) - 1;

struct DomainConfig {
  std::uint32_t sdi = 0;
  Mode mode = Mode::kDirect;
  Role role = Role::kPeer;
  bool ssi_mode = false;
  std::uint32_t ssi = 0;  ///< ours, in SSI mode; a server sends its clients' instead
  CounterPartition partition;

  KeyList keys;        ///< at most one for each AN
  bool tx_an = false;  ///< which of them packets leave under
  Rekey rekey;

  std::uint16_t epoch = 0;         ///< of packets sent; a client's follows its key
  bool reject_old_epochs = false;  ///< [TSS 7.2]
  std::uint16_t max_epoch_age = 16;

  std::uint64_t counter_fatal = kCounterMax;     ///< no packet leaves at or above
  std::uint64_t auth_fail_threshold = 1u << 20;  ///< forged packets per alarm
  bool stop_at_auth_fail_threshold = false;      ///< and then nothing is accepted any more
  std::uint32_t max_sources = 4096;              ///< senders that are told apart

  // What both ends of an interoperation test may have to agree on. [TSS 9.1, 17]
  bool aad_from_tss = false;          ///< else from the IP source address
  std::uint8_t clear_bytes = 0;       ///< authenticated but readable behind the TSS header
  bool kdf_ipv6_ignores_ssi = false;  ///< IPv6: derive from the address even in SSI mode

  // Replay. [TSS 11.4, 11.5]
  bool tsc_floor = true;
  std::uint64_t tsc_floor_window = 1u << 20;
  std::uint32_t replay_window = 0;  ///< counters behind the newest that are told apart; 0: none

  bool trim_hints = false;  ///< what is left of a trimmed request is read, not believed [TSS 9.4]
  OpeningMethod opening = OpeningMethod::kExpected;
  base::Duration new_pdc_time = base::Duration::from_ms(100);
  std::uint32_t max_pending = 1024, max_pending_per_source = 64;  ///< [TSS 11.3]

  /// In rising order.
  std::vector<Member> members;      ///< empty: any sender with the key, unless needs_members()
  std::vector<std::uint32_t> jobs;  ///< JobIDs that belong to the domain
};

/// True of a server that knows its clients by SSI: their keys do not say which addresses are theirs, so only `members` does (decision 0173).
bool needs_members(const DomainConfig& config);
/// Why a domain cannot be used, in a sentence that names the field; empty when it can. Neither keys nor members are
/// required: a domain may wait for its first.
std::string why_unusable(const DomainConfig& config);
/// The same for an endpoint at `address`, which has members where it needs them. [TSS 5]
std::string why_unusable_at(const DomainConfig& config, const net::FabricAddress& address);

}  // namespace uet::tss
