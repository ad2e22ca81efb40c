/// The sockets on which memif devices of this process listen. The driver closes a listener of its own never, so a server that is
/// closed stays with us, stopped, until the same one is opened again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/dpdk/device_spec.h"

namespace uet::dpdk {

/// Takes the place where the server `spec` listens: a socket that a dead process left behind is removed, one that we put aside is put
/// back. False: `error` says who has it. Abstract sockets have no place in the file system and are always free here.
bool claim_memif_socket(const DeviceSpec& spec, std::string& error);
/// The other end of that. When no server of this process is left there, others may listen at that place.
void release_memif_socket(const DeviceSpec& spec);

/// Keeps the stopped device `port`, which `spec` opened.
void park_memif_server(const DeviceSpec& spec, std::uint16_t port);
bool is_parked_memif_server(std::uint16_t port);
/// The device that was parked for the same `spec`: the sizes, which a server does not have, may differ. Nothing with a sentence in
/// `error`: the driver knows socket and id already and cannot be told other arguments.
std::optional<std::uint16_t> take_parked_memif_server(const DeviceSpec& spec, std::string& error);

}  // namespace uet::dpdk
