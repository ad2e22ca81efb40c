/// Runs things on DPDK's interrupt thread. The memif driver handles its control connection there and does not expect a
/// device to be started, stopped or closed by another thread meanwhile (EAL aborts when a descriptor vanishes under it).
#pragma once

#include <functional>

namespace uet::dpdk {

/// Runs `work` there and waits for its end; throws what it throws. Must not be called from that thread, nor inside a burst, nor in a forked child, which has
/// no such thread.
void run_on_interrupt_thread(const std::function<void()>& work);

/// Runs function(argument) there when the InterruptGate lets it; false when that cannot be arranged.
bool post_to_interrupt_thread(void (*function)(void*), void* argument);
/// Takes back what was posted and has not begun. Only from the interrupt thread itself.
void cancel_on_interrupt_thread(void (*function)(void*), void* argument);

}  // namespace uet::dpdk
