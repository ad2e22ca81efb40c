#include "pds/environment.h"

namespace uet::pds {

namespace {

/// What stands between a UET packet and its nominal size: IP and Ethernet, the UDP or entropy header, and
/// what security adds. [CC 3.2]
ByteCount encapsulation_of(const PdsConfig& config, const net::PortFacts& facts) {
  return static_cast<ByteCount>(config.nominal_extra) + (facts.udp_encapsulation ? 8 : 4) +
         static_cast<ByteCount>(config.security_overhead);
}

bool uses_nscc(const cc::CcConfig& c) {
  return c.algorithm == cc::Algorithm::kNscc || c.algorithm == cc::Algorithm::kBoth;
}
bool uses_credit(const cc::CcConfig& c) {
  return c.algorithm == cc::Algorithm::kRccc || c.algorithm == cc::Algorithm::kBoth;
}

}  // namespace

Environment::Environment(const PdsConfig& settings, const cc::CcConfig& cc_config,
                         const net::PortFacts& facts, net::PacketPool& packets, base::Rng& random,
                         base::Trace& events, Upper& ses)
    : config(settings),
      limits(settings),
      sends_nscc_state(uses_nscc(cc_config)),
      sends_credit_state(uses_credit(cc_config)),
      encapsulation_bytes(encapsulation_of(settings, facts)),
      pool(packets),
      rng(random),
      hash_key(random),
      trace(events),
      upper(ses) {}

}  // namespace uet::pds
