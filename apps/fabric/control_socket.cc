#include "apps/fabric/control_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace uet::fabric {

namespace {

bool fill(const std::string& path, sockaddr_un& address, std::string& error) {
  address = {};
  address.sun_family = AF_UNIX;
  if (path.empty()) {
    error = "the control socket has no path";
    return false;
  }
  if (path.size() >= sizeof address.sun_path) {
    error = "\"" + path + "\" is too long for a socket; 107 characters are the most";
    return false;
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return true;
}

std::string because(const std::string& what, const std::string& path) {
  return what + " " + path + ": " + std::strerror(errno);
}

int connect_to(const sockaddr_un& address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  const int why = errno;
  close(fd);
  errno = why;
  return -1;
}

}  // namespace

std::unique_ptr<ControlSocket> ControlSocket::open(const std::string& path, std::string& error) {
  std::unique_ptr<ControlSocket> control(new ControlSocket(path));
  return control->listen(error) ? std::move(control) : nullptr;
}

bool ControlSocket::listen(std::string& error) {
  sockaddr_un address;
  if (!fill(path_, address, error)) return false;
  // A file that is no socket refuses connections as a socket without a listener does.
  if (struct stat there{}; stat(path_.c_str(), &there) == 0 && !S_ISSOCK(there.st_mode)) {
    error = path_ + " is there already and is no socket; give the control socket another path";
    return false;
  }
  if (const int other = connect_to(address); other >= 0) {
    close(other);
    error = "another uet-fabric listens on " + path_;
    return false;
  }
  // Left behind by a process that was killed.
  if (errno == ECONNREFUSED) unlink(path_.c_str());
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  is_bound_ = fd_ >= 0 && bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  if (is_bound_ && ::listen(fd_, kClientsMax) == 0) return true;
  error = because("cannot listen on", path_);
  return false;
}

ControlSocket::~ControlSocket() {
  for (Client& client : clients_) close(client.fd);
  if (fd_ >= 0) close(fd_);
  if (is_bound_) unlink(path_.c_str());
}

void ControlSocket::accept_all() {
  for (;;) {
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (clients_.size() == kClientsMax)
      close(fd);
    else
      clients_.push_back({fd, {}, {}});
  }
}

void ControlSocket::serve(const std::function<std::string(std::string_view)>& answer) {
  accept_all();
  std::erase_if(clients_, [&](Client& client) {
    const bool stays = read_from(client, answer) && write_to(client);
    if (!stays) close(client.fd);
    return !stays;
  });
}

/// False when the client is gone, or says more than it should.
bool ControlSocket::read_from(Client& client,
                              const std::function<std::string(std::string_view)>& answer) {
  char block[kLineMax];
  const ssize_t n = recv(client.fd, block, sizeof block, 0);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return false;
  if (n > 0) client.in.append(block, static_cast<std::size_t>(n));
  for (std::size_t end; (end = client.in.find('\n')) != std::string::npos;) {
    client.out += answer(std::string_view(client.in).substr(0, end)) + '\n';
    client.in.erase(0, end + 1);
    if (client.out.size() > kReplyMax) return false;
  }
  return client.in.size() <= kLineMax;
}

bool ControlSocket::write_to(Client& client) {
  if (client.out.empty()) return true;
  const ssize_t n = send(client.fd, client.out.data(), client.out.size(), MSG_NOSIGNAL);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  client.out.erase(0, static_cast<std::size_t>(n));
  return true;
}

bool ask(const std::string& path, const std::string& line, int timeout_ms, std::string& reply) {
  sockaddr_un address;
  if (!fill(path, address, reply)) return false;
  const int fd = connect_to(address);
  if (fd < 0) {
    reply = because("no process answers on", path) +
            "; is uet-fabric running with this control socket?";
    return false;
  }
  const std::string text = line + '\n';
  bool ok = send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  reply.clear();
  while (ok && !reply.ends_with('\n')) {
    pollfd waiting{fd, POLLIN, 0};
    char block[65536];
    const int ready = poll(&waiting, 1, timeout_ms);
    const ssize_t n = ready == 1 ? recv(fd, block, sizeof block, 0) : 0;
    ok = n > 0;
    if (ok) reply.append(block, static_cast<std::size_t>(n));
  }
  close(fd);
  if (!ok) {
    reply = "no answer from " + path;
    return false;
  }
  reply.pop_back();
  return true;
}

}  // namespace uet::fabric
