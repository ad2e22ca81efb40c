#include "keys/counter_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "keys/file_access.h"

namespace uet::keys {
namespace {

/// A file holds two records in turn, each in a sector of its own: while one is written the other
/// says what was true before. The valid one with more counters is the newer.
constexpr std::size_t kRecord = 48, kStride = 512;
constexpr std::string_view kRecordFormat = "uet-tsc/1 ";

std::string hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const std::uint8_t b : bytes) {
    out += kDigits[b >> 4];
    out += kDigits[b & 15];
  }
  return out;
}

std::string hex(std::uint64_t n) {
  std::array<std::uint8_t, 8> bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(n >> (56 - 8 * i));
  return hex(bytes);
}

/// "uet-tsc/1 <16 digits> live <16 digits: complement>" and a line end.
std::string record_of(const CounterState::Status& s) {
  std::string out = std::string(kRecordFormat) + hex(s.reserved) +
                    (s.is_retired ? " dead " : " live ") + hex(~s.reserved).substr(0, 15) + "\n";
  UET_CHECK(out.size() == kRecord);
  return out;
}

std::optional<CounterState::Status> parse_record(std::string_view text) {
  if (text.size() < kRecord || !text.starts_with(kRecordFormat)) return std::nullopt;
  CounterState::Status s;
  const char* from = text.data() + kRecordFormat.size();
  if (std::from_chars(from, from + 16, s.reserved, 16).ptr != from + 16) return std::nullopt;
  s.is_retired = text.substr(kRecordFormat.size() + 16, 6) == " dead ";
  if (text.substr(0, kRecord) != record_of(s)) return std::nullopt;
  return s;
}

struct LockedFile {
  /// Also where others could replace the file or change it, which could make counters begin anew, and where it cannot be locked: `why`
  /// says so then. `lock`: as for flock().
  LockedFile(const std::string& path, int flags, int lock = LOCK_EX)
      : fd(::open(path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600)) {
    if (fd < 0) return;
    if (why = why_not_private(fd); !why.empty()) why = path + ": " + why;
    const std::string folder = folder_of(path);
    if (const std::string other = why_not_own_folder(folder); !other.empty())
      why = folder + ": " + other;
    while (::flock(fd, lock) != 0) {
      if (errno == EINTR) continue;
      why = path + ": cannot be locked: " + std::strerror(errno);
      break;
    }
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  ~LockedFile() {
    if (fd < 0) return;
    ::flock(fd, LOCK_UN);  // a child made by fork() in between has the descriptor, too
    ::close(fd);
  }

  /// The newer valid record, and which of the two places it is in.
  std::optional<CounterState::Status> read(int& place) const {
    std::optional<CounterState::Status> newest;
    for (int i = 0; i < 2; ++i) {
      std::array<char, kRecord> text{};
      const ssize_t n = ::pread(fd, text.data(), text.size(), static_cast<off_t>(i * kStride));
      if (n != static_cast<ssize_t>(text.size())) continue;
      const auto s = parse_record({text.data(), text.size()});
      if (!s || (newest && (newest->is_retired || s->reserved < newest->reserved))) continue;
      newest = s;
      place = i;
    }
    return newest;
  }
  bool write(const CounterState::Status& s, int place) const {
    const std::string text = record_of(s);
    return ::pwrite(fd, text.data(), text.size(), static_cast<off_t>(place * kStride)) ==
               static_cast<ssize_t>(text.size()) &&
           ::fsync(fd) == 0;
  }
  int fd;
  std::string why;
};

bool make_folder(const std::string& folder) {
  struct stat s {};
  if (::stat(folder.c_str(), &s) == 0) return S_ISDIR(s.st_mode);
  if (!make_folder(folder_of(folder))) return false;
  return ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST;
}

}  // namespace

std::string short_name(const tss::Fingerprint& key) {
  return hex(std::span(key).first(4));
}

std::string CounterState::path_of(const tss::Fingerprint& key) const {
  return folder_ + "/" + hex(std::span(key).first(16)) + ".tsc";
}

bool CounterState::create(const tss::Fingerprint& key, std::string& error) {
  if (!make_folder(folder_)) {
    error = folder_ + ": cannot be made: " + std::strerror(errno);
    return false;
  }
  const LockedFile file(path_of(key), O_RDWR | O_CREAT);
  if (file.fd < 0) {
    error = path_of(key) + ": " + std::strerror(errno);
    return false;
  }
  if (error = file.why; !error.empty()) return false;
  int place = 0;
  if (file.read(place)) return false;
  if (::lseek(file.fd, 0, SEEK_END) != 0) {
    error = why_damaged(key);
    return false;
  }
  if (!file.write({}, 0) || !sync_folder(folder_)) {
    error = path_of(key) + ": " + std::strerror(errno);
    return false;
  }
  return true;
}

base::Result<tss::CounterRange, std::string> CounterState::change(const tss::Fingerprint& key,
                                                                  std::uint64_t count,
                                                                  bool retire) {
  const LockedFile file(path_of(key), O_RDWR);
  if (file.fd < 0) return why_closed(key);
  if (!file.why.empty()) return file.why;
  int place = 0;
  const auto before = file.read(place);
  if (!before) return why_damaged(key);
  if (before->is_retired) return "key " + short_name(key) + " was retired on this host";
  const std::uint64_t left = tss::kCounterMax - std::min(before->reserved, tss::kCounterMax);
  const Status after{.reserved = before->reserved + std::min(count, left), .is_retired = retire};
  if (!file.write(after, 1 - place)) return path_of(key) + ": " + std::strerror(errno);
  return tss::CounterRange{before->reserved, after.reserved};
}

std::string CounterState::retire(const tss::Fingerprint& key) {
  const auto changed = change(key, 0, true);
  return changed ? "" : changed.error();
}

base::Result<tss::CounterRange, std::string> CounterState::reserve(const tss::Fingerprint& key,
                                                                   std::uint64_t count) {
  return change(key, count, false);
}

/// The record with more counters is the newer one, so both say less in the end. The older one goes first: until both are there, the
/// state is what it was.
bool CounterState::give_back(const tss::Fingerprint& key, tss::CounterRange unused) {
  const LockedFile file(path_of(key), O_RDWR, LOCK_EX | LOCK_NB);
  if (file.fd < 0 || !file.why.empty()) return false;
  int place = 0;
  const auto before = file.read(place);
  const std::uint64_t first = std::max<std::uint64_t>(unused.first, 1);
  if (!before || before->is_retired || before->reserved != unused.end || first >= unused.end)
    return false;
  const Status after{.reserved = first};
  return file.write(after, 1 - place) && file.write(after, place);
}

base::Result<CounterState::Status, std::string> CounterState::status(
    const tss::Fingerprint& key) const {
  const LockedFile file(path_of(key), O_RDONLY, LOCK_SH);
  if (file.fd < 0) return why_closed(key);
  if (!file.why.empty()) return file.why;
  int place = 0;
  const auto s = file.read(place);
  if (!s) return why_damaged(key);
  return *s;
}

std::string CounterState::why_closed(const tss::Fingerprint& key) const {
  if (errno != ENOENT) return path_of(key) + ": " + std::strerror(errno);
  return "there is no counter state for key " + short_name(key) + " in " + folder_ +
         ": run uet-keys install on this host";
}

std::string CounterState::why_damaged(const tss::Fingerprint& key) const {
  return path_of(key) +
         " is damaged: no counters can be taken for this key any more; make a new key (uet-keys "
         "rotate)";
}

}  // namespace uet::keys
