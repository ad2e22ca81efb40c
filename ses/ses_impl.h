/// What is behind Ses. Only for its own source files.
#pragma once

#include "ses/core.h"
#include "ses/receiver.h"
#include "ses/transmitter.h"

namespace uet::ses {

struct Ses::Impl {
  Impl(const SesConfig& config, std::uint32_t payload_mtu, net::FabricAddress own_address,
       base::Rng& rng, base::Trace& trace)
      : core(config, payload_mtu, own_address, rng, trace), tx(core), rx(core) {}

  Core core;
  Transmitter tx;
  Receiver rx;
};

}  // namespace uet::ses
