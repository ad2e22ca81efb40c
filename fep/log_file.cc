#include "fep/log_file.h"

#include <unistd.h>

namespace uet::fep {

std::FILE* open_log_file(std::string path) {
  if (const auto at = path.find("%p"); at != std::string::npos)
    path.replace(at, 2, std::to_string(getpid()));
  return std::fopen(path.c_str(), "we");
}

}  // namespace uet::fep
