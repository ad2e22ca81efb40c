/// The socket on which a memif server is reached.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "lib/dpdk/device_spec.h"

namespace uet::dpdk {

/// Where a socket is: a file, or a name in the network namespace.
struct SocketPlace {
  std::string path;
  bool is_abstract = true;

  static SocketPlace of(const DeviceSpec& spec);
  bool operator<(const SocketPlace& other) const {
    return is_abstract != other.is_abstract ? is_abstract : path < other.path;
  }
};

/// A connection to `place`, or -1.
int connect_to(const SocketPlace& place);

/// Closed, it leaves no file.
class MemifListener {
 public:
  /// Null: `error` says who has the place. A file that a dead process left is removed.
  static std::unique_ptr<MemifListener> open(const SocketPlace& place, std::string& error);
  ~MemifListener();
  MemifListener(const MemifListener&) = delete;
  MemifListener& operator=(const MemifListener&) = delete;

  int fd() const { return fd_; }
  /// The next client, or -1.
  int accept() const;
  /// As the driver's arguments owner-uid and owner-gid say.
  bool give_to(const DeviceSpec& spec) const;

 private:
  MemifListener(SocketPlace place, int fd);

  const SocketPlace place_;
  const int fd_;
  ino_t file_ = 0;
};

}  // namespace uet::dpdk
