#include "tests/net/scripted_interfaces.h"

#include <ifaddrs.h>

namespace uet::udp::test {
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

}  // namespace uet::udp::test

extern "C" {

int __real_getifaddrs(ifaddrs** list);
int __wrap_getifaddrs(ifaddrs** list);

int __wrap_getifaddrs(ifaddrs** list) {
  ++uet::udp::test::count;
  *list = nullptr;
  return uet::udp::test::hides_addresses ? 0 : __real_getifaddrs(list);
}
}
