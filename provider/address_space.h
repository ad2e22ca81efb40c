/// All memory of this process as one region, most of which is not there.
#pragma once

#include "ses/device_memory.h"

namespace uet::provider {

/// The kernel copies, and says where there is no page, so that no access of a peer kills us. Atomics are carried out in a copy, so they are atomic to each other alone.
class AddressSpace final : public ses::DeviceMemory {
 public:
  /// Null where the kernel does not copy for us.
  static AddressSpace* get();

  bool read(const std::uint8_t* from, std::uint8_t* out, std::size_t n) override;
  bool write(std::uint8_t* to, const std::uint8_t* in, std::size_t n) override;
  bool has(const std::uint8_t* begin, std::size_t n) const override;
};

}  // namespace uet::provider
