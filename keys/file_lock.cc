#include "keys/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "keys/file_access.h"

namespace uet::keys {

FileLock::FileLock(const std::string& path, Of of) {
  struct stat s {};
  const bool is_there = ::lstat(path.c_str(), &s) == 0;
  if (is_there ? s.st_uid != ::geteuid() : of == Of::kFile) return;
  const std::string name = path + ".lock";
  fd_ = ::open(name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  if (fd_ < 0) {
    const std::string why = std::strerror(errno);
    if (::faccessat(AT_FDCWD, folder_of(path).c_str(), W_OK, AT_EACCESS) == 0)
      error_ = name + ": " + why;
    return;
  }
  while (::flock(fd_, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    error_ = name + ": cannot be locked: " + std::strerror(errno);
    return;
  }
  remove_unfinished(path);
}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  ::flock(fd_, LOCK_UN);
  ::close(fd_);
}

}  // namespace uet::keys
