/// Files that settings name, for people and tools to read: captures and logs.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

namespace uet::net {

/// `path` with every "%p" replaced by the process id: several processes may share one setting.
std::string with_process_id(std::string path);

struct OutputFile {
  std::FILE*
      file;  ///< for writing, empty, closed when the process becomes another program; the caller closes it
  std::string path;  ///< its name
};

/// `path` as with_process_id() has it. A regular file that is open by this call already, in this process or in another, is left
/// alone: NAME-2.EXTENSION is opened in its place, or NAME-3.EXTENSION and so on. Nothing, and errno, when that fails.
std::optional<OutputFile> open_output_file(const std::string& path);

/// In a child made by fork(): what its copy of the file's buffer holds is the parent's to write, and so is the lock on the file. From now on all that
/// is written to `file` is lost. Safe between fork() and exec().
void abandon_in_child(std::FILE* file);

}  // namespace uet::net
