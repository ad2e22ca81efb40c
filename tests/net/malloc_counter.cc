#include "tests/net/malloc_counter.h"

#include <cstddef>

// glibc's own entry points, under the names that replacement functions may call.
extern "C" void* __libc_malloc(std::size_t);
extern "C" void* __libc_calloc(std::size_t, std::size_t);
extern "C" void* __libc_realloc(void*, std::size_t);

namespace {
thread_local std::uint64_t calls = 0;
}

namespace uet {
std::uint64_t malloc_calls() {
  return calls;
}
}  // namespace uet

extern "C" __attribute__((visibility("default"))) void* malloc(std::size_t n) {
  ++calls;
  return __libc_malloc(n);
}
extern "C" __attribute__((visibility("default"))) void* calloc(std::size_t n, std::size_t size) {
  ++calls;
  return __libc_calloc(n, size);
}
extern "C" __attribute__((visibility("default"))) void* realloc(void* p, std::size_t n) {
  ++calls;
  return __libc_realloc(p, n);
}
