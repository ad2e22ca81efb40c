/// What a test says about ports that pass nothing, so that a failure on another machine explains itself.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "lib/base/trace.h"
#include "lib/net/port.h"

namespace uet::net {

/// Of every thread of the process: its name, its state and where in the kernel it waits.
inline std::string threads_of_process() {
  const auto line_of = [](const std::filesystem::path& path) {
    std::string line;
    std::ifstream file(path);
    std::getline(file, line);
    return line;
  };
  std::ostringstream out;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string stat = line_of(task.path() / "stat");
    const std::size_t name_end = stat.rfind(") ");
    out << "  thread " << line_of(task.path() / "comm") << ": "
        << (name_end == std::string::npos ? "?" : stat.substr(name_end + 2, 1)) << " "
        << line_of(task.path() / "wchan") << "\n";
  }
  return out.str();
}

/// Unix sockets with the process's number in their name: who listens, and who waits to be accepted.
inline std::string named_sockets_of_process() {
  std::ostringstream out;
  std::ifstream all("/proc/net/unix");
  for (std::string line; std::getline(all, line);)
    if (line.find("-" + std::to_string(getpid()) + "-") != std::string::npos)
      out << "  socket " << line << "\n";
  return out.str();
}

inline std::string drops_of(const base::Trace& trace) {
  std::ostringstream out;
  for (std::size_t i = 0; i < base::kDropReasonCount; ++i) {
    const auto reason = static_cast<base::DropReason>(i);
    if (trace.drops(reason) != 0)
      out << "  dropped " << base::name_of(reason) << " " << trace.drops(reason) << "\n";
  }
  for (const base::Event& event : trace.recorded())
    out << "  " << base::describe(event.id).name << " " << event.a << " " << event.b << " at "
        << event.at.ns() << " ns\n";
  return out.str();
}

inline std::string state_of(const char* name, Port& port, base::Instant now) {
  std::ostringstream out;
  const base::Instant due = port.next_deadline();
  out << "  " << name << " (" << port.facts().name << "): link "
      << (port.planes_up(now) != 0 ? "up" : "down") << ", room " << port.send_room(now)
      << ", buffers " << port.pool().available() << " of " << port.pool().capacity();
  if (!due.is_never()) out << ", due in " << (due - now).ns() << " ns";
  out << "\n";
  return out.str();
}

}  // namespace uet::net
