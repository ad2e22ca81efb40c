/// Which keys of a key file this host has counters for, and in which folder: beside the file, in FILE.prepared. Counter state that was lost
/// is so told from a key that is new here. [TSS 7.6]
#pragma once

#include <map>
#include <optional>
#include <string>

#include "lib/base/result.h"
#include "tss/kdf.h"

namespace uet::keys {

class PreparedKeys {
 public:
  /// What stands beside the file at `path`; nothing where no command wrote it yet.
  static base::Result<PreparedKeys, std::string> read(const std::string& path);

  bool has(const tss::Fingerprint& key) const { return folders_.contains(key); }
  /// The state folder of a key that is there, absolute; else empty.
  std::string folder_of(const tss::Fingerprint& key) const;
  void add(const tss::Fingerprint& key, const std::string& state_folder);
  /// What `before` says, on disk: nothing came of what was added since. Empty, or what went wrong.
  std::string go_back_to(const PreparedKeys& before);
  /// On disk, when add() changed something. Empty, or what went wrong.
  std::string write();

 private:
  explicit PreparedKeys(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::map<tss::Fingerprint, std::string> folders_;
  bool is_changed_ = false;
};

}  // namespace uet::keys
