/// The af_xdp driver forgets to close its socket, and an interface has room for one only.
#pragma once

#include <sys/types.h>

#include <vector>

namespace uet::dpdk {

/// The AF_XDP sockets of this process, by inode.
std::vector<ino_t> xdp_sockets();

/// Those of them that are not in `before`.
std::vector<ino_t> xdp_sockets_since(const std::vector<ino_t>& before);

/// Closes those of `sockets` that are still open.
void close_xdp_sockets(const std::vector<ino_t>& sockets);

}  // namespace uet::dpdk
