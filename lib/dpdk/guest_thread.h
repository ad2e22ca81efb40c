/// Threads of ours and of DPDK's inside the application's process.
#pragma once

#include <functional>

namespace uet::dpdk {

/// Runs `work` on a thread of its own with every asynchronous signal blocked, and waits for its end; throws what it throws. Drivers run there while they
/// are probed, started and closed: threads that they make inherit the mask, so that the application's signals reach the application's
/// threads only; a SIGPIPE of a driver whose peer is gone ends with the thread; and the caller's thread still takes its own signals,
/// be it Ctrl-C, when a driver waits.
void run_on_guest_thread(const std::function<void()>& work);

/// Such a thread that goes on by itself; false when there are no more threads to be had.
bool start_guest_thread(const char* name, std::function<void()> work);

/// True in a child of the process that started DPDK here. It has no thread of DPDK's and shares hugepages with its parent, so it must
/// neither call a driver nor touch a mempool.
bool is_forked_child();

/// Lets is_forked_child() know. Called when DPDK is started, by ensure_eal().
void watch_forks();

}  // namespace uet::dpdk
