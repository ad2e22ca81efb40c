/// What requests for operations are reduced to. Only for the files of the Transmitter.
#pragma once

#include "ses/transmitter.h"

namespace uet::ses {

/// What operations of all kinds have in common.
struct Transmitter::Common {
  PeerId peer = 0;
  Delivery delivery{};
  std::span<const iovec> iov;
  DeviceMemory* device = nullptr;
  const std::optional<std::uint64_t>* data = nullptr;
  bool inject = false;
  bool delivery_complete = false;
  bool fence = false;
  bool silent = false;
  std::uint8_t user_flags = 0;
  std::uint64_t context = 0;

  template <typename Request>
  explicit Common(const Request& r) : Common(r, r.iov, r.device, r.delivery) {}
  explicit Common(const AtomicRequest& r)
      : Common(r, r.operand, r.operand_device, Delivery::kReliable) {}

 private:
  template <typename Request>
  Common(const Request& r, std::span<const iovec> memory, DeviceMemory* whose, Delivery how)
      : peer(r.peer),
        delivery(how),
        iov(memory),
        device(whose),
        data(&r.data),
        inject(r.inject),
        delivery_complete(r.delivery_complete),
        fence(r.fence),
        silent(r.silent),
        user_flags(r.user_flags),
        context(r.context) {}
};

}  // namespace uet::ses
