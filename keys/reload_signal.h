/// A signal that asks every endpoint of the process to read its key file again, also when it looks unchanged. [TSS 13.2]
#pragma once

#include <cstdint>

namespace uet::keys {

/// How often it was asked so far, by a signal or by a call.
std::uint64_t reload_requests();
/// Asks now. May be called in a signal handler.
void request_reload();

enum class ReloadSignal : std::uint8_t { kHup, kUsr1, kUsr2 };
/// From now on the signal asks, and does nothing else; what handled it before is forgotten.
void reload_on_signal(ReloadSignal which);

}  // namespace uet::keys
