/// One process per fabric address: a lock file named after the address.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "lib/net/fabric_address.h"

namespace uet::provider {

/// Holds the lock until destroyed. The file stays: removing it would let two processes lock two
/// different files.
///
/// The lock belongs to the open file, so a second copy of this library in the process respects it.
class AddressLock {
 public:
  AddressLock() = default;
  AddressLock(AddressLock&& other) noexcept;
  AddressLock& operator=(AddressLock&& other) noexcept;
  ~AddressLock();

  /// Nothing when another process holds the address, or another copy of this library in this process; `holder` is then the process, or 0 when
  /// unknown.
  static std::optional<AddressLock> acquire(net::FabricAddress address, pid_t& holder);
  /// Whether one of these holds it, without taking it; `holder` as above.
  static bool is_held(net::FabricAddress address, pid_t& holder);
  /// In a child made by fork(): the lock is the parent's alone.
  void abandon_in_child();

 private:
  explicit AddressLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace uet::provider
