/// Memory that the CPU cannot touch, such as that of a GPU, or that may not be there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uet::ses {

/// A user that posts an operation on such memory, or registers it, says by this how its bytes are reached. Addresses are those of the
/// iovec, and lie inside it. Called from within Ses calls, on the FEP's thread, and must not call Ses.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  virtual void read(const std::uint8_t* from, std::uint8_t* out, std::size_t n) = 0;
  /// The bytes of `in` are taken before it returns. They may come into place later, but before the user acts on the completion of the
  /// operation that brought them.
  virtual void write(std::uint8_t* to, const std::uint8_t* in, std::size_t n) = 0;
  /// Whether a peer may be let at these bytes of a region. Asked once a message.
  virtual bool has(const std::uint8_t* begin, std::size_t n) const {
    (void)begin, (void)n;
    return true;
  }
};

}  // namespace uet::ses
