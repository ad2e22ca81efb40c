#include "fep/security.h"

#include <algorithm>

namespace uet::fep {

base::Result<std::shared_ptr<Security>, std::string> Security::open(
    std::shared_ptr<tss::KeyManager> keys, const net::PortFacts& facts,
    const tss::CipherLibrary& ciphers) {
  std::shared_ptr<Security> security(new Security(std::move(keys), facts, ciphers));
  if (std::string why = security->domain_.why_not_usable(); !why.empty()) return why;
  return security;
}

Security::Security(std::shared_ptr<tss::KeyManager> keys, const net::PortFacts& facts,
                   const tss::CipherLibrary& ciphers)
    : keys_(std::move(keys)),
      domain_(*keys_, {.is_udp = facts.udp_encapsulation, .udp_port = facts.udp_port},
              facts.address, ciphers) {}

std::string Security::why_risky_at(const net::FabricAddress& own) const {
  if (!own.is_loopback() || domain_.config().ssi_mode) return "";
  return "keys without SSI at " + own.to_string() +
         ", an address that other hosts with these keys may have too: packets of both under one "
         "key and counter would tell what is in them. Set FI_UET_ADDR to an address that this "
         "process alone has, or use keys with SSI (uet-keys new --ssi) where the keys are on more "
         "than one host";
}

bool Security::covers(std::uint32_t job) const {
  const auto& jobs = domain_.config().jobs;
  return jobs.empty() || std::find(jobs.begin(), jobs.end(), job) != jobs.end();
}

}  // namespace uet::fep
