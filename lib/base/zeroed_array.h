/// Large tables that are mostly never used.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

namespace uet::base {

/// An array whose elements begin as zero bytes, of a type for which that is a valid value. A large one is pages of the system's
/// own, so that elements that are never written to cost address space only: memory that malloc() uses again, calloc() would clear.
template <typename T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  explicit ZeroedArray(std::size_t size) : data_(allocate(size), Free{size * sizeof(T)}) {}

  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  static constexpr std::size_t kPagesFrom = 65536;  ///< bytes

  struct Free {
    std::size_t bytes;
    void operator()(T* p) const {
      if (bytes >= kPagesFrom)
        munmap(p, bytes);
      else
        std::free(p);
    }
  };

  static T* allocate(std::size_t size) {
    if (size > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_alloc();
    const std::size_t bytes = size * sizeof(T);
    void* p = nullptr;
    if (bytes >= kPagesFrom) {
      p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (p == MAP_FAILED) p = nullptr;
    } else {
      p = std::calloc(size, sizeof(T));
    }
    if (p == nullptr) throw std::bad_alloc();
    return static_cast<T*>(p);
  }

  std::unique_ptr<T[], Free> data_;
};

}  // namespace uet::base
