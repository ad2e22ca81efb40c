/// What a child made by fork() does with descriptors that only its parent may use.
#pragma once

#include <fcntl.h>
#include <unistd.h>

namespace uet::net {

/// `fd` becomes /dev/null: whatever it stood for is released, and the number stays in use, so that what the child opens later
/// is not taken for it. Safe between fork() and exec().
inline void make_null(int fd) {
  if (fd < 0) return;
  int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) {
    // A process that has no descriptor left gets this number again.
    ::close(fd);
    null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || null == fd) return;
  }
  ::dup3(null, fd, O_CLOEXEC);
  ::close(null);
}

}  // namespace uet::net
