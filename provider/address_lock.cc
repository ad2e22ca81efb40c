#include "provider/address_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "lib/net/forked_child.h"

namespace uet::provider {
namespace {

/// Network namespaces have addresses of their own, and often share /tmp.
std::string lock_path(net::FabricAddress address) {
  struct stat ns {};
  const bool known = stat("/proc/self/ns/net", &ns) == 0;
  std::string name = address.to_string();
  std::ranges::replace(name, ':', '-');
  return "/tmp/uet-" + (known ? std::to_string(ns.st_ino) : std::string("0")) + "-" + name +
         ".lock";
}

constexpr int kOpenFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;

int open_lock_file(const std::string& path) {
  // Without O_CREAT first: a sticky /tmp refuses O_CREAT on files of other users.
  int fd = open(path.c_str(), kOpenFlags);
  if (fd < 0) {
    fd = open(path.c_str(), kOpenFlags | O_CREAT, 0666);
    if (fd >= 0) (void)fchmod(fd, 0666);  // whatever the umask says: all users compete
  }
  return fd;
}

struct flock whole_file() {
  struct flock out {};
  out.l_type = F_WRLCK;
  out.l_whence = SEEK_SET;
  return out;
}

pid_t holder_in(int fd) {
  char text[16] = {};
  return pread(fd, text, sizeof text - 1, 0) > 0 ? std::atoi(text) : 0;
}

}  // namespace

AddressLock::AddressLock(AddressLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

AddressLock& AddressLock::operator=(AddressLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

/// Explicitly, since closing alone leaves the lock to a child that was made with the file open and did not run yet.
AddressLock::~AddressLock() {
  if (fd_ < 0) return;
  struct flock whole = whole_file();
  whole.l_type = F_UNLCK;
  (void)fcntl(fd_, F_OFD_SETLK, &whole);
  close(fd_);
}

std::optional<AddressLock> AddressLock::acquire(net::FabricAddress address, pid_t& holder) {
  holder = 0;
  const int fd = open_lock_file(lock_path(address));
  // No place for a lock file: the port itself still refuses an address that is in use.
  if (fd < 0) return AddressLock();
  AddressLock out(fd);
  struct flock whole = whole_file();
  if (fcntl(fd, F_OFD_SETLK, &whole) != 0) {
    holder = holder_in(fd);
    return std::nullopt;
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    // Only the message that names the holder becomes poorer.
  }
  return out;
}

bool AddressLock::is_held(net::FabricAddress address, pid_t& holder) {
  holder = 0;
  const AddressLock file(open(lock_path(address).c_str(), kOpenFlags));
  struct flock whole = whole_file();
  if (file.fd_ < 0 || fcntl(file.fd_, F_OFD_GETLK, &whole) != 0) return false;
  if (whole.l_type == F_UNLCK) return false;
  holder = holder_in(file.fd_);
  return true;
}

void AddressLock::abandon_in_child() {
  net::make_null(fd_);
}

}  // namespace uet::provider
