/// The af_xdp driver forgets to close its socket, its map and its program, and an interface has room for one socket only.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace uet::dpdk {

/// Descriptors for AF_XDP and BPF, by what is behind them rather than by number.
using XdpDescriptors = std::vector<std::string>;

/// What `work` opens and leaves open. Nothing tells whose a descriptor is but the time when it appears: while one thread of the process
/// is in such work others wait.
XdpDescriptors xdp_descriptors_opened_by(const std::function<void()>& work);

/// Closes those of `descriptors` that are still open; true when a socket was among them. The kernel lets go of its queue a little
/// later, and does not tell when.
bool close_xdp_descriptors(const XdpDescriptors& descriptors);

}  // namespace uet::dpdk
