/// Where DPDK's messages go when we started it: errors to stderr, and into error texts while a
/// device is being opened.
#pragma once

#include <string>

namespace uet::dpdk {

/// Routes DPDK's log away from stdout. Called once, before EAL starts.
void install_dpdk_log();

/// While one lives, messages are collected instead of printed.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// The first message, without line ends; empty when nothing was said.
  static std::string first_message();
};

}  // namespace uet::dpdk
