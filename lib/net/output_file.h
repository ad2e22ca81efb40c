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

}  // namespace uet::net
