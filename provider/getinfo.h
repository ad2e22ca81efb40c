/// fi_getinfo: what this provider offers, filtered strictly by what is asked for.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

#include "fep/settings.h"
#include "lib/base/result.h"
#include "provider/port_picker.h"

namespace uet::provider {

/// Everything on offer.
inline constexpr std::uint64_t kAllCaps =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_RECV | FI_READ | FI_WRITE |
    FI_REMOTE_READ | FI_REMOTE_WRITE | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_RMA_EVENT |
    FI_FENCE | FI_LOCAL_COMM | FI_REMOTE_COMM;

inline constexpr std::uint64_t kTxOpFlags = FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE |
                                            FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE |
                                            FI_MATCH_COMPLETE;
inline constexpr std::uint64_t kRxOpFlags = FI_COMPLETION | FI_MULTI_RECV;

inline constexpr std::uint64_t kMsgOrders =
    FI_ORDER_STRICT | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW |
    FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;

inline constexpr std::size_t kMrIovLimit = 16;
inline constexpr std::size_t kMaxMessage = 0xffff'ffff;

/// libfabric's entry point; -FI_ENODATA when nothing suits.
int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** out);

/// For a domain of `info`: takes the port behind its source address, or behind the process's own
/// where it has none. The answer may be another one than `info` says, see PortPicker. Any thread.
base::Result<PortChoice, std::string> take_port(const fep::Settings& settings, const fi_info& info);

/// Around fork(), so that a child finds the addresses of this process in order and lets them go.
void lock_ports();
void unlock_ports();
void abandon_ports_in_child();

}  // namespace uet::provider
