#include "lib/net/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "lib/base/cancellation.h"
#include "lib/net/forked_child.h"

namespace uet::net {
namespace {

constexpr std::size_t kBufferBytes = 4096;

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

/// A descriptor of the first of the names of `path` that has no other writer, and that name. -1, and errno.
int open_first_free(const std::string& path, std::string& name) {
  constexpr unsigned kMostNames = 1000, kMostMoves = 100;
  unsigned moves = 0;
  for (unsigned n = 1; n <= kMostNames;) {
    name = numbered(path, n);
    int fd = -1;
    switch (try_open(name, fd)) {
      case Opened::kYes:
        return fd;
      case Opened::kMoved:
        if (++moves <= kMostMoves) break;
        errno = EBUSY;
        return -1;
      case Opened::kInUse:
        ++n;
        break;
      case Opened::kNo:
        return -1;
    }
  }
  errno = EBUSY;
  return -1;
}

}  // namespace

std::string with_process_id(std::string path) {
  const std::string id = std::to_string(getpid());
  for (auto at = path.find("%p"); at != std::string::npos; at = path.find("%p", at + id.size()))
    path.replace(at, 2, id);
  return path;
}

/// A list without a lock, for it is there in children made by fork(), too: what is in it stays.
struct OutputFile::Failure {
  const std::string path;
  std::atomic<std::uint64_t> records{0};
  std::atomic<int> error;
  Failure* next;
};

namespace {
std::atomic<OutputFile::Failure*> failures{nullptr};
}  // namespace

std::unique_ptr<OutputFile> OutputFile::open(const std::string& path) {
  std::string name;
  const int fd = open_first_free(with_process_id(path), name);
  return fd < 0 ? nullptr : std::unique_ptr<OutputFile>(new OutputFile(fd, std::move(name)));
}

OutputFile::OutputFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {
  constexpr std::size_t kRecords = kBufferBytes / 32;
  buffer_.reserve(kBufferBytes);
  ends_.reserve(kRecords);
}

OutputFile::~OutputFile() {
  close();
}

bool OutputFile::write(std::span<const std::uint8_t> record) {
  const auto has_room = [&] {
    return buffer_.empty() || buffer_.size() + record.size() <= kBufferBytes;
  };
  if (!has_room() && may_try()) drain();
  if (fd_ < 0 || !has_room()) {
    lose(1);
    return false;
  }
  buffer_.insert(buffer_.end(), record.begin(), record.end());
  ends_.push_back(buffer_.size());
  return true;
}

bool OutputFile::flush() {
  if (!buffer_.empty() && may_try()) drain();
  return buffer_.empty();
}

void OutputFile::flush_now() {
  if (!buffer_.empty()) drain();
}

void OutputFile::close() {
  if (fd_ < 0) return;
  flush_now();
  lose(ends_.size());
  forget(buffer_.size());
  const base::WithoutCancellation without_cancellation;
  ::close(std::exchange(fd_, -1));
}

std::uint64_t OutputFile::lost() const {
  return failure_ == nullptr ? 0 : failure_->records.load();
}

bool OutputFile::reopen() {
  if (is_abandoned_ || !may_try()) return false;
  const std::string before = path_;
  fd_ = open_first_free(before, path_);
  if (fd_ >= 0) return true;
  const int error = errno;
  path_ = before;
  fail(error);
  return false;
}

void OutputFile::abandon_in_child() {
  make_null(std::exchange(fd_, -1));
  forget(buffer_.size());
  is_abandoned_ = true;
}

/// A disk that was full a moment ago as a rule still is.
bool OutputFile::may_try() {
  constexpr unsigned kCallsSkipped = 255;
  if (is_stalled_ && calls_skipped_++ < kCallsSkipped) return false;
  calls_skipped_ = 0;
  return true;
}

/// Where only a part can be written, the record in which it ends is taken off again, or, where the file is a pipe or a device, goes on next time.
void OutputFile::drain() {
  if (fd_ < 0) return;
  const base::WithoutCancellation without_cancellation;
  const off_t begin = ::lseek(fd_, 0, SEEK_CUR);
  std::size_t done = 0;
  int why = 0;
  while (done < buffer_.size() && why == 0) {
    const ssize_t n = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (n > 0) done += static_cast<std::size_t>(n);
    if (n == 0) why = ENOSPC;
    if (n < 0 && errno != EINTR) why = errno;
  }
  if (why != 0) {
    const auto cut = std::ranges::upper_bound(ends_, done);
    const std::size_t whole = cut == ends_.begin() ? 0 : *(cut - 1);
    const off_t end = begin + static_cast<off_t>(whole);
    if (begin >= 0 && ::ftruncate(fd_, end) == 0 && ::lseek(fd_, end, SEEK_SET) == end)
      done = whole;
  }
  forget(done);
  is_stalled_ = why != 0;
  if (why != 0) fail(why);
}

/// The first `bytes` of the buffer.
void OutputFile::forget(std::size_t bytes) {
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(bytes));
  std::erase_if(ends_, [bytes](std::size_t end) { return end <= bytes; });
  for (std::size_t& end : ends_) end -= bytes;
}

void OutputFile::lose(std::uint64_t records) {
  if (failure_ != nullptr) failure_->records += records;
}

void OutputFile::fail(int error) {
  is_stalled_ = true;
  if (failure_ != nullptr) {
    failure_->error = error;
    return;
  }
  try {
    failure_ = new Failure{.path = path_, .error = error, .next = failures};
  } catch (const std::bad_alloc&) {
    return;  // said and counted from the next failure on
  }
  while (!failures.compare_exchange_weak(failure_->next, failure_)) {
  }
  std::fprintf(stderr,
               "uet: cannot write %s: %s; what does not get there until this is put right is lost, "
               "and counted\n",
               path_.c_str(), std::strerror(error));
}

std::vector<NotWritten> not_written() {
  std::vector<NotWritten> out;
  for (const OutputFile::Failure* f = failures; f != nullptr; f = f->next)
    if (f->records > 0) out.push_back({f->path, f->records, f->error});
  return out;
}

}  // namespace uet::net
