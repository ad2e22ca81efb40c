/// What the mains of all tools have in common: failures end with a line, and output that cannot be written is a failure.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>

namespace uet::apps {

/// Where standard input, output or error is closed, the next file would have its descriptor, and would be read or written in its place.
inline void hold_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", O_RDONLY);
}

/// What was printed so far is there for its reader. Throws std::system_error where it cannot be written.
inline void flush_output() {
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
}

/// The exit status of `body`; 1, with a line on standard error, where it throws, or where not all of standard output could be written. The line has
/// no reason where `body` itself has flushed, and so taken it.
template <typename Body>
int run_program(const char* name, const Body& body) {
  hold_standard_descriptors();
  int status = 1, cause = 0;
  std::string failure;
  try {
    status = body();
  } catch (const std::system_error& error) {
    failure = error.what();
    cause = error.code().value();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const bool is_flushed = std::fflush(stdout) == 0;
  if (!is_flushed) cause = errno;
  if (!is_flushed || std::ferror(stdout) != 0) {
    failure = "standard output cannot be written";
    if (cause != 0) failure += std::string(": ") + std::strerror(cause);
  }
  if (failure.empty()) return status;
  std::fprintf(stderr, "%s: %s\n", name, failure.c_str());
  return status == 0 ? 1 : status;
}

}  // namespace uet::apps
