#include "lib/net/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "lib/net/forked_child.h"

namespace uet::net {
namespace {

enum class Opened : std::uint8_t { kYes, kInUse, kMoved, kNo };

/// Its writer holds a lock on it, which ends with the process.
Opened try_open(const std::string& path, int& fd) {
  fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return Opened::kNo;
  struct stat opened {
  }, named{};
  if (::fstat(fd, &opened) != 0 || !S_ISREG(opened.st_mode)) return Opened::kYes;
  const bool is_in_use = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  // Its writer may have given it another name after it was opened here.
  const bool is_moved =
      !is_in_use && (::stat(path.c_str(), &named) != 0 || named.st_ino != opened.st_ino ||
                     named.st_dev != opened.st_dev);
  if (!is_in_use && !is_moved && ::ftruncate(fd, 0) == 0) return Opened::kYes;
  const int why = errno;
  ::close(fd);
  errno = why;
  return is_in_use ? Opened::kInUse : (is_moved ? Opened::kMoved : Opened::kNo);
}

/// The `n`th name, from 1.
std::string numbered(const std::string& path, unsigned n) {
  if (n == 1) return path;
  const auto name = path.find_last_of('/') + 1;
  auto dot = path.find_last_of('.');
  if (dot == std::string::npos || dot <= name) dot = path.size();
  return path.substr(0, dot) + '-' + std::to_string(n) + path.substr(dot);
}

}  // namespace

std::string with_process_id(std::string path) {
  const std::string id = std::to_string(getpid());
  for (auto at = path.find("%p"); at != std::string::npos; at = path.find("%p", at + id.size()))
    path.replace(at, 2, id);
  return path;
}

std::optional<OutputFile> open_output_file(const std::string& path) {
  constexpr unsigned kMostNames = 1000, kMostMoves = 100;
  const std::string first = with_process_id(path);
  unsigned moves = 0;
  for (unsigned n = 1; n <= kMostNames;) {
    OutputFile out{.file = nullptr, .path = numbered(first, n)};
    int fd = -1;
    switch (try_open(out.path, fd)) {
      case Opened::kYes:
        out.file = ::fdopen(fd, "w");
        if (out.file == nullptr) {
          ::close(fd);
          return std::nullopt;
        }
        return out;
      case Opened::kMoved:
        if (++moves <= kMostMoves) break;
        errno = EBUSY;
        return std::nullopt;
      case Opened::kInUse:
        ++n;
        break;
      case Opened::kNo:
        return std::nullopt;
    }
  }
  errno = EBUSY;
  return std::nullopt;
}

void abandon_in_child(std::FILE* file) {
  if (file != nullptr) make_null(::fileno(file));
}

}  // namespace uet::net
