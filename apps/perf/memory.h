/// Whether the buffers of a measurement fit this host: said before the system gives what it does not have.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <fstream>
#include <istream>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace uet::perf {

/// MemAvailable of /proc/meminfo in bytes; as much as can be named where it does not stand there.
inline std::uint64_t memory_available(std::istream& meminfo) {
  for (std::string name, unit; meminfo >> name;) {
    std::uint64_t kib = 0;
    if (name == "MemAvailable:" && meminfo >> kib) return kib * 1024;
    std::getline(meminfo, unit);
  }
  return UINT64_MAX;
}
inline std::uint64_t memory_available() {
  std::ifstream meminfo("/proc/meminfo");
  return memory_available(meminfo);
}

inline std::string in_gib(std::uint64_t bytes) {
  return fmt::format("{:.3g} GiB", static_cast<double>(bytes) / (1 << 30));
}

/// Empty, or why buffers of `bytes` in each of so many processes of this host are too much for it.
inline std::string why_too_much(std::uint64_t bytes, std::uint64_t available,
                                unsigned processes = 1, const char* where = "") {
  if (bytes <= available / processes) return {};
  return fmt::format(
      "this needs {} of memory{}, and {} are available: use a smaller --window or --size",
      in_gib(bytes), where, in_gib(available));
}

/// Throws a sentence where that is too much.
inline std::vector<std::uint8_t> make_buffer(std::uint64_t bytes, std::uint8_t value = 0) {
  if (const std::string why = why_too_much(bytes, memory_available()); !why.empty())
    throw std::runtime_error(why);
  try {
    return std::vector<std::uint8_t>(bytes, value);
  } catch (const std::bad_alloc&) {
    throw std::runtime_error(fmt::format(
        "the system gives no {} of memory (ulimit -v?): use a smaller --window or --size",
        in_gib(bytes)));
  }
}

}  // namespace uet::perf
