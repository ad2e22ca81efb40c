/// A thread that does what waits for files, so that the loop of an endpoint does not: a file system may be a network's, and its server
/// away.
#pragma once

#include <functional>
#include <memory>

namespace uet::keys {

/// Starts with the first job. In a child made by fork() it is good for nothing but its end, which waits for nothing there.
class FileThread {
 public:
  /// `name`: of the thread, 15 characters at most.
  explicit FileThread(const char* name);
  /// Waits for the job at hand, however long its file system takes; those behind it are not done.
  ~FileThread();
  FileThread(const FileThread&) = delete;
  FileThread& operator=(const FileThread&) = delete;

  /// Has `job`, which does not throw, done after those before it; by the caller where the system has no thread.
  void run(std::function<void()> job);

 private:
  struct State;
  const char* name_;
  std::unique_ptr<State> state_;
};

}  // namespace uet::keys
