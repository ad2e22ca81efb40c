/// Where the endpoints of a user can be looked at while they run: a Unix socket for each process, in a folder of the user's own.
#pragma once

#include <string>
#include <vector>

namespace uet::ports {

/// $XDG_RUNTIME_DIR/uet, /run/user/UID/uet or /tmp/uet-UID, whichever can be had; made with mode 0700 when `create`. Empty when
/// there is none, or when it belongs to another user or lets others in.
std::string live_folder(bool create);

/// A listening socket (mode 0600, close-on-exec, not blocking) of this process in that folder; `path` is its name. -1 with errno.
int open_live_socket(std::string& path);

/// Of this process, as ps shows it.
std::string program_name();

/// What the process behind one socket answers.
struct LiveAnswer {
  std::string path;
  std::string text;   ///< as it came
  std::string error;  ///< not empty: why there is no text
};
/// Sends `request` (one line) to every live process of the user. Sockets that nothing listens on any more are removed.
/// Waits at most `timeout_ms` for each.
std::vector<LiveAnswer> ask_live_processes(const std::string& request, int timeout_ms);

/// On an accepted connection: the request line without its end, empty when none comes in time or the peer is another user.
std::string read_live_request(int fd, int timeout_ms);
/// Sends all of `text`; gives up when the peer takes nothing for `timeout_ms`.
void write_live_answer(int fd, const std::string& text, int timeout_ms);

}  // namespace uet::ports
