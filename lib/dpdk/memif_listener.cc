#include "lib/dpdk/memif_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace uet::dpdk {

namespace {

// Clients come again every second while our process is stopped, and the driver of one that finds no place waits in connect().
constexpr int kBacklog = 1024;

struct Address {
  sockaddr_un name{};
  socklen_t size = sizeof name;

  explicit Address(const SocketPlace& place) {
    name.sun_family = AF_UNIX;
    const std::size_t at = place.is_abstract ? 1 : 0;
    place.path.copy(name.sun_path + at, sizeof name.sun_path - 1 - at);
    if (place.is_abstract)
      size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + place.path.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

enum class Tenant { kNone, kDead, kAlive, kNoSocket };

/// Asked with a socket of another type than memif's: a listener refuses it for that reason and hears nothing of it.
Tenant tenant_of(const SocketPlace& place) {
  struct stat info {};
  if (lstat(place.path.c_str(), &info) != 0) return Tenant::kNone;
  if (!S_ISSOCK(info.st_mode)) return Tenant::kNoSocket;
  const Address address(place);
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Tenant::kAlive;
  const int result = connect(fd, address.get(), address.size);
  const bool is_dead = result != 0 && errno == ECONNREFUSED;
  close(fd);
  return is_dead ? Tenant::kDead : Tenant::kAlive;
}

bool vacate(const SocketPlace& place, std::string& error) {
  const std::string& path = place.path;
  switch (tenant_of(place)) {
    case Tenant::kNone:
      return true;
    case Tenant::kDead:
      if (unlink(path.c_str()) == 0 || errno == ENOENT) return true;
      error = path +
              " was left by a process that is gone and cannot be removed: " + std::strerror(errno);
      return false;
    case Tenant::kAlive:
      error = "another process listens on " + path + "; give this server a socket= of its own";
      return false;
    case Tenant::kNoSocket:
      error = path + " is there already and is no socket; name another one with socket=";
      return false;
  }
  return false;
}

ino_t inode_of(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

SocketPlace SocketPlace::of(const DeviceSpec& spec) {
  const std::string path = spec.argument("socket");
  return {.path = path.empty() ? "/run/memif.sock" : path,
          .is_abstract = spec.argument("socket-abstract") != "no"};
}

int connect_to(const SocketPlace& place) {
  const Address address(place);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && connect(fd, address.get(), address.size) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

std::unique_ptr<MemifListener> MemifListener::open(const SocketPlace& place, std::string& error) {
  const Address address(place);
  if (place.path.size() + 1 >= sizeof address.name.sun_path) {
    error = "socket=" + place.path + " is longer than a socket's name may be";
    return nullptr;
  }
  if (!place.is_abstract && !vacate(place, error)) return nullptr;
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && bind(fd, address.get(), address.size) == 0 && listen(fd, kBacklog) == 0)
    return std::unique_ptr<MemifListener>(new MemifListener(place, fd));
  error = errno == EADDRINUSE ? "another process listens on " + place.path +
                                    "; give this server a socket= of its own"
                              : "cannot listen on " + place.path + ": " + std::strerror(errno);
  if (fd >= 0) close(fd);
  return nullptr;
}

MemifListener::MemifListener(SocketPlace place, int fd)
    : place_(std::move(place)), fd_(fd), file_(place_.is_abstract ? 0 : inode_of(place_.path)) {}

MemifListener::~MemifListener() {
  if (file_ != 0 && inode_of(place_.path) == file_) unlink(place_.path.c_str());
  close(fd_);
}

int MemifListener::accept() const {
  return accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

bool MemifListener::give_to(const DeviceSpec& spec) const {
  const std::string uid = spec.argument("owner-uid"), gid = spec.argument("owner-gid");
  if (place_.is_abstract || (uid.empty() && gid.empty())) return true;
  const auto id_of = [](const std::string& text) {
    return text.empty() ? -1u : static_cast<unsigned>(std::strtoul(text.c_str(), nullptr, 10));
  };
  return chown(place_.path.c_str(), id_of(uid), id_of(gid)) == 0;
}

}  // namespace uet::dpdk
