#include "apps/drill/initiate.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cstring>
#include <vector>

namespace uet::drill {

namespace {

/// Empty where `status` is success.
std::string trouble_in(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("the command of --initiate was ended by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) == 0) return {};
  return fmt::format("the command of --initiate ended with status {}", WEXITSTATUS(status));
}

}  // namespace

std::string InitiateCommand::start(const std::string& command, const std::string& operation,
                                   const std::string& bytes, const std::string& address) {
  end();
  std::vector<std::string> more = {"UET_DRILL_OPERATION=" + operation, "UET_DRILL_BYTES=" + bytes,
                                   "UET_DRILL_ADDRESS=" + address};
  std::vector<char*> environment;
  for (std::string& text : more) environment.push_back(text.data());
  for (char** e = environ; *e != nullptr; ++e)
    if (std::strncmp(*e, "UET_DRILL_", 10) != 0) environment.push_back(*e);
  environment.push_back(nullptr);
  std::string shell = "sh", option = "-c", line = command;
  char* const arguments[] = {shell.data(), option.data(), line.data(), nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // to end all of it
  const int error =
      posix_spawn(&pid_, "/bin/sh", nullptr, &attributes, arguments, environment.data());
  posix_spawnattr_destroy(&attributes);
  if (error == 0) return {};
  pid_ = -1;
  return std::string("--initiate: ") + std::strerror(error);
}

void InitiateCommand::end() {
  if (pid_ <= 0) return;
  int status = 0;
  const pid_t ended = waitpid(pid_, &status, WNOHANG);
  if (ended == pid_ && trouble_.empty()) trouble_ = trouble_in(status);
  if (ended == 0) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_ = -1;
}

}  // namespace uet::drill
