#include "tss/locked_memory.h"

#include <sys/mman.h>

#include <atomic>
#include <new>

#include "tss/secret.h"

namespace uet::tss {
namespace {

std::atomic<std::size_t> unlocked{0};

}  // namespace

void* allocate_locked(std::size_t size) {
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  const bool is_locked = ::mlock(memory, size) == 0;
  const bool is_kept_back = ::madvise(memory, size, MADV_DONTDUMP) == 0;
  // Best effort: kernels before 4.14 do not know it.
  (void)::madvise(memory, size, MADV_WIPEONFORK);
  if (!is_locked || !is_kept_back) unlocked.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

void free_locked(void* memory, std::size_t size) {
  if (memory == nullptr) return;
  cleanse(memory, size);
  ::munmap(memory, size);
}

std::size_t unlocked_allocations() {
  return unlocked.load(std::memory_order_relaxed);
}

}  // namespace uet::tss
