/// The memif devices that this process closed. The driver never closes the listener of a server, so a server that is closed stays with
/// us, stopped, until the same one is opened again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/dpdk/device_spec.h"
#include "lib/dpdk/mbuf_pool.h"

namespace uet::dpdk {

/// A stopped memif device with its queues. Their packets lie in `pool`; null: it was given up, and the queues have to be set up anew.
struct ParkedMemif {
  std::uint16_t port = 0;
  std::unique_ptr<MbufPool> pool;
};

/// Keeps a device that `spec` opened. Its driver loses some memory with each device that is closed and each queue that is set up, so
/// clients stay as well.
void park_memif(const DeviceSpec& spec, ParkedMemif device);
/// The device that was parked for the same `spec`; of a server the sizes may differ, which it does not have. Nothing with a sentence in
/// `error`: the driver listens with other arguments there and cannot be told these.
std::optional<ParkedMemif> take_parked_memif(const DeviceSpec& spec, std::string& error);

/// What parked devices stand in the way by their name.
enum class NameTaken { kNo, kByServer, kByClient };
NameTaken parked_memif_with(std::uint16_t port);
/// The client that is parked with this port; its place is the caller's to clear up.
ParkedMemif take_parked_client(std::uint16_t port);

/// A parked client, which may be closed for good at the price of some memory: DPDK has places for 32 ports.
std::optional<ParkedMemif> take_any_parked_client();

/// Gives up the memory of all pools that wait for their device to be opened again; false when there is none.
bool drop_parked_pools();

}  // namespace uet::dpdk
