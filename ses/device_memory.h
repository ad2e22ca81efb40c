/// Memory that the CPU cannot touch, such as that of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uet::ses {

/// Who posts an operation on such memory, or registers it, says by this how its bytes are reached. Addresses are those of the
/// user's iovec, and lie inside it. Called from within Ses calls, on the FEP's thread, and must not call Ses.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual void read(const std::uint8_t* from, std::uint8_t* out, std::size_t n) = 0;
  /// The bytes of `in` are taken before it returns. They are in place when an operation that brought them completes: whoever
  /// implements this sees to it before it passes the completion on.
  virtual void write(std::uint8_t* to, const std::uint8_t* in, std::size_t n) = 0;
};

}  // namespace uet::ses
