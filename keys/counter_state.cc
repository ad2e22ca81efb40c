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
#include "tss/tx_counter.h"

namespace uet::keys {
namespace {

/// A file holds two records in turn, each in a sector of its own: while one is written the other
/// says what was true before. The valid one with more counters is the newer.
constexpr std::size_t kRecord = 48, kStride = 512;
constexpr std::string_view kRecordFormat = "uet-tsc/1 ";
/// Behind the records of a key whose counters went to another folder: its name. To those who do not read it the key is retired.
constexpr off_t kMovedAt = 2 * kStride;
constexpr std::string_view kMovedFormat = "uet-tsc/1 moved to ";
constexpr std::size_t kMaxMoved = 8192;
/// How far the newer record is ahead of the older one, at most. See change().
constexpr std::uint64_t kMaxStep = tss::TxCounter::kLargestReservation;

struct Record {
  std::uint64_t reserved = 0;
  bool is_retired = false;
};

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
std::string text_of(const Record& s) {
  std::string out = std::string(kRecordFormat) + hex(s.reserved) +
                    (s.is_retired ? " dead " : " live ") + hex(~s.reserved).substr(0, 15) + "\n";
  UET_CHECK(out.size() == kRecord);
  return out;
}

std::optional<Record> parse_record(std::string_view text) {
  if (text.size() < kRecord || !text.starts_with(kRecordFormat)) return std::nullopt;
  Record s;
  const char* from = text.data() + kRecordFormat.size();
  if (std::from_chars(from, from + 16, s.reserved, 16).ptr != from + 16) return std::nullopt;
  s.is_retired = text.substr(kRecordFormat.size() + 16, 6) == " dead ";
  if (text.substr(0, kRecord) != text_of(s)) return std::nullopt;
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

  /// What the two records say, and how to go on.
  struct Contents {
    Record newest;
    int place = 0;  ///< of it, which is written last
    /// One record is damaged, and was the newer one perhaps: `newest` is as far as that can have been.
    bool is_damaged = false;
  };
  std::optional<Contents> read() const {
    std::array<std::optional<Record>, 2> records;
    std::array<bool, 2> is_absent{};
    for (std::size_t i = 0; i < 2; ++i) {
      std::array<char, kRecord> text{};
      const ssize_t n = ::pread(fd, text.data(), text.size(), static_cast<off_t>(i * kStride));
      is_absent[i] = n == 0;
      if (n == static_cast<ssize_t>(text.size())) records[i] = parse_record({text.data(), kRecord});
    }
    if (records[0] && records[1]) {
      const bool is_first = records[0]->is_retired != records[1]->is_retired
                                ? records[0]->is_retired
                                : records[0]->reserved > records[1]->reserved;
      return Contents{.newest = *records[is_first ? 0 : 1], .place = is_first ? 0 : 1};
    }
    if (!records[0] && !records[1]) return std::nullopt;
    const int place = records[0] ? 0 : 1;
    Record newest = *records[static_cast<std::size_t>(place)];
    // Of a key that is new here, there may be one record so far.
    if (place == 0 && is_absent[1] && newest.reserved == 0 && !newest.is_retired)
      return Contents{.newest = newest};
    newest.reserved +=
        std::min(kMaxStep, tss::kCounterMax - std::min(newest.reserved, tss::kCounterMax));
    return Contents{.newest = newest, .place = place, .is_damaged = true};
  }
  bool write(const Record& s, int place) const {
    return write_at(text_of(s), static_cast<off_t>(place) * static_cast<off_t>(kStride));
  }
  /// `last`: the place that says what was true so far, until the other one is on disk.
  bool write_both(const Record& s, int last) const { return write(s, 1 - last) && write(s, last); }
  bool write_at(const std::string& text, off_t at) const {
    return ::pwrite(fd, text.data(), text.size(), at) == static_cast<ssize_t>(text.size()) &&
           ::fsync(fd) == 0;
  }
  /// The folder that has the counters now; empty when no other has.
  std::string moved_to() const {
    std::string text(kMaxMoved, '\0');
    const ssize_t n = ::pread(fd, text.data(), text.size(), kMovedAt);
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    if (!text.starts_with(kMovedFormat)) return "";
    return text.substr(kMovedFormat.size(), text.find('\n') - kMovedFormat.size());
  }
  bool is_empty() const { return ::lseek(fd, 0, SEEK_END) == 0; }
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

bool CounterState::is_missing(const tss::Fingerprint& key) const {
  struct stat s {};
  if (::lstat(path_of(key).c_str(), &s) != 0) return errno == ENOENT || errno == ENOTDIR;
  return S_ISREG(s.st_mode) &&
         s.st_size == 0;  // a crash came between its name and its first record
}

bool CounterState::create(const tss::Fingerprint& key, std::string& error) {
  return make(key, false, error);
}

bool CounterState::make(const tss::Fingerprint& key, bool is_retired, std::string& error) {
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
  if (file.read()) return false;
  if (!file.is_empty()) {
    error = why_damaged(key);
    return false;
  }
  const Record first{.is_retired = is_retired};
  if (!file.write(first, 0) || (is_retired && !file.write(first, 1)) || !sync_folder(folder_)) {
    error = path_of(key) + ": " + std::strerror(errno);
    return false;
  }
  return true;
}

/// No record is ever more than kMaxStep behind the other, so when one is damaged the other says how far it can have been.
base::Result<CounterState::Reservation, std::string> CounterState::change(
    const tss::Fingerprint& key, std::uint64_t count, bool retire) {
  const LockedFile file(path_of(key), O_RDWR);
  if (file.fd < 0) return why_closed(key);
  if (!file.why.empty()) return file.why;
  auto before = file.read();
  if (!before) return why_damaged(key);
  if (before->newest.is_retired) return why_retired(key, file.moved_to());
  const std::uint64_t first = before->newest.reserved;
  const Record after{
      .reserved = first + std::min(count, tss::kCounterMax - std::min(first, tss::kCounterMax)),
      .is_retired = retire};
  Reservation out;
  if (before->is_damaged) {
    if (!file.write(before->newest, 1 - before->place))
      return path_of(key) + ": " + std::strerror(errno);
    before->place = 1 - before->place;
    out.note = note_of_damage(key, first);
  }
  const bool is_written = retire || after.reserved - first > kMaxStep
                              ? file.write_both(after, before->place)
                              : file.write(after, 1 - before->place);
  if (!is_written) return path_of(key) + ": " + std::strerror(errno);
  out.first = first;
  out.end = after.reserved;
  return out;
}

std::string CounterState::retire(const tss::Fingerprint& key) {
  if (is_missing(key)) {
    std::string error;
    if (make(key, true, error) || !error.empty()) return error;
  }
  const auto changed = change(key, 0, true);
  return changed ? "" : changed.error();
}

base::Result<CounterState::Reservation, std::string> CounterState::reserve(
    const tss::Fingerprint& key, std::uint64_t count) {
  return change(key, count, false);
}

/// The record with more counters is the newer one, so both say less in the end. The older one goes first: until both are there, the
/// state is what it was.
bool CounterState::give_back(const tss::Fingerprint& key, tss::CounterRange unused) {
  const LockedFile file(path_of(key), O_RDWR, LOCK_EX | LOCK_NB);
  if (file.fd < 0 || !file.why.empty()) return false;
  const auto before = file.read();
  const std::uint64_t first = std::max<std::uint64_t>(unused.first, 1);
  if (!before || before->newest.is_retired || before->is_damaged ||
      before->newest.reserved != unused.end || first >= unused.end)
    return false;
  return file.write_both({.reserved = first}, before->place);
}

/// Both files are locked, and the new one goes on before the old one ends: after a crash in between, the same again does the rest.
std::string CounterState::take_over(const tss::Fingerprint& key, const CounterState& old) {
  const LockedFile from(old.path_of(key), O_RDWR);
  if (from.fd < 0) return old.why_closed(key);
  if (!from.why.empty()) return from.why;
  const auto before = from.read();
  if (!before) return old.why_damaged(key);
  if (before->newest.is_retired) return old.why_retired(key, from.moved_to());

  if (!make_folder(folder_)) return folder_ + ": cannot be made: " + std::strerror(errno);
  const LockedFile to(path_of(key), O_RDWR | O_CREAT);
  if (to.fd < 0) return path_of(key) + ": " + std::strerror(errno);
  if (!to.why.empty()) return to.why;
  const auto here = to.read();
  if (!here && !to.is_empty()) return why_damaged(key);
  if (here && here->newest.is_retired && to.moved_to().empty()) return why_retired(key, "");
  const Record after{.reserved =
                         std::max(before->newest.reserved, here ? here->newest.reserved : 0)};
  if (!to.write_both(after, here ? here->place : 1) || ::ftruncate(to.fd, kMovedAt) != 0 ||
      !sync_folder(folder_))
    return path_of(key) + ": " + std::strerror(errno);
  if (!from.write_at(std::string(kMovedFormat) + folder_ + "\n", kMovedAt) ||
      !from.write_both({.reserved = before->newest.reserved, .is_retired = true}, before->place))
    return old.path_of(key) + ": " + std::strerror(errno);
  return "";
}

base::Result<CounterState::Status, std::string> CounterState::status(
    const tss::Fingerprint& key) const {
  const LockedFile file(path_of(key), O_RDONLY, LOCK_SH);
  if (file.fd < 0) return why_closed(key);
  if (!file.why.empty()) return file.why;
  const auto s = file.read();
  if (!s) return why_damaged(key);
  return Status{.reserved = s->newest.reserved,
                .is_retired = s->newest.is_retired,
                .moved_to = s->newest.is_retired ? file.moved_to() : "",
                .note = s->is_damaged ? note_of_damage(key, s->newest.reserved) : ""};
}

std::string CounterState::why_closed(const tss::Fingerprint& key) const {
  if (errno != ENOENT) return path_of(key) + ": " + std::strerror(errno);
  return "there is no counter state for key " + short_name(key) + " in " + folder_ +
         ": run uet-keys install on a host that never sent under it; where the state was lost, "
         "have "
         "a new key made (uet-keys rotate) and switch to it";
}

std::string CounterState::why_retired(const tss::Fingerprint& key,
                                      const std::string& moved_to) const {
  if (moved_to.empty()) return "key " + short_name(key) + " was retired on this host";
  return "the counters of key " + short_name(key) + " are not in " + folder_ + " any more but in " +
         moved_to + " (uet-keys install --state-dir)";
}

std::string CounterState::note_of_damage(const tss::Fingerprint& key, std::uint64_t at) const {
  return path_of(key) + ": one of its two records is damaged: the counters of key " +
         short_name(key) + " go on at " + std::to_string(at) +
         ", behind all that it can have given out";
}

std::string CounterState::why_damaged(const tss::Fingerprint& key) const {
  return path_of(key) +
         " is damaged: no counters can be taken for this key any more; make a new key (uet-keys "
         "rotate)";
}

}  // namespace uet::keys
