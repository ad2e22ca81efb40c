/// Files that settings name, for people and tools to read: captures and logs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace uet::net {

/// `path` with every "%p" replaced by the process id: several processes may share one setting.
std::string with_process_id(std::string path);

/// Records for which a file of this process had no room, with the last reason of the system.
struct NotWritten {
  std::string path;
  std::uint64_t records;
  int error;  ///< errno
};
/// Of every file that could not be written since the process began, also of those that are closed. Any thread.
std::vector<NotWritten> not_written();

/// A file of records, which are there whole or not at all. While the system takes none (a full disk), records wait in a small buffer, and those for
/// which it has no room are lost and counted; the first time a line on standard error says so. It goes on once there is room again.
/// What is written waits in the buffer until that is full, or until flush(). One thread.
class OutputFile {
 public:
  struct Failure;

  /// `path` as with_process_id() has it, empty, closed when the process becomes another program. A regular file that is open by this call already,
  /// in this process or in another, is left alone: NAME-2.EXTENSION is opened in its place, or NAME-3.EXTENSION and so on. Null, and errno, when
  /// that fails.
  static std::unique_ptr<OutputFile> open(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// False: the record is lost.
  bool write(std::span<const std::uint8_t> record);
  bool write(std::string_view text) {
    return write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  }
  /// Hands what waits to the operating system, so that other programs can read it. After a failure most calls do nothing: callers may turn fast. False:
  /// something waits still.
  bool flush();
  /// The same, and tries again after a failure, too: for callers that write about once a second.
  void flush_now();

  /// What waits and cannot be written now is lost.
  void close();
  /// After close(): opens the name that it had, as open() does. False: nothing can be written until this succeeds.
  bool reopen();
  bool is_open() const { return fd_ >= 0; }

  /// In a child made by fork(): what its copy of the buffer holds is the parent's to write, and so is the lock on the file. From now on all that
  /// is written is lost. Safe between fork() and exec().
  void abandon_in_child();

  const std::string& path() const { return path_; }  ///< its name
  int descriptor() const { return fd_; }
  std::uint64_t lost() const;  ///< records; not_written() has them, too

 private:
  OutputFile(int fd, std::string path);
  bool may_try();
  void drain();
  void forget(std::size_t bytes);
  void lose(std::uint64_t records);
  void fail(int error);

  int fd_;
  std::string path_;
  std::vector<std::uint8_t> buffer_;
  std::vector<std::size_t> ends_;  ///< of the records in the buffer
  Failure* failure_ = nullptr;     ///< once there was one; never freed
  bool is_stalled_ = false;        ///< the last attempt to write failed
  unsigned calls_skipped_ = 0;     ///< since then
  bool is_abandoned_ = false;
};

}  // namespace uet::net
