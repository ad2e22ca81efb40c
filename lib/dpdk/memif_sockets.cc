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
  bool is_server;
  std::string socket, id;
  std::string rest;  ///< of its arguments
  ParkedMemif device;
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

/// Where a listener is put while no device of ours uses it: it stays bound to the file, but does not stand in the way of another.
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

/// The arguments that a device acts on, but for those that name its socket. The sizes are the client's to say.
std::string rest_of(const DeviceSpec& spec) {
  std::string rest;
  for (const std::string& argument : spec.arguments) {
    const std::string key = argument.substr(0, argument.find('='));
    const bool is_size = key == "bsize" || key == "rsize";
    if (key == "socket" || key == "id" || (is_size && spec.is_memif_server())) continue;
    rest += argument + ",";
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

void park_memif(const DeviceSpec& spec, ParkedMemif device) {
  // What the driver did not give back at the stop it will not give back later.
  const bool is_whole =
      device.pool != nullptr && device.pool->available() == device.pool->capacity();
  if (!is_whole) device.pool.reset();
  Sockets& s = sockets();
  const std::lock_guard lock(s.mutex);
  s.parked.push_back(
      {spec.is_memif_server(), path_of(spec), id_of(spec), rest_of(spec), std::move(device)});
}

std::optional<ParkedMemif> take_parked_memif(const DeviceSpec& spec, std::string& error) {
  Sockets& s = sockets();
  const std::lock_guard lock(s.mutex);
  for (auto p = s.parked.begin(); p != s.parked.end(); ++p) {
    if (p->is_server != spec.is_memif_server() || p->socket != path_of(spec) ||
        p->id != id_of(spec))
      continue;
    if (p->rest == rest_of(spec)) {
      ParkedMemif device = std::move(p->device);
      s.parked.erase(p);
      return device;
    }
    if (!p->is_server) continue;
    error = "socket " + p->socket + ", id " + p->id +
            " was opened in this process before with other arguments (" + p->rest +
            "), and DPDK cannot change them; use the same, or another socket or id";
    return std::nullopt;
  }
  return std::nullopt;
}

NameTaken parked_memif_with(std::uint16_t port) {
  Sockets& s = sockets();
  const std::lock_guard lock(s.mutex);
  for (const Parked& p : s.parked)
    if (p.device.port == port) return p.is_server ? NameTaken::kByServer : NameTaken::kByClient;
  return NameTaken::kNo;
}

ParkedMemif take_parked_client(std::uint16_t port) {
  Sockets& s = sockets();
  const std::lock_guard lock(s.mutex);
  const auto p = std::find_if(s.parked.begin(), s.parked.end(),
                              [&](const Parked& each) { return each.device.port == port; });
  UET_CHECK(p != s.parked.end());
  ParkedMemif device = std::move(p->device);
  s.parked.erase(p);
  return device;
}

std::optional<ParkedMemif> take_any_parked_client() {
  Sockets& s = sockets();
  const std::lock_guard lock(s.mutex);
  // Not a server: its listener would go on with nothing behind it.
  const auto p = std::find_if(s.parked.begin(), s.parked.end(),
                              [](const Parked& each) { return !each.is_server; });
  if (p == s.parked.end()) return std::nullopt;
  ParkedMemif device = std::move(p->device);
  s.parked.erase(p);
  return device;
}

bool drop_parked_pools() {
  Sockets& s = sockets();
  const std::lock_guard lock(s.mutex);
  bool has_dropped = false;
  for (Parked& p : s.parked) {
    has_dropped = has_dropped || p.device.pool != nullptr;
    p.device.pool.reset();
  }
  return has_dropped;
}

}  // namespace uet::dpdk
