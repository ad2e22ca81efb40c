/// Memory for keys: pages of their own that are neither swapped out nor written to core dumps, and wiped when they go. A child made by
/// fork() finds zeros there: with a copy of the keys and of their counters it could repeat IVs of its parent. [TSS 7.6, 13.2]
#pragma once

#include <cstddef>

namespace uet::tss {

/// Zeroed, from the start of a page. Locking is attempted: what the system refuses to lock (ulimit -l) is used all the same, since an
/// endpoint that does not start protects nothing; unlocked_allocations() counts it. Throws std::bad_alloc.
void* allocate_locked(std::size_t size);
void free_locked(void* memory, std::size_t size);
/// How often this process could not lock, or not exclude from core dumps, what it allocated.
std::size_t unlocked_allocations();

/// Base of objects that hold keys: `new` puts them into such memory.
struct InLockedMemory {
  static void* operator new(std::size_t size) { return allocate_locked(size); }
  static void operator delete(void* memory, std::size_t size) { free_locked(memory, size); }
};

/// For containers that hold keys. A page each at least: not for many small ones.
template <typename T>
struct LockedAllocator {
  using value_type = T;
  LockedAllocator() = default;
  template <typename U>
  LockedAllocator(const LockedAllocator<U>&) {}  // NOLINT: converting, as allocators are
  T* allocate(std::size_t n) { return static_cast<T*>(allocate_locked(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) { free_locked(p, n * sizeof(T)); }
  bool operator==(const LockedAllocator&) const = default;
};

}  // namespace uet::tss
