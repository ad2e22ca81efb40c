#include "lib/dpdk/memif_sockets.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "lib/dpdk/guest_thread.h"

namespace uet::dpdk {

namespace {

struct Parked {
  std::string socket, id;
  std::string rest;  ///< of its arguments
  std::uint16_t port;
};

/// A place in the file system where devices of this process listen, or will again.
struct Place {
  unsigned users = 0;
  bool is_listening = false;  ///< a driver opened its listener here once
};

struct Sockets {
  std::mutex mutex;
  std::map<std::string, Place> places;
  std::vector<Parked> parked;
};

void remove_what_is_aside();

Sockets& sockets() {
  static auto* const instance = [] {
    std::atexit(remove_what_is_aside);
    return new Sockets;
  }();
  return *instance;
}

std::string path_of(const DeviceSpec& spec) {
  const std::string path = spec.argument("socket");
  return path.empty() ? "/run/memif.sock" : path;
}

bool has_place(const DeviceSpec& spec) {
  return spec.is_memif_server() && spec.argument("socket-abstract") == "no";
}

/// Where a listener is put while no device of ours uses it: it stays bound to the file, but does not stand in anybody's way.
std::string aside(const std::string& path) {
  return path + ".uet" + std::to_string(getpid());
}

void remove_what_is_aside() {
  if (is_forked_child()) return;
  for (const auto& [path, place] : sockets().places)
    if (place.users == 0 && place.is_listening) unlink(aside(path).c_str());
}

enum class Tenant { kNone, kDead, kAlive, kNoSocket };

/// A socket of another type than memif's: a listener refuses it for that reason and hears nothing of it.
Tenant tenant_of(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return Tenant::kNone;
  sockaddr_un address{};
  if (!S_ISSOCK(info.st_mode) || path.size() >= sizeof address.sun_path) return Tenant::kNoSocket;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Tenant::kAlive;
  const int result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const bool is_dead = result != 0 && errno == ECONNREFUSED;
  close(fd);
  return is_dead ? Tenant::kDead : Tenant::kAlive;
}

bool vacate(const std::string& path, std::string& error) {
  switch (tenant_of(path)) {
    case Tenant::kNone:
      return true;
    case Tenant::kDead:
      if (unlink(path.c_str()) == 0 || errno == ENOENT) return true;
      error = path +
              " was left by a process that is gone and cannot be removed: " + std::strerror(errno);
      return false;
    case Tenant::kAlive:
      error = "another process listens on " + path + "; give this server a socket= of its own";
      return false;
    case Tenant::kNoSocket:
      error = path + " is there already and is no socket; name another one with socket=";
      return false;
  }
  return false;
}

/// The arguments that a server acts on, but for those that name its socket.
std::string rest_of(const DeviceSpec& spec) {
  std::string rest;
  for (const std::string& argument : spec.arguments) {
    const std::string key = argument.substr(0, argument.find('='));
    if (key != "bsize" && key != "rsize" && key != "socket" && key != "id") rest += argument + ",";
  }
  return rest;
}

std::string id_of(const DeviceSpec& spec) {
  const std::string id = spec.argument("id");
  return id.empty() ? "0" : id;
}

}  // namespace

bool claim_memif_socket(const DeviceSpec& spec, std::string& error) {
  if (!has_place(spec)) return true;
  Sockets& s = sockets();
  const std::lock_guard lock(s.mutex);
  const std::string path = path_of(spec);
  Place& place = s.places[path];
  if (place.users == 0) {
    if (!vacate(path, error)) return false;
    if (place.is_listening && rename(aside(path).c_str(), path.c_str()) != 0) {
      error = path + " cannot be put back: " + std::strerror(errno);
      return false;
    }
  }
  ++place.users;
  return true;
}

void release_memif_socket(const DeviceSpec& spec) {
  if (!has_place(spec)) return;
  Sockets& s = sockets();
  const std::lock_guard lock(s.mutex);
  const std::string path = path_of(spec);
  Place& place = s.places[path];
  if (--place.users != 0) return;
  place.is_listening = rename(path.c_str(), aside(path).c_str()) == 0;
}

void park_memif_server(const DeviceSpec& spec, std::uint16_t port) {
  Sockets& s = sockets();
  const std::lock_guard lock(s.mutex);
  s.parked.push_back({path_of(spec), id_of(spec), rest_of(spec), port});
}

bool is_parked_memif_server(std::uint16_t port) {
  Sockets& s = sockets();
  const std::lock_guard lock(s.mutex);
  return std::any_of(s.parked.begin(), s.parked.end(),
                     [&](const Parked& p) { return p.port == port; });
}

std::optional<std::uint16_t> take_parked_memif_server(const DeviceSpec& spec, std::string& error) {
  if (!spec.is_memif_server()) return std::nullopt;
  Sockets& s = sockets();
  const std::lock_guard lock(s.mutex);
  const auto same = std::find_if(s.parked.begin(), s.parked.end(), [&](const Parked& p) {
    return p.socket == path_of(spec) && p.id == id_of(spec);
  });
  if (same == s.parked.end()) return std::nullopt;
  if (same->rest != rest_of(spec)) {
    error = "socket " + same->socket + ", id " + same->id +
            " was opened in this process before with other arguments (" + same->rest +
            "), and DPDK cannot change them; use the same, or another socket or id";
    return std::nullopt;
  }
  const std::uint16_t port = same->port;
  s.parked.erase(same);
  return port;
}

}  // namespace uet::dpdk
