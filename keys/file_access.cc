#include "keys/file_access.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "keys/system_random.h"

namespace uet::keys {
namespace {

constexpr std::uint64_t kMaxBytes = 1u << 20;
/// Between the name of a file and digits that are drawn: what write_secret() has not finished. Before, these were the number of a process.
constexpr std::string_view kUnfinished = ".new.";
constexpr std::size_t kUnfinishedDigits = 16;

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

/// Names beside `path` that write_secret() gave, of this process or another.
std::vector<std::string> unfinished_beside(const std::string& path) {
  const std::string start = path.substr(path.rfind('/') + 1) + std::string(kUnfinished);
  std::vector<std::string> out;
  std::error_code none;
  for (std::filesystem::directory_iterator at(folder_of(path), none), end; !none && at != end;
       at.increment(none)) {
    const std::string name = at->path().filename();
    const std::string digits = name.starts_with(start) ? name.substr(start.size()) : "";
    if (!digits.empty() && digits.size() <= kUnfinishedDigits &&
        digits.find_first_not_of("0123456789abcdef") == std::string::npos)
      out.push_back(folder_of(path) + "/" + name);
  }
  return out;
}

std::string random_digits() {
  std::array<std::uint8_t, kUnfinishedDigits / 2> bytes;
  fill_random(bytes);
  std::string out;
  for (const std::uint8_t b : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", b);
    out += two;
  }
  return out;
}

/// Where the file system can, in one step: a crash between link() and unlink() leaves two names.
bool name_without_replacing(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  return ::link(from.c_str(), to.c_str()) == 0 && ::unlink(from.c_str()) == 0;
}

/// What to do about a file with two names.
std::string about_second_name(const std::string& path, const struct stat& s) {
  for (const std::string& name : unfinished_beside(path))
    if (const auto other = version_of(name);
        other && other->inode == s.st_ino && other->device == s.st_dev)
      return ": left by a command that was killed; remove " + name;
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
  if (S_ISREG(s.st_mode) && s.st_nlink > 1) why += about_second_name(path, s);
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

void remove_unfinished(const std::string& path) {
  for (const std::string& name : unfinished_beside(path)) {
    // For writing: flock() on a network file system wants that.
    const Descriptor d(::open(name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    struct stat s {};
    if (d.fd < 0 || ::fstat(d.fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_uid != ::geteuid())
      continue;
    // Short ones are what the version before gave, or a copy that a person made.
    const bool is_ours = name.size() - (name.rfind('.') + 1) == kUnfinishedDigits;
    if (!is_ours && s.st_nlink == 1) continue;
    if (::flock(d.fd, LOCK_EX | LOCK_NB) == 0) ::unlink(name.c_str());
  }
}

std::string write_secret(const std::string& path, const SecretText& text, bool may_replace) {
  remove_unfinished(path);
  const std::string beside = path + std::string(kUnfinished) + random_digits();
  const Descriptor d(
      ::open(beside.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (d.fd < 0) return beside + ": " + reason();
  // Until it has its name, so that no other command takes it for what a crash left. Without locks there, none is removed.
  (void)::flock(d.fd, LOCK_EX | LOCK_NB);
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
  const bool is_named = may_replace ? ::rename(beside.c_str(), path.c_str()) == 0
                                    : name_without_replacing(beside, path);
  if (!is_named) {
    const std::string why = reason();
    ::unlink(beside.c_str());
    return path + ": " + why;
  }
  if (!sync_folder(folder_of(path))) return folder_of(path) + ": cannot be written to disk";
  return "";
}

}  // namespace uet::keys
