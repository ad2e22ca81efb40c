/// Where the endpoints of a user can be looked at while they run: a Unix socket for each process, in a folder of the user's own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/udp/descriptor.h"

namespace uet::ports {

/// $XDG_RUNTIME_DIR/uet, /run/user/UID/uet or /tmp/uet-UID, whichever can be had; made with mode 0700 when `create`. Empty when
/// there is none, or when it belongs to another user or lets others in.
std::string live_folder(bool create);
/// Those three, as the environment is now.
std::vector<std::string> live_folders();

/// A listening socket (mode 0600, close-on-exec, not blocking) of this process in `folder`; `path` is its name. Names of processes that
/// are gone do not keep it from theirs. Null with errno.
udp::Descriptor open_live_socket(const std::string& folder, std::string& path);

/// The socket of this process in the folder where readers look, and its name there, which goes with the object. Folders may vanish under
/// a process: logind takes away /run/user/UID when the user's last session ends. The listener is a
/// Descriptor: in a child made by fork() it would take connections that get no answer.
class LiveSocket {
 public:
  LiveSocket() { keep(); }
  ~LiveSocket() { close(); }
  LiveSocket(const LiveSocket&) = delete;
  LiveSocket& operator=(const LiveSocket&) = delete;

  /// -1 while there is no folder for it, or no descriptor.
  int fd() const { return listener_.fd(); }
  /// To be called about once a second: where readers do not find the socket, opens another in its place.
  void keep();

 private:
  bool is_found(const std::string& folder) const;
  void close();

  const std::vector<std::string> folders_ = live_folders();
  udp::Descriptor listener_;
  std::string folder_, path_;
  std::uint64_t device_ = 0, inode_ = 0;  ///< of the name
  pid_t owner_ = 0;
};

/// Of this process, as ps shows it.
std::string program_name();

/// What the process behind one socket answers.
struct LiveAnswer {
  std::string path;
  std::string text;   ///< as it came
  std::string error;  ///< not empty: why there is no text
};
/// Sends `request` (one line) to every live process of the user, to some dozens at once. Sockets that nothing listens on any more are
/// removed. A process that says nothing for `timeout_ms` is given up. With a `pid` only that process is asked.
std::vector<LiveAnswer> ask_live_processes(const std::string& request, int timeout_ms,
                                           std::optional<long> pid = {});

/// On an accepted connection: the request line without its end, empty when none comes in time or the peer is another user.
/// A descriptor `stop` that is readable ends the wait; -1: none.
std::string read_live_request(int fd, int timeout_ms, int stop = -1);
/// Sends all of `text`; gives up when the peer takes nothing for `timeout_ms`, or at a readable `stop`.
void write_live_answer(int fd, const std::string& text, int timeout_ms, int stop = -1);

}  // namespace uet::ports
