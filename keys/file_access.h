/// Files that hold secrets, and the rules for who may touch them. [TSS 13.2]
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "keys/secret_text.h"
#include "lib/base/result.h"

namespace uet::keys {

/// What tells one version of a file from another.
struct FileVersion {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t changed_ns = 0;
  bool operator==(const FileVersion&) const = default;
};
std::optional<FileVersion> version_of(const std::string& path);

struct SecretFile {
  SecretText text;
  FileVersion version;
};

/// Reads a file that only its owner, who is the caller or root, may read. Refuses links, other
/// owners, other readers, directories in which others could replace it, and more than 1 MiB.
base::Result<SecretFile, std::string> read_secret(const std::string& path);

/// Writes `text` beside `path`, mode 0600, and renames it there when it is on disk. Without
/// `may_replace` an existing file stays. Empty, or what went wrong.
std::string write_secret(const std::string& path, const SecretText& text, bool may_replace);
/// Removes what processes of this user that were killed in write_secret() left beside `path`: it has the same secrets.
void remove_unfinished(const std::string& path);

/// Why an open file must not have secrets, or what guards them, written to it: it is not regular, not the caller's or root's, can be read
/// or written by others, or has a second name. Empty when it may.
std::string why_not_private(int fd);
/// Why a folder must not hold such files: it is not the caller's or root's, or others can write in it. Empty when it may.
std::string why_not_own_folder(const std::string& folder);

/// The folder that a path is in.
std::string folder_of(const std::string& path);
/// Waits until the names in the folder are on disk; false when that cannot be known.
bool sync_folder(const std::string& folder);

}  // namespace uet::keys
