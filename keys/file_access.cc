#include "keys/file_access.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace uet::keys {
namespace {

constexpr std::uint64_t kMaxBytes = 1u << 20;

/// Closes a descriptor.
struct Descriptor {
  explicit Descriptor(int n) : fd(n) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
};

std::string reason() {
  return std::strerror(errno);
}

FileVersion version_from(const struct stat& s) {
  return {.device = s.st_dev,
          .inode = s.st_ino,
          .size = static_cast<std::uint64_t>(s.st_size),
          .changed_ns = std::int64_t{s.st_ctim.tv_sec} * 1'000'000'000 + s.st_ctim.tv_nsec};
}

/// Why the file that `s` describes must not be trusted with keys; empty when it may.
std::string why_not_private(const struct stat& s) {
  if (!S_ISREG(s.st_mode)) return "is not a regular file";
  if (s.st_uid != ::geteuid() && s.st_uid != 0) return "belongs to another user";
  if ((s.st_mode & 077) != 0) return "can be read or written by others: chmod 600";
  if (s.st_nlink != 1) return "has a second name (hard link)";
  return "";
}

std::string why_not_safe_folder(const std::string& folder) {
  struct stat s {};
  if (::stat(folder.c_str(), &s) != 0) return folder + ": " + reason();
  if ((s.st_mode & 022) != 0 && (s.st_mode & S_ISVTX) == 0)
    return "is in " + folder + ", where others can replace it: chmod go-w";
  if (s.st_uid != ::geteuid() && s.st_uid != 0)
    return "is in " + folder + ", which belongs to another user";
  return "";
}

}  // namespace

std::string why_not_private(int fd) {
  struct stat s {};
  return ::fstat(fd, &s) == 0 ? why_not_private(s) : reason();
}

std::string why_not_own_folder(const std::string& folder) {
  struct stat s {};
  if (::stat(folder.c_str(), &s) != 0) return reason();
  if (!S_ISDIR(s.st_mode)) return "is not a folder";
  if (s.st_uid != ::geteuid() && s.st_uid != 0) return "belongs to another user";
  if ((s.st_mode & 022) != 0) return "can be written by others: chmod 700";
  return "";
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool sync_folder(const std::string& folder) {
  const Descriptor d(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return d.fd >= 0 && ::fsync(d.fd) == 0;
}

std::optional<FileVersion> version_of(const std::string& path) {
  struct stat s {};
  if (::lstat(path.c_str(), &s) != 0) return std::nullopt;
  return version_from(s);
}

base::Result<SecretFile, std::string> read_secret(const std::string& path) {
  const Descriptor d(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (d.fd < 0) {
    if (errno == ELOOP) return path + ": is a symbolic link";
    return path + ": " + reason();
  }
  struct stat s {};
  if (::fstat(d.fd, &s) != 0) return path + ": " + reason();
  std::string why = why_not_private(s);
  if (static_cast<std::uint64_t>(s.st_size) > kMaxBytes) why = "is larger than 1 MiB";
  if (why.empty()) why = why_not_safe_folder(folder_of(path));
  if (!why.empty()) return path + " " + why;

  SecretFile out{.version = version_from(s)};
  out.text.resize(static_cast<std::size_t>(s.st_size));
  std::size_t at = 0;
  while (at < out.text.size()) {
    const ssize_t n = ::read(d.fd, out.text.data() + at, out.text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return path + ": " + reason();
    if (n == 0) break;
    at += static_cast<std::size_t>(n);
  }
  out.text.resize(at);
  return out;
}

std::string write_secret(const std::string& path, const SecretText& text, bool may_replace) {
  const std::string beside = path + ".new." + std::to_string(::getpid());
  {
    const Descriptor d(
        ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (d.fd < 0) return beside + ": " + reason();
    std::size_t at = 0;
    while (at < text.size()) {
      const ssize_t n = ::write(d.fd, text.data() + at, text.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      at += static_cast<std::size_t>(n);
    }
    if (at != text.size() || ::fchmod(d.fd, 0600) != 0 || ::fsync(d.fd) != 0) {
      const std::string why = reason();
      ::unlink(beside.c_str());
      return beside + ": " + why;
    }
  }
  // link() fails where the name is taken; rename() would replace it.
  const int moved =
      may_replace ? ::rename(beside.c_str(), path.c_str()) : ::link(beside.c_str(), path.c_str());
  const std::string why = moved == 0 ? "" : path + ": " + reason();
  if (!may_replace || moved != 0) ::unlink(beside.c_str());
  if (!why.empty()) return why;
  if (!sync_folder(folder_of(path))) return folder_of(path) + ": cannot be written to disk";
  return "";
}

}  // namespace uet::keys
