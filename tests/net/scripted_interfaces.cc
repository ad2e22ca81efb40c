#include "tests/net/scripted_interfaces.h"

#include <ifaddrs.h>

#include <cerrno>

namespace uet::udp::test {
namespace {

std::size_t count = 0;
bool hides_addresses = false;
int refusal = 0;

}  // namespace

std::size_t enumerations() {
  return count;
}
void hide_addresses(bool hides) {
  hides_addresses = hides;
}
void refuse_addresses(int error) {
  refusal = error;
}

}  // namespace uet::udp::test

extern "C" {

int __real_getifaddrs(ifaddrs** list);
int __wrap_getifaddrs(ifaddrs** list);

int __wrap_getifaddrs(ifaddrs** list) {
  ++uet::udp::test::count;
  *list = nullptr;
  if (uet::udp::test::refusal != 0) {
    errno = uet::udp::test::refusal;
    return -1;
  }
  return uet::udp::test::hides_addresses ? 0 : __real_getifaddrs(list);
}
}
