/// What the system refuses to this test program: memory, threads, descriptors, sockets, packets. The calls are replaced in the
/// program, and with that in the provider that libfabric loads into it. Also a library to preload into any program: UET_TEST_FAULTS
/// then says what fail_traffic() would be told, and UET_TEST_MUTE names a file that, while it exists, loses what the process sends.
#pragma once

#include <cstdint>

namespace uet::provider::testing {

/// The `n`-th operator new of the process from now on fails, once; 0: none. Any thread counts.
void fail_allocation(std::uint64_t n);
/// Whether that has happened.
bool has_failed_allocation();

/// The `n`-th of the calls that open things (sockets, descriptors, threads) fails, once; 0: none.
void fail_opening(std::uint64_t n);
bool has_failed_opening();

/// From now on this is called, in the thread concerned, where bind() finds an address in use; null: nothing is.
void when_address_in_use(void (*call)());

/// From now on, or no longer, no connection is accepted for want of a descriptor.
void fail_accepts(bool fails);
/// How often that was tried since.
std::uint64_t failed_accepts();
/// How many connections were accepted.
std::uint64_t accepts();

/// From now on, or no longer, there is no folder in which uet-stat would look.
void hide_live_folders(bool hides);

/// From now on, of the calls that move packets or wait for them this share fails or moves fewer, in an order that `seed` decides.
/// 0: none.
void fail_traffic(std::uint32_t percent, std::uint64_t seed);
/// How many did.
std::uint64_t failed_traffic();

/// From now on, or no longer, a thread that waits for two descriptors is not told of the second.
void lose_arrivals(bool loses);

}  // namespace uet::provider::testing
