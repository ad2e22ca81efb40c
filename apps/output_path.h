/// What is to be known of the files that a tool writes before it begins.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace uet::apps {

/// Whether writing `out` would overwrite what is read from one of `inputs`: it is named alike, or leads to the same file.
inline bool is_input(const std::string& out, const std::vector<std::string>& inputs) {
  return std::ranges::any_of(inputs, [&out](const std::string& input) {
    std::error_code none;
    if (input == out) return true;
    return std::filesystem::is_regular_file(out, none) &&
           std::filesystem::equivalent(input, out, none);
  });
}

/// What is in the file stays, and one that is not there is not left behind, also where a link leads to it. A pipe is not opened: its reader would see the end. False: errno says why.
inline bool can_write(const std::string& path) {
  std::error_code none;
  const auto status = std::filesystem::status(path, none);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return access(path.c_str(), W_OK) == 0;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  close(fd);
  if (!std::filesystem::exists(status))
    std::filesystem::remove(std::filesystem::canonical(path, none), none);
  return true;
}

}  // namespace uet::apps
