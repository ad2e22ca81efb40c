#include "lib/dpdk/dpdk_log.h"

#include <rte_log.h>

#include <cstdio>
#include <mutex>

namespace uet::dpdk {

namespace {

constexpr std::size_t kKeptBytes = 4096;

/// Never destroyed: EAL's own threads may log while the process exits.
struct LogState {
  std::mutex mutex;
  int captures = 0;
  std::string text;
};

LogState& state() {
  static auto* const instance = new LogState;
  return *instance;
}

ssize_t write_log(void*, const char* bytes, std::size_t size) {
  LogState& log = state();
  const std::lock_guard lock(log.mutex);
  if (log.captures == 0)
    std::fwrite(bytes, 1, size, stderr);
  else if (log.text.size() < kKeptBytes)
    log.text.append(bytes, size);
  return static_cast<ssize_t>(size);
}

}  // namespace

void install_dpdk_log() {
  cookie_io_functions_t functions{};
  functions.write = write_log;
  std::FILE* const stream = fopencookie(nullptr, "w", functions);
  if (stream == nullptr) {
    rte_openlog_stream(stderr);
    return;
  }
  setvbuf(stream, nullptr, _IOLBF, BUFSIZ);
  rte_openlog_stream(stream);
}

LogCapture::LogCapture() {
  const std::lock_guard lock(state().mutex);
  if (state().captures++ == 0) state().text.clear();
}

LogCapture::~LogCapture() {
  const std::lock_guard lock(state().mutex);
  --state().captures;
}

std::string LogCapture::first_message() {
  const std::lock_guard lock(state().mutex);
  const std::string& text = state().text;
  return text.substr(0, text.find('\n'));
}

}  // namespace uet::dpdk
