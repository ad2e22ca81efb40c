#include "tss/domain_config.h"

#include <algorithm>
#include <bit>

namespace uet::tss {
namespace {

constexpr unsigned kMaxPartitionBits = 16;
constexpr std::uint32_t kMaxReplayWindow = 1u << 20;
constexpr std::uint64_t kMaxWindowBits = 1ull << 31;
constexpr std::uint32_t kMaxSources = 1u << 20;
constexpr std::uint8_t kMaxClearBytes = 12;  // the shortest packet: an ACK

std::string why_wrong_rekey(const DomainConfig& c) {
  if (c.rekey.mask == 0) return c.rekey.shift == 0 ? "" : "rekey: a shift without a mask";
  if (c.mode != Mode::kCluster) return "rekey: only cluster mode renews keys by the counter";
  if (c.rekey.mask > kCounterMax)
    return "rekey: the mask reaches beyond the 48 bits of the counter";
  if (c.rekey.shift != static_cast<unsigned>(std::countr_zero(c.rekey.mask)))
    return "rekey: the shift must be the index of the lowest bit of the mask";
  if ((c.rekey.mask >> c.rekey.shift) > 0xffff'ffffu)
    return "rekey: more than 32 bits between the lowest and the highest bit of the mask";
  return "";
}

bool is_weak(const Key& key) {
  const auto bytes = key.bytes();
  return std::all_of(bytes.begin(), bytes.end(), [&](std::uint8_t b) { return b == bytes[0]; });
}

std::string why_wrong_keys(const DomainConfig& c) {
  if (c.keys.size() > 2) return "keys: at most one for each AN";
  for (const KeyConfig& key : c.keys) {
    if (is_weak(key.key)) return "keys: all bytes are equal";
    if (key.mask.has_value() != (c.role == Role::kClient))
      return "keys: a client's key has an ivmask, and no other key has one";
  }
  if (c.keys.size() == 2 && c.keys[0].an == c.keys[1].an) return "keys: two for one AN";
  if (c.keys.size() == 2 && c.keys[0].key == c.keys[1].key)
    return "keys: the same key for both ANs";
  const bool has_tx = std::any_of(c.keys.begin(), c.keys.end(),
                                  [&](const KeyConfig& k) { return k.an == c.tx_an; });
  if (!c.keys.empty() && !has_tx) return "tx_an: there is no key for this AN";
  return "";
}

/// Towards one client, all servers and the client itself send under one key and one IV prefix: the top bit of the counter tells the
/// client from servers, the others tell servers apart. [TSS 5]
std::string why_wrong_partition(const DomainConfig& c) {
  if (c.partition.bits > kMaxPartitionBits) return "tsc_partition: more than 16 bits";
  if (c.partition.id >> c.partition.bits != 0) return "tsc_partition: the id does not fit the bits";
  if (c.mode != Mode::kServer || !c.ssi_mode) return "";
  if (c.partition.bits == 0)
    return "tsc_partition: is missing, and each server with SSI needs one of its own: \"uet-keys "
           "install --server-id N\"";
  const bool has_top_bit = (c.partition.id >> (c.partition.bits - 1)) == 1;
  if (has_top_bit == (c.role == Role::kServer)) return "";
  return has_top_bit ? "tsc_partition: the top bit of the id is for servers, and this is a client"
                     : "tsc_partition: the top bit of a server's id has to be set";
}

std::string why_wrong_members(const DomainConfig& c) {
  if (!std::is_sorted(c.members.begin(), c.members.end())) return "members: not sorted";
  if (!needs_members(c)) return "";
  std::vector<net::FabricAddress> addresses;
  for (const Member& m : c.members) addresses.push_back(m.address);
  std::sort(addresses.begin(), addresses.end());
  const auto twice = std::adjacent_find(addresses.begin(), addresses.end());
  if (twice == addresses.end()) return "";
  return "members: " + twice->to_string() + " stands twice: at a server, an address has one SSI";
}

}  // namespace

bool needs_members(const DomainConfig& c) {
  return c.role == Role::kServer && c.ssi_mode;
}

std::string why_unusable(const DomainConfig& c) {
  if (c.sdi > kSdiMax) return "sdi: larger than 0xffffff";
  if ((c.mode == Mode::kServer) != (c.role != Role::kPeer))
    return "role: server and client go with mode server, peer with the others";
  if (std::string why = why_wrong_rekey(c); !why.empty()) return why;
  if (std::string why = why_wrong_keys(c); !why.empty()) return why;
  if (std::string why = why_wrong_partition(c); !why.empty()) return why;
  if (c.counter_fatal > kCounterMax) return "limits: counter_fatal is larger than 48 bits";
  if (c.max_sources == 0 || c.max_sources > kMaxSources)
    return "limits: max_sources is not between 1 and 1048576";
  if (c.auth_fail_threshold == 0) return "limits: auth_fail_threshold is 0";
  if (c.clear_bytes > kMaxClearBytes) return "offsets: coff_extra is larger than 12";
  // A power of two, so that places go on across the end of the number space.
  if (c.replay_window != 0 && (c.replay_window < 64 || c.replay_window > kMaxReplayWindow ||
                               !std::has_single_bit(c.replay_window)))
    return "policy: replay_window is not 0 or a power of two from 64 to 1048576";
  if (std::uint64_t{c.max_sources} * c.replay_window > kMaxWindowBits)
    return "policy: replay_window times limits.max_sources is larger than 2^31";
  return why_wrong_members(c);
}

std::string why_unusable_at(const DomainConfig& c, const net::FabricAddress& address) {
  if (needs_members(c) && c.members.empty())
    return "members: there is none, and a server with SSI believes those in the list alone: list "
           "the SSI and address of each client, as \"uet-keys derive\" does";
  if (c.ssi_mode || address.is_v4() || c.mode == Mode::kCluster) return "";
  // All senders would share key and IV prefix. [TSS 5]
  return "a domain in direct or server mode without SSI cannot be used with IPv6 (endpoint " +
         address.to_string() + "): give each node an SSI, or use cluster mode";
}

}  // namespace uet::tss
