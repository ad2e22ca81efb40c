#include "lib/dpdk/xdp_sockets.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

namespace uet::dpdk {

namespace {

/// Calls `visit` with descriptor and inode of each.
void each_xdp_socket(const std::function<void(int, ino_t)>& visit) {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    int domain = 0;
    socklen_t size = sizeof domain;
    struct stat info {};
    if (fd != 0 && getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_XDP &&
        fstat(fd, &info) == 0)
      visit(fd, info.st_ino);
  }
  closedir(folder);
}

bool holds(const std::vector<ino_t>& list, ino_t inode) {
  return std::find(list.begin(), list.end(), inode) != list.end();
}

}  // namespace

std::vector<ino_t> xdp_sockets() {
  return xdp_sockets_since({});
}

std::vector<ino_t> xdp_sockets_since(const std::vector<ino_t>& before) {
  std::vector<ino_t> found;
  each_xdp_socket([&](int, ino_t inode) {
    if (!holds(before, inode)) found.push_back(inode);
  });
  return found;
}

void close_xdp_sockets(const std::vector<ino_t>& sockets) {
  if (sockets.empty()) return;
  std::vector<int> left;
  each_xdp_socket([&](int fd, ino_t inode) {
    if (holds(sockets, inode)) left.push_back(fd);
  });
  for (const int fd : left) close(fd);
}

}  // namespace uet::dpdk
