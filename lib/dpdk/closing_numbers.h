/// Descriptor numbers of control connections that the memif driver closes. EAL's interrupt thread takes the events of all its
/// descriptors at once and knows them by number only. Where a number is closed and used again while it goes through them, the
/// new descriptor gets the event of the old one: the driver reads a connection on which nothing has arrived, and the thread waits
/// there, perhaps for something that it would have to do itself.
#pragma once

#include <functional>

namespace uet::dpdk {

/// Runs `work`, which closes connections and opens none. Their numbers stay taken until the interrupt thread has asked the kernel anew.
/// On that thread.
void close_connections(const std::function<void()>& work);

}  // namespace uet::dpdk
