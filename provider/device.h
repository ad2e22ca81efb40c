/// The memory of CUDA devices that the program registered.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "provider/bounce.h"
#include "provider/cuda_driver.h"
#include "ses/device_memory.h"

namespace uet::provider {

/// What one context of the driver holds. Addresses of all contexts and of the CPU are different, so an address says where it lies.
/// Everything with the worker's lock held.
///
/// After a copy that the driver refuses the device is out of use: what is read of it is zero, what is written lost, of which peers are
/// told, and is_broken() says so when an operation is posted or completes.
class Device final : private DeviceCopier {
 public:
  /// Null when the driver has no room for what we need; the user is told. `own_context`: of the pointer; null for the primary one
  /// of device `ordinal`.
  static std::unique_ptr<Device> open(const CudaDriver& driver, CudaDriver::Context own_context,
                                      int ordinal);
  ~Device() override;
  /// Whether memory of this context can be registered with it.
  bool serves(CudaDriver::Context own_context, int ordinal) const {
    if (is_broken_) return false;
    return own_context != nullptr ? own_context == context_
                                  : retained_ == std::optional<int>(ordinal);
  }

  /// Counts the allocations that the range lies in. False when it is not, whole, the device's.
  bool add(std::uint64_t begin, std::uint64_t end);
  void remove(std::uint64_t begin, std::uint64_t end);
  bool contains(std::uint64_t address) const { return allocation_of(address) != nullptr; }

  /// For operations: their memory does not change while they are under way.
  ses::DeviceMemory& of_operations() { return steady_; }
  /// For operations of which some pieces lie in the CPU's memory.
  ses::DeviceMemory& of_mixed_operations() { return mixed_; }
  /// For regions: the device may change them at any time.
  ses::DeviceMemory& of_regions() { return live_; }
  /// An operation that will read these bytes is posted.
  void renew(std::span<const iovec> iov);
  /// Everything written is in place, unless the device is broken.
  void drain();
  bool is_broken() const { return is_broken_; }

 private:
  class View final : public ses::DeviceMemory {
   public:
    View(Device& device, bool is_steady, bool is_mixed)
        : device_(device), is_steady_(is_steady), is_mixed_(is_mixed) {}
    bool read(const std::uint8_t* from, std::uint8_t* out, std::size_t n) override;
    bool write(std::uint8_t* to, const std::uint8_t* in, std::size_t n) override;
    bool settle() override;

   private:
    bool is_of_cpu(const std::uint8_t* address) const;

    Device& device_;
    const bool is_steady_, is_mixed_;
  };
  struct Allocation {
    std::uint64_t end = 0;
    std::size_t users = 0;
  };

  explicit Device(const CudaDriver& driver) : driver_(driver) {}
  bool start(CudaDriver::Context own_context, int ordinal);
  const std::pair<const std::uint64_t, Allocation>* allocation_of(std::uint64_t address) const;
  bool read(std::uint64_t from, std::uint8_t* out, std::size_t n, bool is_steady);
  bool start_to_device(Address to, const std::uint8_t* from, std::size_t n) override;
  bool start_from_device(std::uint8_t* to, Address from, std::size_t n) override;
  bool finish() override;
  bool check(CudaDriver::Result result, const char* what);
  void give_up();

  const CudaDriver& driver_;
  std::optional<int> retained_;  ///< the device whose primary context we hold
  CudaDriver::Context context_ = nullptr;
  CudaDriver::Stream stream_ = nullptr;
  void* pool_ = nullptr;
  std::optional<Bounce> bounce_;
  std::map<std::uint64_t, Allocation> allocations_;  ///< by their begin
  View steady_{*this, true, false}, mixed_{*this, true, true}, live_{*this, false, false};
  bool is_broken_ = false;
};

/// The devices of a worker; with its lock held. They are kept until it ends: operations name them, and pinned memory is dear to
/// make.
class Devices {
 public:
  static constexpr std::size_t kMax = 31;
  using Id = std::uint8_t;  ///< 1 to kMax; 0: the CPU

  /// Registers the pieces, which must all lie in memory of `ordinal`. 0 or a negative error.
  int add(std::span<const iovec> iov, int ordinal, Id& out);
  void remove(std::span<const iovec> iov, Id id);

  bool empty() const { return devices_.empty(); }
  Device* at(Id id) const { return id == 0 ? nullptr : devices_[id - 1].get(); }
  /// How the pieces of an operation are reached; no device when all are the CPU's. Nothing for pieces of two devices.
  struct Place {
    Id id = 0;
    ses::DeviceMemory* memory = nullptr;
  };
  std::optional<Place> find(std::span<const iovec> iov) const;
  /// Before a completion is passed on: what was written is in place. False when a device broke since the last call.
  [[nodiscard]] bool drain();
  /// The same, without an answer.
  void settle();

 private:
  Id id_at(std::uint64_t address) const;

  std::vector<std::unique_ptr<Device>> devices_;
  std::size_t broken_ = 0;
};

}  // namespace uet::provider
