// A stand-in for the CUDA driver's library, by its names and numbers, written for these tests. What it gives out as a device's memory has no rights
// at its addresses: an access there ends the process. Copies of a stream are begun by the call and happen when the stream is waited for, so a
// caller that does not wait, or changes a buffer meanwhile, gets wrong bytes. They need pinned memory and the right context, as real ones do to be
// asynchronous.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace {

enum Result {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidContext = 201,
  kIllegalAddress = 700,
};

struct Allocation {
  std::size_t size = 0;
  std::uint8_t* inside = nullptr;  ///< the same bytes, for copies
};

struct Copy {
  std::uint8_t* to;
  const std::uint8_t* from;
  std::size_t n;
};

struct Stream {
  std::vector<Copy> copies;
};

struct Driver {
  std::mutex mutex;
  std::map<std::uint64_t, Allocation> devices_memory;
  std::map<std::uint64_t, std::size_t> pinned;
  std::map<void*, std::unique_ptr<Stream>> streams;
  bool is_initialised = false;
  long copies_until_failure = -1;

  std::uint8_t* inside(std::uint64_t address, std::size_t n) {
    auto at = devices_memory.upper_bound(address);
    if (at == devices_memory.begin()) return nullptr;
    --at;
    const std::uint64_t offset = address - at->first;
    if (offset >= at->second.size || n > at->second.size - offset) return nullptr;
    return at->second.inside + offset;
  }
  bool is_pinned(const void* memory, std::size_t n) const {
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    auto at = pinned.upper_bound(address);
    if (at == pinned.begin()) return false;
    --at;
    return address - at->first <= at->second && n <= at->second - (address - at->first);
  }
  Result begin(void* stream, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
    if (to == nullptr || from == nullptr) return kIllegalAddress;
    const auto at = streams.find(stream);
    if (at == streams.end()) return kInvalidValue;
    if (copies_until_failure == 0) return kIllegalAddress;
    if (copies_until_failure > 0) --copies_until_failure;
    at->second->copies.push_back({to, from, n});
    return kSuccess;
  }
};

Driver& driver() {
  static auto* instance = new Driver;
  return *instance;
}

int the_context;  ///< its address names the only one
thread_local std::vector<void*> contexts;

bool is_current() {
  return !contexts.empty() && contexts.back() == &the_context;
}

int device_count() {
  const char* const text = std::getenv("STANDIN_DEVICES");
  return text == nullptr ? 1 : std::atoi(text);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int cuInit(unsigned) {
  driver().is_initialised = true;
  return device_count() == 0 ? kNoDevice : kSuccess;
}

EXPORT int cuDeviceGetCount(int* count) {
  if (!driver().is_initialised) return kNoDevice;
  *count = device_count();
  return kSuccess;
}

EXPORT int cuDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= device_count()) return kInvalidValue;
  *device = ordinal;
  return kSuccess;
}

EXPORT int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &the_context;
  return kSuccess;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int) {
  return kSuccess;
}

EXPORT int cuCtxPushCurrent_v2(void* context) {
  if (context != &the_context) return kInvalidContext;
  contexts.push_back(context);
  return kSuccess;
}

EXPORT int cuCtxPopCurrent_v2(void** context) {
  if (contexts.empty()) return kInvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}

EXPORT int cuPointerGetAttribute(void* value, int attribute, std::uint64_t pointer) {
  constexpr int kContext = 1, kMemoryType = 2;
  Driver& d = driver();
  const std::lock_guard guard(d.mutex);
  const bool is_devices = d.inside(pointer, 1) != nullptr;
  if (!is_devices && !d.is_pinned(reinterpret_cast<void*>(pointer), 1)) return kInvalidValue;
  if (attribute == kMemoryType) {
    const unsigned type = is_devices ? 2 : 1;
    std::memcpy(value, &type, sizeof type);
  } else if (attribute == kContext) {
    void* const none = nullptr;  // as of memory from a pool
    std::memcpy(value, &none, sizeof none);
  } else {
    return kInvalidValue;
  }
  return kSuccess;
}

EXPORT int cuMemGetAddressRange_v2(std::uint64_t* base, std::size_t* size, std::uint64_t pointer) {
  Driver& d = driver();
  const std::lock_guard guard(d.mutex);
  if (!is_current()) return kInvalidContext;
  for (const auto& [begin, allocation] : d.devices_memory) {
    if (pointer < begin || pointer - begin >= allocation.size) continue;
    *base = begin;
    *size = allocation.size;
    return kSuccess;
  }
  return kInvalidValue;
}

EXPORT int cuMemAllocHost_v2(void** memory, std::size_t bytes) {
  if (!is_current()) return kInvalidContext;
  *memory = std::malloc(bytes);
  if (*memory == nullptr) return kOutOfMemory;
  Driver& d = driver();
  const std::lock_guard guard(d.mutex);
  d.pinned[reinterpret_cast<std::uintptr_t>(*memory)] = bytes;
  return kSuccess;
}

EXPORT int cuMemFreeHost(void* memory) {
  Driver& d = driver();
  const std::lock_guard guard(d.mutex);
  if (d.pinned.erase(reinterpret_cast<std::uintptr_t>(memory)) == 0) return kInvalidValue;
  std::free(memory);
  return kSuccess;
}

EXPORT int cuStreamCreate(void** stream, unsigned flags) {
  constexpr unsigned kNonBlocking = 1;
  if (!is_current()) return kInvalidContext;
  // One that waits for the program's kernels would wait for those that wait for us.
  if (flags != kNonBlocking) return kInvalidValue;
  Driver& d = driver();
  const std::lock_guard guard(d.mutex);
  auto made = std::make_unique<Stream>();
  *stream = made.get();
  d.streams[*stream] = std::move(made);
  return kSuccess;
}

EXPORT int cuStreamDestroy_v2(void* stream) {
  Driver& d = driver();
  const std::lock_guard guard(d.mutex);
  return d.streams.erase(stream) == 1 ? kSuccess : kInvalidValue;
}

EXPORT int cuStreamSynchronize(void* stream) {
  Driver& d = driver();
  const std::lock_guard guard(d.mutex);
  if (!is_current()) return kInvalidContext;
  const auto at = d.streams.find(stream);
  if (at == d.streams.end()) return kInvalidValue;
  for (const Copy& copy : at->second->copies) std::memcpy(copy.to, copy.from, copy.n);
  at->second->copies.clear();
  return kSuccess;
}

EXPORT int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t n, void* stream) {
  Driver& d = driver();
  const std::lock_guard guard(d.mutex);
  if (!is_current()) return kInvalidContext;
  if (!d.is_pinned(from, n)) return kInvalidValue;
  return d.begin(stream, d.inside(to, n), static_cast<const std::uint8_t*>(from), n);
}

EXPORT int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t n, void* stream) {
  Driver& d = driver();
  const std::lock_guard guard(d.mutex);
  if (!is_current()) return kInvalidContext;
  if (!d.is_pinned(to, n)) return kInvalidValue;
  return d.begin(stream, static_cast<std::uint8_t*>(to), d.inside(from, n), n);
}

EXPORT int cuGetErrorName(int result, const char** name) {
  *name = result == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR";
  return kSuccess;
}

EXPORT int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  if (!is_current()) return kInvalidContext;
  const int file = ::memfd_create("device", 0);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) return kOutOfMemory;
  void* const outside = ::mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, file, 0);
  void* const inside = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (outside == MAP_FAILED || inside == MAP_FAILED) return kOutOfMemory;
  Driver& d = driver();
  const std::lock_guard guard(d.mutex);
  *address = reinterpret_cast<std::uintptr_t>(outside);
  d.devices_memory[*address] = {bytes, static_cast<std::uint8_t*>(inside)};
  return kSuccess;
}

EXPORT int cuMemFree_v2(std::uint64_t address) {
  Driver& d = driver();
  const std::lock_guard guard(d.mutex);
  const auto at = d.devices_memory.find(address);
  if (at == d.devices_memory.end()) return kInvalidValue;
  ::munmap(reinterpret_cast<void*>(address), at->second.size);
  ::munmap(at->second.inside, at->second.size);
  d.devices_memory.erase(at);
  return kSuccess;
}

/// The program's own copies, done when the call returns.
EXPORT int cuMemcpyHtoD_v2(std::uint64_t to, const void* from, std::size_t n) {
  Driver& d = driver();
  const std::lock_guard guard(d.mutex);
  std::uint8_t* const inside = d.inside(to, n);
  if (!is_current() || inside == nullptr) return kInvalidValue;
  std::memcpy(inside, from, n);
  return kSuccess;
}

EXPORT int cuMemcpyDtoH_v2(void* to, std::uint64_t from, std::size_t n) {
  Driver& d = driver();
  const std::lock_guard guard(d.mutex);
  const std::uint8_t* const inside = d.inside(from, n);
  if (!is_current() || inside == nullptr) return kInvalidValue;
  std::memcpy(to, inside, n);
  return kSuccess;
}

// --- What a test does with it

/// -1: never.
EXPORT void standin_fail_after(long copies) {
  Driver& d = driver();
  const std::lock_guard guard(d.mutex);
  d.copies_until_failure = copies;
}
