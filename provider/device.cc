#include "provider/device.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "provider/provider.h"

namespace uet::provider {
namespace {

std::uint64_t number(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address);
}

/// The driver works on the context on top of the calling thread's stack.
class InContext {
 public:
  InContext(const CudaDriver& driver, CudaDriver::Context context)
      : driver_(driver), result_(driver.push_context(context)) {}
  ~InContext() {
    CudaDriver::Context popped = nullptr;
    if (result_ == CudaDriver::kSuccess) (void)driver_.pop_context(&popped);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
  CudaDriver::Result result() const { return result_; }

 private:
  const CudaDriver& driver_;
  const CudaDriver::Result result_;
};

template <typename Call>
CudaDriver::Result within(const CudaDriver& driver, CudaDriver::Context context, Call&& call) {
  const InContext in(driver, context);
  return in.result() != CudaDriver::kSuccess ? in.result() : call();
}

}  // namespace

std::unique_ptr<Device> Device::open(const CudaDriver& driver, CudaDriver::Context own_context,
                                     int ordinal) {
  std::unique_ptr<Device> device(new Device(driver));
  if (!device->start(own_context, ordinal)) return nullptr;
  return device;
}

bool Device::start(CudaDriver::Context own_context, int ordinal) {
  context_ = own_context;
  if (context_ == nullptr) {
    int device = 0;
    if (!check(driver_.device_get(&device, ordinal), "find the device")) return false;
    if (!check(driver_.primary_retain(&context_, device), "use the device")) return false;
    retained_ = ordinal;
  }
  const auto make = [&] {
    const auto made = driver_.host_alloc(&pool_, Bounce::kPool);
    if (made != CudaDriver::kSuccess) return made;
    return driver_.stream_create(&stream_, CudaDriver::kStreamNonBlocking);
  };
  if (!check(within(driver_, context_, make), "make pinned buffers")) return false;
  DeviceCopier& self = *this;
  bounce_.emplace(self, static_cast<std::uint8_t*>(pool_));
  return true;
}

/// The context may be gone before us, and its stream and buffers with it: then there is nothing to free.
Device::~Device() {
  const auto free = [&] {
    if (stream_ != nullptr) (void)driver_.stream_destroy(stream_);
    if (pool_ != nullptr) (void)driver_.host_free(pool_);
    return CudaDriver::kSuccess;
  };
  if (context_ != nullptr) (void)within(driver_, context_, free);
  int device = 0;
  if (retained_ && driver_.device_get(&device, *retained_) == CudaDriver::kSuccess)
    (void)driver_.primary_release(device);
}

bool Device::check(CudaDriver::Result result, const char* what) {
  if (result == CudaDriver::kSuccess) return true;
  tell_user(std::string("the CUDA driver refuses to ") + what + ": " + driver_.name_of(result));
  return false;
}

bool Device::add(std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t at = begin; at < end;) {
    CudaDriver::Address base = 0;
    std::size_t size = 0;
    const auto ask = [&] { return driver_.address_range(&base, &size, at); };
    const bool is_known = within(driver_, context_, ask) == CudaDriver::kSuccess && size != 0 &&
                          base <= at && at - base < size;
    if (!is_known) {
      remove(begin, at);
      return false;
    }
    Allocation& allocation = allocations_[base];
    allocation.end = base + size;
    ++allocation.users;
    at = base + size;
  }
  return true;
}

void Device::remove(std::uint64_t begin, std::uint64_t end) {
  auto at = allocations_.upper_bound(begin);
  if (at != allocations_.begin()) --at;
  while (at != allocations_.end() && at->first < end) {
    if (at->second.end > begin && --at->second.users == 0)
      at = allocations_.erase(at);
    else
      ++at;
  }
  bounce_->forget(begin, end);
}

const std::pair<const std::uint64_t, Device::Allocation>* Device::allocation_of(
    std::uint64_t address) const {
  auto at = allocations_.upper_bound(address);
  if (at == allocations_.begin()) return nullptr;
  --at;
  return address < at->second.end ? &*at : nullptr;
}

void Device::renew(std::span<const iovec> iov) {
  for (const iovec& v : iov) bounce_->forget(number(v.iov_base), number(v.iov_base) + v.iov_len);
}

void Device::drain() {
  if (!is_broken_ && !bounce_->drain()) give_up();
}

bool Device::read(std::uint64_t from, std::uint8_t* out, std::size_t n, bool is_steady) {
  while (n > 0) {
    // Without one the region was closed while in use: whether the memory is still there is for the driver to say.
    const auto* const allocation = allocation_of(from);
    const std::size_t room =
        allocation != nullptr ? static_cast<std::size_t>(allocation->second.end - from) : n;
    const std::size_t part = std::min({n, room, Bounce::kBytes});
    if (!bounce_->read(
            {.at = from, .n = part, .room = room, .is_steady = is_steady && allocation != nullptr},
            out))
      return false;
    from += part;
    out += part;
    n -= part;
  }
  return true;
}

bool Device::View::is_of_cpu(const std::uint8_t* address) const {
  return is_mixed_ && !device_.contains(number(address));
}

bool Device::View::read(const std::uint8_t* from, std::uint8_t* out, std::size_t n) {
  if (is_of_cpu(from)) {
    std::memcpy(out, from, n);
    return true;
  }
  if (!device_.is_broken_ && device_.read(number(from), out, n, is_steady_)) return true;
  device_.give_up();
  std::memset(out, 0, n);
  return false;
}

bool Device::View::write(std::uint8_t* to, const std::uint8_t* in, std::size_t n) {
  if (is_of_cpu(to)) {
    std::memcpy(to, in, n);
    return true;
  }
  if (!device_.is_broken_ && !device_.bounce_->write(number(to), in, n)) device_.give_up();
  return !device_.is_broken_;
}

bool Device::View::settle() {
  device_.drain();
  return !device_.is_broken_;
}

bool Device::start_to_device(Address to, const std::uint8_t* from, std::size_t n) {
  return check(
      within(driver_, context_, [&] { return driver_.copy_to_device(to, from, n, stream_); }),
      "copy to its memory");
}

bool Device::start_from_device(std::uint8_t* to, Address from, std::size_t n) {
  return check(
      within(driver_, context_, [&] { return driver_.copy_from_device(to, from, n, stream_); }),
      "copy from its memory");
}

bool Device::finish() {
  return check(within(driver_, context_, [&] { return driver_.stream_synchronize(stream_); }),
               "finish copies");
}

void Device::give_up() {
  if (std::exchange(is_broken_, true)) return;
  tell_user("a device is out of use: operations on its memory fail from now on");
}

// --- All of them

int Devices::add(std::span<const iovec> iov, int ordinal, Id& out) {
  const CudaDriver* const driver = CudaDriver::find();
  if (driver == nullptr) return -FI_ENOSYS;
  const auto first = std::ranges::find_if(iov, [](const iovec& v) { return v.iov_len > 0; });
  if (first == iov.end()) {
    out = 0;  // nothing will be reached
    return 0;
  }
  unsigned type = 0;
  CudaDriver::Context own = nullptr;
  const CudaDriver::Address pointer = number(first->iov_base);
  if (driver->pointer_attribute(&type, CudaDriver::kAttributeMemoryType, pointer) !=
      CudaDriver::kSuccess)
    return -FI_EINVAL;  // no pointer of the driver's
  if (type == CudaDriver::kMemoryOfHost) {
    out = 0;
    return 0;
  }
  // Memory of a pool or of several devices has no context of its own.
  if (driver->pointer_attribute(&own, CudaDriver::kAttributeContext, pointer) !=
      CudaDriver::kSuccess)
    own = nullptr;
  auto at = std::ranges::find_if(devices_, [&](const auto& d) { return d->serves(own, ordinal); });
  if (at == devices_.end()) {
    if (devices_.size() == kMax) return -FI_ENOSPC;
    auto device = Device::open(*driver, own, ordinal);
    if (device == nullptr) return -FI_ENODEV;
    devices_.push_back(std::move(device));
    at = devices_.end() - 1;
  }
  const auto id = static_cast<Id>(at - devices_.begin() + 1);
  for (std::size_t i = 0; i < iov.size(); ++i) {
    const std::uint64_t begin = number(iov[i].iov_base);
    if ((*at)->add(begin, begin + iov[i].iov_len)) continue;
    remove(iov.first(i), id);
    return -FI_EINVAL;
  }
  out = id;
  return 0;
}

void Devices::remove(std::span<const iovec> iov, Id id) {
  Device* const device = at(id);
  if (device == nullptr) return;
  for (const iovec& v : iov) device->remove(number(v.iov_base), number(v.iov_base) + v.iov_len);
}

Devices::Id Devices::id_at(std::uint64_t address) const {
  const auto at =
      std::ranges::find_if(devices_, [=](const auto& d) { return d->contains(address); });
  return at == devices_.end() ? Id{0} : static_cast<Id>(at - devices_.begin() + 1);
}

std::optional<Devices::Place> Devices::find(std::span<const iovec> iov) const {
  Place place;
  bool is_mixed = false;
  for (const iovec& v : iov) {
    if (v.iov_len == 0) continue;
    const Id id = id_at(number(v.iov_base));
    is_mixed |= id == 0;
    if (id == 0) continue;
    if (place.id != 0 && place.id != id) return std::nullopt;
    place.id = id;
  }
  if (Device* const device = at(place.id))
    place.memory = is_mixed ? &device->of_mixed_operations() : &device->of_operations();
  return place;
}

void Devices::settle() {
  for (const auto& device : devices_) device->drain();
}

bool Devices::drain() {
  settle();
  const auto broken = static_cast<std::size_t>(
      std::ranges::count_if(devices_, [](const auto& d) { return d->is_broken(); }));
  return std::exchange(broken_, broken) >= broken;
}

}  // namespace uet::provider
