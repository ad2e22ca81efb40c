/// One command at a time changes a key file. [TSS 13.2]
#pragma once

#include <cstdint>
#include <string>

namespace uet::keys {

/// Held from before a file is read until its new version is there. Readers need none: a version replaces another in one step.
class FileLock {
 public:
  enum class Of : std::uint8_t { kFile, kNewFile };
  /// Waits for other commands on the file at `path`, by a lock on FILE.lock beside it, and removes what killed ones left. Where the folder
  /// cannot be written, so that no version can follow, nothing is locked; nor where there is no such file of this user (but for a new one),
  /// which the command says.
  explicit FileLock(const std::string& path, Of of = Of::kFile);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// Why the file must not be changed; empty when it may.
  const std::string& error() const { return error_; }

 private:
  int fd_ = -1;
  std::string error_;
};

}  // namespace uet::keys
