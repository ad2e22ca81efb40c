#include "lib/dpdk/xdp_left_overs.h"

#include <dirent.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <mutex>

namespace uet::dpdk {

namespace {

const std::string kSocket = "socket:";

/// The line of the kernel's description that begins with `key`; empty when it has none.
std::string line_of(int fd, const std::string& key) {
  std::ifstream in("/proc/self/fdinfo/" + std::to_string(fd));
  for (std::string line; std::getline(in, line);)
    if (line.rfind(key, 0) == 0) return line;
  return "";
}

/// What is behind the descriptor, in words that hold for nothing else; empty when it is none of ours to know.
std::string identity_of(int fd) {
  char target[64] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  if (readlink(link.c_str(), target, sizeof target - 1) <= 0) return "";
  const std::string text = target;
  if (text == "anon_inode:bpf-map") return line_of(fd, "map_id:");
  if (text == "anon_inode:bpf-prog") return line_of(fd, "prog_id:");
  int domain = 0;
  socklen_t size = sizeof domain;
  const bool is_xdp = text.rfind(kSocket, 0) == 0 &&
                      getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
                      domain == AF_XDP;
  return is_xdp ? text : "";
}

void each_descriptor(const std::function<void(int, const std::string&)>& visit) {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    const int fd = std::atoi(entry->d_name);
    const std::string identity = identity_of(fd);
    if (!identity.empty()) visit(fd, identity);
  }
  closedir(folder);
}

bool holds(const XdpDescriptors& list, const std::string& identity) {
  return std::find(list.begin(), list.end(), identity) != list.end();
}

XdpDescriptors descriptors_besides(const XdpDescriptors& known) {
  XdpDescriptors found;
  each_descriptor([&](int, const std::string& identity) {
    if (!holds(known, identity)) found.push_back(identity);
  });
  return found;
}

}  // namespace

XdpDescriptors xdp_descriptors_opened_by(const std::function<void()>& work) {
  static auto* const at_work = new std::mutex;
  const std::lock_guard lock(*at_work);
  const XdpDescriptors before = descriptors_besides({});
  work();
  return descriptors_besides(before);
}

bool close_xdp_descriptors(const XdpDescriptors& descriptors) {
  if (descriptors.empty()) return false;
  std::vector<int> left;
  bool has_socket = false;
  each_descriptor([&](int fd, const std::string& identity) {
    if (!holds(descriptors, identity)) return;
    left.push_back(fd);
    has_socket = has_socket || identity.rfind(kSocket, 0) == 0;
  });
  for (const int fd : left) close(fd);
  return has_socket;
}

}  // namespace uet::dpdk
