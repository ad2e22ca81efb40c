/// Opening the files that settings name for people to read.
#pragma once

#include <cstdio>
#include <string>

namespace uet::fep {

/// `path` with %p replaced by the process id.
std::string with_process_id(std::string path);

/// For writing, emptied; %p in `path` becomes the process id. Null when that fails.
std::FILE* open_log_file(std::string path);

}  // namespace uet::fep
