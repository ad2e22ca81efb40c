#include "tests/fep/interpose.h"

#include "tests/base/sanitizers.h"

namespace uet::test {
namespace {
std::uint64_t allocations = 0;
std::uint64_t large_copied_bytes = 0;
}  // namespace

LibraryCalls library_calls() {
  return {allocations, large_copied_bytes};
}

#if UET_SANITIZED
bool can_interpose() {
  return false;
}
}  // namespace uet::test
#else
bool can_interpose() {
  return true;
}

namespace {
constexpr std::size_t kLarge = 1024;
void note_copy(std::size_t n) {
  if (n >= kLarge) large_copied_bytes += n;
}
}  // namespace
}  // namespace uet::test

namespace {
/// In a way that the compiler does not make a call of memcpy of.
void copy_upwards(void* to, const void* from, std::size_t n) {
#ifdef __x86_64__
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
#else
  auto* t = static_cast<volatile char*>(to);
  const auto* f = static_cast<const volatile char*>(from);
  for (std::size_t i = 0; i < n; ++i) t[i] = f[i];
#endif
}
}  // namespace

// glibc's own entries. The program's definitions below win over the library's for every caller in
// the process.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t n) {
  ++uet::test::allocations;
  return __libc_malloc(n);
}
void* calloc(std::size_t n, std::size_t size) {
  ++uet::test::allocations;
  return __libc_calloc(n, size);
}
void* realloc(void* p, std::size_t n) {
  ++uet::test::allocations;
  return __libc_realloc(p, n);
}
void* aligned_alloc(std::size_t alignment, std::size_t n) {
  ++uet::test::allocations;
  return __libc_memalign(alignment, n);
}

void* memcpy(void* __restrict to, const void* __restrict from, std::size_t n) {
  uet::test::note_copy(n);
  copy_upwards(to, from, n);
  return to;
}
void* memmove(void* to, const void* from, std::size_t n) {
  uet::test::note_copy(n);
  if (to < from || static_cast<const char*>(from) + n <= to) {
    copy_upwards(to, from, n);
  } else if (n != 0) {
    auto* t = static_cast<volatile char*>(to);
    const auto* f = static_cast<const volatile char*>(from);
    while (n-- > 0) t[n] = f[n];
  }
  return to;
}
}
#endif
