#include "lib/dpdk/memif_sockets.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "lib/dpdk/memif_listener.h"

namespace uet::dpdk {

namespace {

struct Parked {
  bool is_server;
  std::string socket, id;
  std::string rest;  ///< of its arguments
  ParkedMemif device;
};

struct Sockets {
  std::mutex mutex;
  std::vector<Parked> parked;
};

Sockets& sockets() {
  static auto* const instance = new Sockets;
  return *instance;
}

std::string path_of(const DeviceSpec& spec) {
  const SocketPlace place = SocketPlace::of(spec);
  return (place.is_abstract ? "@" : "") + place.path;
}

/// The arguments that a device acts on, but for those that name its socket. The sizes are the client's to say.
std::string rest_of(const DeviceSpec& spec) {
  std::string rest;
  for (const std::string& argument : spec.arguments) {
    const std::string key = argument.substr(0, argument.find('='));
    const bool is_size = key == "bsize" || key == "rsize";
    if (key == "socket" || key == "socket-abstract" || key == "id" ||
        (is_size && spec.is_memif_server()))
      continue;
    rest += argument + ",";
  }
  return rest;
}

std::string id_of(const DeviceSpec& spec) {
  const std::string id = spec.argument("id");
  return id.empty() ? "0" : id;
}

}  // namespace

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
    error = "socket " + SocketPlace::of(spec).path + ", id " + p->id +
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
