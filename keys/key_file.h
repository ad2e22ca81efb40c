/// The key file, `uet-sdkdb/1`: secure domains and their keys as JSON. [TSS 13.2]
///
/// All or nothing: a file with one unknown field, one wrong digit or one contradiction gives no domain
/// at all, and a sentence that names the field and never a digit of a key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "keys/file_access.h"
#include "lib/base/result.h"
#include "tss/domain_config.h"

namespace uet::keys {

inline constexpr std::string_view kFormat = "uet-sdkdb/1";

struct KeyFile {
  std::string state_folder;
  std::vector<tss::DomainConfig> domains;
  FileVersion version;
};

/// What stands in `text`. A relative state_dir begins at `folder`.
base::Result<KeyFile, std::string> parse_key_file(const SecretText& text,
                                                  const std::string& folder);
/// The same of a file on disk, with the rules of read_secret().
base::Result<KeyFile, std::string> read_key_file(const std::string& path);

/// The domain of a job: the one that lists it, or the only one when that lists no jobs.
base::Result<tss::DomainConfig, std::string> domain_for_job(const KeyFile& file, std::uint32_t job);

/// Digits for N bytes, and bytes for digits; false unless there are exactly 2 N.
SecretText to_hex(std::span<const std::uint8_t> bytes);
bool from_hex(std::string_view text, std::span<std::uint8_t> out);

}  // namespace uet::keys
