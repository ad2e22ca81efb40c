/// The CUDA driver's library, found at run time: nothing of it is linked, and nothing of CUDA is needed to build this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace uet::provider {

/// What we call of the driver's interface. Numbers and layouts are the driver's, and stable.
struct CudaDriver {
  using Result = int;  ///< 0: done
  using Context = void*;
  using Stream = void*;
  using Address = std::uint64_t;

  static constexpr Result kSuccess = 0;
  static constexpr int kAttributeContext = 1, kAttributeMemoryType = 2;  ///< of a pointer
  static constexpr unsigned kMemoryOfHost = 1;
  /// A stream that waits for nothing that the program queued elsewhere: its kernels may wait for us.
  static constexpr unsigned kStreamNonBlocking = 1;

  Result (*init)(unsigned flags) = nullptr;
  Result (*device_count)(int* count) = nullptr;
  Result (*device_get)(int* device, int ordinal) = nullptr;
  Result (*primary_retain)(Context* context, int device) = nullptr;
  Result (*primary_release)(int device) = nullptr;
  Result (*push_context)(Context context) = nullptr;
  Result (*pop_context)(Context* context) = nullptr;
  Result (*pointer_attribute)(void* value, int attribute, Address pointer) = nullptr;
  Result (*address_range)(Address* base, std::size_t* size, Address pointer) = nullptr;
  Result (*host_alloc)(void** memory, std::size_t bytes) = nullptr;
  Result (*host_free)(void* memory) = nullptr;
  Result (*stream_create)(Stream* stream, unsigned flags) = nullptr;
  Result (*stream_destroy)(Stream stream) = nullptr;
  Result (*stream_synchronize)(Stream stream) = nullptr;
  Result (*copy_to_device)(Address to, const void* from, std::size_t n, Stream stream) = nullptr;
  Result (*copy_from_device)(void* to, Address from, std::size_t n, Stream stream) = nullptr;
  Result (*error_name)(Result result, const char** name) = nullptr;

  /// The driver of this process, looked for by the first call; null without the library or without a device. Stays loaded.
  static const CudaDriver* find();

  std::string name_of(Result result) const;
};

}  // namespace uet::provider
