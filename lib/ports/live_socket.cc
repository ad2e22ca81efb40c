#include "lib/ports/live_socket.h"

#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

namespace uet::ports {

namespace {

constexpr std::size_t kRequestMax = 256;
constexpr std::size_t kAnswerMax = 256 << 20;
constexpr std::string_view kListening = ".sock";

/// A folder of this user that no other can enter; a link is not followed.
bool is_private(const std::string& path) {
  struct stat s {};
  return lstat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid() &&
         (s.st_mode & 077) == 0;
}

bool have(const std::string& path, bool create) {
  if (create) mkdir(path.c_str(), 0700);  // what is there already is looked at below
  return is_private(path);
}

bool address_of(const std::string& path, sockaddr_un& address) {
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return false;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return true;
}

bool is_ready(int fd, short events, int timeout_ms) {
  pollfd wait{fd, events, 0};
  return poll(&wait, 1, timeout_ms) == 1;
}

bool is_of_this_user(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         (peer.uid == geteuid() || peer.uid == 0);
}

LiveAnswer ask(const std::string& path, const std::string& request, int timeout_ms) {
  LiveAnswer answer{path, "", ""};
  sockaddr_un address{};
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || !address_of(path, address) ||
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    answer.error = std::strerror(errno);
    if (errno == ECONNREFUSED) unlink(path.c_str());  // its process is gone
  } else {
    write_live_answer(fd, request + '\n', timeout_ms);
    char chunk[65536];
    while (answer.error.empty() && answer.text.size() < kAnswerMax) {
      const ssize_t n = is_ready(fd, POLLIN, timeout_ms) ? recv(fd, chunk, sizeof chunk, 0) : -1;
      if (n == 0) break;
      if (n > 0)
        answer.text.append(chunk, static_cast<std::size_t>(n));
      else
        answer.error = "no answer in time; is the process stopped?";
    }
  }
  if (fd >= 0) close(fd);
  return answer;
}

/// A name of this process that `take` gets; empty with errno. Processes of two containers may have one number and one folder.
template <typename Take>
std::string take_name(const std::string& folder, std::string_view end, Take&& take) {
  constexpr int kNames = 16;
  for (int attempt = 0; attempt < kNames; ++attempt) {
    std::string path = folder + '/' + std::to_string(getpid());
    if (attempt > 0) path += '.' + std::to_string(attempt);
    path += end;
    if (take(path)) return path;
    if (errno != EADDRINUSE && errno != EEXIST) break;
  }
  return "";
}

/// The name under which `fd` listens; empty with errno. Readers remove what ends in .sock and refuses them. Until it listens a socket refuses, too:
/// it gets that name afterwards.
std::string listen_in(const std::string& folder, int fd) {
  const std::string bound = take_name(folder, ".new", [fd](const std::string& path) {
    sockaddr_un address{};
    return address_of(path, address) &&
           bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  });
  if (bound.empty()) return "";
  std::string name;
  if (chmod(bound.c_str(), 0600) == 0 && listen(fd, 8) == 0)
    name = take_name(folder, kListening, [&bound](const std::string& path) {
      return link(bound.c_str(), path.c_str()) == 0;
    });
  const int error = errno;
  unlink(bound.c_str());
  errno = error;
  return name;
}

}  // namespace

std::string live_folder(bool create) {
  const std::string uid = std::to_string(geteuid());
  if (const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
      runtime != nullptr && *runtime != '\0')
    if (const std::string path = std::string(runtime) + "/uet"; have(path, create)) return path;
  for (const std::string& path : {"/run/user/" + uid + "/uet", "/tmp/uet-" + uid})
    if (have(path, create)) return path;
  return "";
}

int open_live_socket(std::string& path) {
  const std::string folder = live_folder(true);
  if (folder.empty()) {
    errno = ENOENT;
    return -1;
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  path = listen_in(folder, fd);
  if (!path.empty()) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

std::string program_name() {
  std::ifstream file("/proc/self/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

std::vector<LiveAnswer> ask_live_processes(const std::string& request, int timeout_ms) {
  std::vector<LiveAnswer> answers;
  const std::string folder = live_folder(false);
  DIR* const directory = folder.empty() ? nullptr : opendir(folder.c_str());
  if (directory == nullptr) return answers;
  while (const dirent* entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (!name.ends_with(kListening)) continue;
    LiveAnswer answer = ask(folder + '/' + name, request, timeout_ms);
    const bool is_stale = answer.text.empty() && access(answer.path.c_str(), F_OK) != 0;
    if (!is_stale) answers.push_back(std::move(answer));
  }
  closedir(directory);
  return answers;
}

std::string read_live_request(int fd, int timeout_ms) {
  std::string line(kRequestMax, '\0');
  if (!is_of_this_user(fd) || !is_ready(fd, POLLIN, timeout_ms)) return "";
  // One packet of a few bytes: what sends it in pieces is no program of ours.
  const ssize_t n = recv(fd, line.data(), line.size(), MSG_DONTWAIT);
  line.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return line.ends_with('\n') ? line.substr(0, line.size() - 1) : "";
}

void write_live_answer(int fd, const std::string& text, int timeout_ms) {
  for (std::size_t at = 0; at < text.size();) {
    if (!is_ready(fd, POLLOUT, timeout_ms)) return;
    const ssize_t n = send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return;
    if (n > 0) at += static_cast<std::size_t>(n);
  }
}

}  // namespace uet::ports
