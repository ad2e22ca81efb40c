/// The command that makes the endpoint under test initiate an operation.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

namespace uet::drill {

/// Runs `sh -c COMMAND` with UET_DRILL_OPERATION (write, send or read), UET_DRILL_BYTES and UET_DRILL_ADDRESS in its environment. What
/// still runs at the end of the script, or at its next command, is ended.
class InitiateCommand {
 public:
  InitiateCommand() = default;
  ~InitiateCommand() { end(); }
  InitiateCommand(const InitiateCommand&) = delete;
  InitiateCommand& operator=(const InitiateCommand&) = delete;

  /// Empty, or what went wrong.
  std::string start(const std::string& command, const std::string& operation,
                    const std::string& bytes, const std::string& address);
  void end();
  /// "the command of --initiate ended with status 3": the first such since the last call, empty when there was none. What end() itself
  /// killed is none.
  std::string take_trouble() { return std::exchange(trouble_, {}); }

 private:
  pid_t pid_ = -1;
  std::string trouble_;
};

}  // namespace uet::drill
