#include "lib/ports/live_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <span>
#include <string_view>
#include <utility>

namespace uet::ports {

namespace {

constexpr std::size_t kRequestMax = 256;
constexpr std::size_t kAnswerMax = 256 << 20;
constexpr std::string_view kListening = ".sock";
/// Each needs a descriptor.
constexpr std::size_t kAskedAtOnce = 64;

using Clock = std::chrono::steady_clock;

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

udp::Descriptor new_socket() {
  return udp::Descriptor::open(
      [] { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
}

/// False too when `stop` became readable.
bool is_ready(int fd, short events, int timeout_ms, int stop = -1) {
  pollfd waits[2] = {{.fd = fd, .events = events, .revents = 0},
                     {.fd = stop, .events = POLLIN, .revents = 0}};
  return poll(waits, 2, timeout_ms) > 0 && waits[1].revents == 0;
}

bool is_of_this_user(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         (peer.uid == geteuid() || peer.uid == 0);
}

bool names(const std::string& path, dev_t device, ino_t inode) {
  struct stat s {};
  return lstat(path.c_str(), &s) == 0 && s.st_dev == device && s.st_ino == inode;
}

/// Whether `path` still is the name of the file that `held` holds.
bool is_name_of(const udp::Descriptor& held, const std::string& path) {
  struct stat file {};
  return held && fstat(held.fd(), &file) == 0 && names(path, file.st_dev, file.st_ino);
}

/// One process that is asked: from the connection to the end of its answer, its silence or an error.
class Question {
 public:
  Question(std::string path, const std::string& request, int timeout_ms);

  /// Of the connection; -1 when nothing more is to come.
  int fd() const { return connection_.fd(); }
  /// When to give up. What comes puts it off.
  Clock::time_point end() const { return end_; }
  /// To be called when fd() is readable.
  void read_some();
  void give_up() { finish("no answer in time; is the process stopped?"); }
  LiveAnswer take_answer() { return std::move(answer_); }

 private:
  void finish(std::string error) {
    connection_ = udp::Descriptor();
    answer_.error = std::move(error);
  }

  const std::chrono::milliseconds patience_;
  LiveAnswer answer_;
  udp::Descriptor connection_;
  Clock::time_point end_;
};

Question::Question(std::string path, const std::string& request, int timeout_ms)
    : patience_(timeout_ms),
      answer_{std::move(path), "", ""},
      connection_(new_socket()),
      end_(Clock::now() + patience_) {
  const std::string& name = answer_.path;
  sockaddr_un address{};
  // While the file is held, no other can have its inode.
  const auto held =
      udp::Descriptor::open([&] { return open(name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC); });
  if (!connection_ || !address_of(name, address) ||
      connect(fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    // Its process is gone. But its endpoint may have been opened again since, under the same name.
    if (error == ECONNREFUSED && is_name_of(held, name)) unlink(name.c_str());
    finish(std::strerror(error));
  } else {
    write_live_answer(fd(), request + '\n', timeout_ms);
  }
}

void Question::read_some() {
  char chunk[65536];
  const ssize_t n = recv(fd(), chunk, sizeof chunk, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n < 0) return finish(std::strerror(errno));
  answer_.text.append(chunk, static_cast<std::size_t>(n));
  end_ = Clock::now() + patience_;
  if (n == 0 || answer_.text.size() >= kAnswerMax) finish("");
}

/// Until each of them has its answer or its time is over.
void await_answers(std::span<Question> questions) {
  for (;;) {
    std::vector<pollfd> open;
    auto end = Clock::time_point::max();
    for (const Question& q : questions) {
      open.push_back({.fd = q.fd(), .events = POLLIN, .revents = 0});
      if (q.fd() >= 0) end = std::min(end, q.end());
    }
    if (end == Clock::time_point::max()) return;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    poll(open.data(), open.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    for (std::size_t i = 0; i < open.size(); ++i) {
      Question& q = questions[i];
      if (q.fd() >= 0 && open[i].revents != 0)
        q.read_some();
      else if (q.fd() >= 0 && Clock::now() >= q.end())
        q.give_up();
    }
  }
}

/// Whether nothing listens at a name any more. What is not a name of the final form may be about to.
bool is_left_behind(const std::string& path) {
  constexpr std::time_t kOpeningSeconds = 10;
  struct stat s {};
  const bool is_named = path.ends_with(kListening);
  if (lstat(path.c_str(), &s) != 0 || !S_ISSOCK(s.st_mode) ||
      (!is_named && s.st_mtime > std::time(nullptr) - kOpeningSeconds))
    return false;
  sockaddr_un address{};
  const auto d = new_socket();
  return d && address_of(path, address) &&
         connect(d.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

/// Takes the name away at its end, and leaves errno alone.
class TemporaryName {
 public:
  explicit TemporaryName(const std::string& path) : path_(path) {}
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName() {
    const int error = errno;
    unlink(path_.c_str());
    errno = error;
  }

 private:
  const std::string& path_;
};

/// A name of this process that `take` gets; empty with errno. A process has one for each endpoint of the C++ library. Processes of two
/// containers may have one number and one folder; those that were killed leave their names to the next one with their number.
template <typename Take>
std::string take_name(const std::string& folder, std::string_view end, Take&& take) {
  constexpr int kNames = 64;
  for (int attempt = 0; attempt < kNames; ++attempt) {
    std::string path = folder + '/' + std::to_string(getpid());
    if (attempt > 0) path += '.' + std::to_string(attempt);
    path += end;
    if (take(path)) return path;
    if (errno != EADDRINUSE && errno != EEXIST) break;
    if (is_left_behind(path) && unlink(path.c_str()) == 0 && take(path)) return path;
    errno = EADDRINUSE;
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
  const TemporaryName temporary(bound);
  if (chmod(bound.c_str(), 0600) != 0 || listen(fd, 8) != 0) return "";
  return take_name(folder, kListening, [&bound](const std::string& path) {
    return link(bound.c_str(), path.c_str()) == 0;
  });
}

/// The names of sockets, of all processes or of one.
std::vector<std::string> listening_in(const std::string& folder, std::optional<long> pid) {
  std::vector<std::string> out;
  DIR* const directory = folder.empty() ? nullptr : opendir(folder.c_str());
  if (directory == nullptr) return out;
  while (const dirent* entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (!name.ends_with(kListening)) continue;
    if (pid && name.substr(0, name.find('.')) != std::to_string(*pid)) continue;
    out.push_back(folder + '/' + name);
  }
  closedir(directory);
  return out;
}

/// The first that can be had; empty: none.
std::string first_of(const std::vector<std::string>& folders, bool create) {
  for (const std::string& path : folders)
    if (have(path, create)) return path;
  return "";
}

}  // namespace

std::vector<std::string> live_folders() {
  std::vector<std::string> out;
  if (const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
      runtime != nullptr && *runtime != '\0')
    out.push_back(std::string(runtime) + "/uet");
  const std::string uid = std::to_string(geteuid());
  out.insert(out.end(), {"/run/user/" + uid + "/uet", "/tmp/uet-" + uid});
  return out;
}

std::string live_folder(bool create) {
  return first_of(live_folders(), create);
}

udp::Descriptor open_live_socket(const std::string& folder, std::string& path) {
  auto out = new_socket();
  if (out) path = listen_in(folder, out.fd());
  if (!out || !path.empty()) return out;
  const int error = errno;
  out = udp::Descriptor();
  errno = error;
  return out;
}

bool LiveSocket::is_found(const std::string& folder) const {
  return listener_ && folder == folder_ && names(path_, device_, inode_);
}

/// A bound socket cannot be given a name again, so another takes its place.
void LiveSocket::keep() {
  std::string folder = first_of(folders_, true);
  if (is_found(folder)) return;
  close();
  if (folder.empty()) return;
  folder_ = std::move(folder);
  listener_ = open_live_socket(folder_, path_);
  struct stat s {};
  if (listener_) {
    owner_ = getpid();
    lstat(path_.c_str(), &s);
  }
  device_ = s.st_dev;
  inode_ = s.st_ino;
}

/// Another process may have the name by now; a child has its parent's.
void LiveSocket::close() {
  if (!listener_) return;
  if (owner_ == getpid() && is_found(folder_)) unlink(path_.c_str());
  listener_ = udp::Descriptor();
}

std::string program_name() {
  std::ifstream file("/proc/self/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

std::vector<LiveAnswer> ask_live_processes(const std::string& request, int timeout_ms,
                                           std::optional<long> pid) {
  std::vector<LiveAnswer> answers;
  const std::vector<std::string> paths = listening_in(live_folder(false), pid);
  for (std::size_t at = 0; at < paths.size(); at += kAskedAtOnce) {
    std::vector<Question> questions;
    for (std::size_t i = at; i < std::min(at + kAskedAtOnce, paths.size()); ++i)
      questions.emplace_back(paths[i], request, timeout_ms);
    await_answers(questions);
    for (Question& q : questions) {
      LiveAnswer answer = q.take_answer();
      const bool is_stale = answer.text.empty() && access(answer.path.c_str(), F_OK) != 0;
      if (!is_stale) answers.push_back(std::move(answer));
    }
  }
  return answers;
}

std::string read_live_request(int fd, int timeout_ms, int stop) {
  std::string line(kRequestMax, '\0');
  if (!is_of_this_user(fd) || !is_ready(fd, POLLIN, timeout_ms, stop)) return "";
  // One packet of a few bytes: what sends it in pieces is no program of ours.
  const ssize_t n = recv(fd, line.data(), line.size(), MSG_DONTWAIT);
  line.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return line.ends_with('\n') ? line.substr(0, line.size() - 1) : "";
}

void write_live_answer(int fd, const std::string& text, int timeout_ms, int stop) {
  for (std::size_t at = 0; at < text.size();) {
    if (!is_ready(fd, POLLOUT, timeout_ms, stop)) return;
    const ssize_t n = send(fd, text.data() + at, text.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return;
    if (n > 0) at += static_cast<std::size_t>(n);
  }
}

}  // namespace uet::ports
