#include "fep/settings/log_file.h"

#include <unistd.h>

namespace uet::fep {

std::string with_process_id(std::string path) {
  if (const auto at = path.find("%p"); at != std::string::npos)
    path.replace(at, 2, std::to_string(getpid()));
  return path;
}

std::FILE* open_log_file(std::string path) {
  return std::fopen(with_process_id(std::move(path)).c_str(), "we");
}

}  // namespace uet::fep
