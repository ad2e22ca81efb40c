// Takes the place of lstat() in the program it is linked into.
#include "tests/keys/slow_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "lib/base/check.h"

namespace uet::keys::test {
namespace {

std::atomic<int> gate{-1};  ///< reading end of a pipe; a look waits for its end
std::atomic<int> stuck{0};
int writer = -1;

}  // namespace

StalledLooks::StalledLooks() {
  int ends[2];
  UET_CHECK(::pipe(ends) == 0);
  writer = ends[1];
  gate = ends[0];
}

StalledLooks::~StalledLooks() {
  const int reader = gate.exchange(-1);
  ::close(writer);
  while (stuck != 0) ::usleep(1000);
  ::close(reader);
}

void StalledLooks::await_one() const {
  while (stuck == 0) ::usleep(1000);
}

}  // namespace uet::keys::test

extern "C" int lstat(const char* path, struct stat* s) noexcept {
  using namespace uet::keys::test;
  ++stuck;
  char end = 0;
  if (const int at = gate; at >= 0) (void)!::read(at, &end, 1);
  --stuck;
  return ::fstatat(AT_FDCWD, path, s, AT_SYMLINK_NOFOLLOW);
}
