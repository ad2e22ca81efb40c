/// Who this host is in a secure domain with SSI: recorded beside the counter state, since a key file that was copied says who the host
/// is that it came from. [TSS 5]
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/result.h"
#include "tss/domain_config.h"

namespace uet::keys {

/// What must differ between two hosts of a domain, or they send under one key and IV.
struct HostIdentity {
  std::uint32_t ssi = 0;  ///< 0 at a server
  tss::CounterPartition partition;
  bool operator==(const HostIdentity&) const = default;
};

/// False without SSI, where the address says who a host is, and of a client, whose file is made for it alone.
bool needs_identity(const tss::DomainConfig& domain);
HostIdentity identity_in(const tss::DomainConfig& domain);

/// What is recorded for the domain `sdi` in the state folder; nothing when that is nothing.
base::Result<std::optional<HostIdentity>, std::string> recorded_identity(
    const std::string& state_folder, std::uint32_t sdi);
/// Records it, on disk, unless another one is recorded. Empty, or what went wrong. The folder is there.
std::string record_identity(const std::string& state_folder, std::uint32_t sdi,
                            const HostIdentity& identity);
/// Why endpoints must not use a domain that was read from a file: the file is another host's. Empty when they may, also where nothing is
/// recorded.
std::string why_not_this_host(const std::string& state_folder, const tss::DomainConfig& domain);

/// The counters of one of several servers. All of a domain number themselves with as many bits.
inline constexpr unsigned kServerPartitionBits = 5;
inline constexpr std::uint32_t kMaxServers = 1u << (kServerPartitionBits - 1);
constexpr tss::CounterPartition partition_of_server(std::uint32_t server_id) {
  return {.bits = kServerPartitionBits, .id = kMaxServers | server_id};
}

}  // namespace uet::keys
