/// One process per fabric address: a lock file named after the address.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "lib/net/fabric_address.h"

namespace uet::provider {

/// Holds the lock until destroyed. The file stays: removing it would let two processes lock two
/// different files.
class AddressLock {
 public:
  AddressLock() = default;
  AddressLock(AddressLock&& other) noexcept;
  AddressLock& operator=(AddressLock&& other) noexcept;
  ~AddressLock();

  /// Nothing when another process holds the address; `holder` is then its pid, or 0 when unknown.
  static std::optional<AddressLock> acquire(net::FabricAddress address, pid_t& holder);

 private:
  explicit AddressLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace uet::provider
