#include "tests/net/scripted_interfaces.h"

#include <ifaddrs.h>

namespace uet::udp::testing {
namespace {

std::size_t count = 0;
bool hides_addresses = false;

}  // namespace

std::size_t enumerations() {
  return count;
}
void hide_addresses(bool hides) {
  hides_addresses = hides;
}

}  // namespace uet::udp::testing

extern "C" {

int __real_getifaddrs(ifaddrs** list);
int __wrap_getifaddrs(ifaddrs** list);

int __wrap_getifaddrs(ifaddrs** list) {
  ++uet::udp::testing::count;
  *list = nullptr;
  return uet::udp::testing::hides_addresses ? 0 : __real_getifaddrs(list);
}
}
