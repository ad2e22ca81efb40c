#include "provider/cuda_driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include "provider/provider.h"

namespace uet::provider {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

template <typename Function>
bool bind(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

/// The names are those that the driver's headers map its calls to.
bool bind_all(void* library, CudaDriver& d) {
  return bind(library, "cuInit", d.init) && bind(library, "cuDeviceGetCount", d.device_count) &&
         bind(library, "cuDeviceGet", d.device_get) &&
         bind(library, "cuDevicePrimaryCtxRetain", d.primary_retain) &&
         bind(library, "cuDevicePrimaryCtxRelease_v2", d.primary_release) &&
         bind(library, "cuCtxPushCurrent_v2", d.push_context) &&
         bind(library, "cuCtxPopCurrent_v2", d.pop_context) &&
         bind(library, "cuPointerGetAttribute", d.pointer_attribute) &&
         bind(library, "cuMemGetAddressRange_v2", d.address_range) &&
         bind(library, "cuMemAllocHost_v2", d.host_alloc) &&
         bind(library, "cuMemFreeHost", d.host_free) &&
         bind(library, "cuStreamCreate", d.stream_create) &&
         bind(library, "cuStreamDestroy_v2", d.stream_destroy) &&
         bind(library, "cuStreamSynchronize", d.stream_synchronize) &&
         bind(library, "cuMemcpyHtoDAsync_v2", d.copy_to_device) &&
         bind(library, "cuMemcpyDtoHAsync_v2", d.copy_from_device) &&
         bind(library, "cuGetErrorName", d.error_name);
}

/// Null, and to the log why.
const CudaDriver* load() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    log_info(std::string("no device memory: ") + ::dlerror());
    return nullptr;
  }
  static CudaDriver driver;
  if (!bind_all(library, driver)) {
    log_warning(std::string("no device memory: ") + kLibrary + " lacks calls that we need");
    ::dlclose(library);
    return nullptr;
  }
  int devices = 0;
  CudaDriver::Result result = driver.init(0);
  if (result == CudaDriver::kSuccess) result = driver.device_count(&devices);
  if (result != CudaDriver::kSuccess || devices == 0) {
    log_info("no device memory: " + (devices == 0 && result == CudaDriver::kSuccess
                                         ? "there is no device"
                                         : driver.name_of(result)));
    return nullptr;  // stays loaded: the driver may have threads
  }
  return &driver;
}

}  // namespace

const CudaDriver* CudaDriver::find() {
  static const pid_t loaded_by = getpid();
  static const CudaDriver* const driver = load();
  return loaded_by == getpid() ? driver : nullptr;  // it does not survive fork()
}

std::string CudaDriver::name_of(Result result) const {
  const char* name = nullptr;
  if (error_name(result, &name) != kSuccess || name == nullptr)
    return "CUDA error " + std::to_string(result);
  return name;
}

}  // namespace uet::provider
