/// Memory that the CPU cannot touch, such as that of a GPU, or that may not be there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uet::ses {

/// A user that posts an operation on such memory, or registers it, says by this how its bytes are reached. Addresses are those of the
/// iovec, and lie inside it. Called from within Ses calls, on the FEP's thread, and must not call Ses.
///
/// What fails here a peer hears as HOST_UNSUCCESS_CMPL or as an initiator error; the user, whose memory it is, is to know by itself.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// False: some of it cannot be had; `out` has no meaning then, but is filled: it may leave in a packet, and a peer must not see what
  /// was there before.
  virtual bool read(const std::uint8_t* from, std::uint8_t* out, std::size_t n) = 0;
  /// The bytes of `in` are taken before it returns. They may come into place later, at settle() at the latest, which a user calls by
  /// itself before it acts on the completion of the operation that brought them. False: some of them never will.
  virtual bool write(std::uint8_t* to, const std::uint8_t* in, std::size_t n) = 0;
  /// Puts in place what was written. False: some of it cannot be.
  virtual bool settle() { return true; }
  /// Whether a peer may be let at these bytes of a region. Asked once a message.
  virtual bool has(const std::uint8_t* begin, std::size_t n) const {
    (void)begin, (void)n;
    return true;
  }
};

}  // namespace uet::ses
