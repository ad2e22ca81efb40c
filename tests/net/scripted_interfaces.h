/// What the kernel lists of this host's addresses, as a test wants it. getifaddrs() is replaced when the test program is linked.
#pragma once

#include <cstddef>

namespace uet::udp::test {

/// How often the kernel has been asked for the list.
std::size_t enumerations();

/// From now on, or no longer, the list is empty.
void hide_addresses(bool hides);
/// From now on the list is refused with errno `error`; 0: no longer.
void refuse_addresses(int error);

}  // namespace uet::udp::test
