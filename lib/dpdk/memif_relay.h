/// Control connections of memif servers, passed on. DPDK's driver accepts a client, greets it, and when the greeting cannot be sent,
/// because the client has gone meanwhile, closes the connection without telling EAL, which then ends the process ("Error adding
/// fd"), or gives the next connection two readers. Nor does it ever close a listener. So clients reach a listener of ours, the
/// driver listens under a name that only this process knows, and a connection to it stays until its greeting has come. Frames
/// do not pass here: they go by memory that the two ends share.
#pragma once

#include <string>

#include "lib/dpdk/memif_listener.h"

namespace uet::dpdk {

/// Where the driver is to listen for clients of `place`: the same name for as long as the process lives.
SocketPlace driver_place_for(const SocketPlace& place);

/// Listens at the place of the server `spec` and passes its clients on. False: `error` says why not. Several servers may share a place.
bool start_relay(const DeviceSpec& spec, std::string& error);
/// The other end of that: when it was the last server there, others may listen.
void stop_relay(const DeviceSpec& spec);

}  // namespace uet::dpdk
