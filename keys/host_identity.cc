#include "keys/host_identity.h"

#include <cstdio>

#include "keys/file_access.h"

namespace uet::keys {
namespace {

constexpr const char* kIdentityRecord = "uet-host/1 ssi %08x tsc_partition %u %04x\n";

std::string path_of(const std::string& state_folder, std::uint32_t sdi) {
  char name[16];
  std::snprintf(name, sizeof name, "%06x.host", sdi);
  return state_folder + "/" + name;
}

SecretText text_of(const HostIdentity& h) {
  char text[64];
  std::snprintf(text, sizeof text, kIdentityRecord, h.ssi, h.partition.bits, h.partition.id);
  return text;
}

}  // namespace

bool needs_identity(const tss::DomainConfig& domain) {
  return domain.ssi_mode && domain.role != tss::Role::kClient;
}

HostIdentity identity_in(const tss::DomainConfig& domain) {
  return {.ssi = domain.ssi, .partition = domain.partition};
}

base::Result<std::optional<HostIdentity>, std::string> recorded_identity(
    const std::string& state_folder, std::uint32_t sdi) {
  const std::string path = path_of(state_folder, sdi);
  if (!version_of(path)) return std::optional<HostIdentity>();
  const auto file = read_secret(path);
  if (!file) return file.error();
  HostIdentity h;
  const bool is_read = std::sscanf(file->text.c_str(), kIdentityRecord, &h.ssi, &h.partition.bits,
                                   &h.partition.id) == 3;
  if (!is_read || text_of(h) != file->text)
    return path + ": is damaged: \"uet-keys install\" with --ssi or --server-id writes it anew";
  return std::optional(h);
}

std::string record_identity(const std::string& state_folder, std::uint32_t sdi,
                            const HostIdentity& identity) {
  const std::string path = path_of(state_folder, sdi);
  // Endpoints that use the other one would not start any more.
  if (const auto before = recorded_identity(state_folder, sdi);
      before && *before && **before != identity)
    return path +
           ": this host has another SSI or server id in that domain. Two at once need a state "
           "folder each (--state-dir); to change it, remove that file";
  return write_secret(path, text_of(identity), true);
}

std::string why_not_this_host(const std::string& state_folder, const tss::DomainConfig& domain) {
  if (!needs_identity(domain)) return "";
  const auto recorded = recorded_identity(state_folder, domain.sdi);
  if (!recorded) return recorded.error();
  if (!*recorded || **recorded == identity_in(domain)) return "";
  return "has the SSI or server id of another host: it was copied, and \"uet-keys install\" puts "
         "this host's own into it";
}

}  // namespace uet::keys
