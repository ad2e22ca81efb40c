/// Keys at work in one endpoint: the domain that seals and opens, and who manages its keys.
#pragma once

#include <memory>
#include <string>

#include "lib/base/result.h"
#include "lib/net/port.h"
#include "tss/secure_domain.h"

namespace uet::fep {

/// Belongs to one Fep at a time.
class Security : public tss::InLockedMemory {
 public:
  /// Fails, with a sentence for people, when nothing could be sent safely on a port with these facts:
  /// an endpoint without a usable key must not start. `ciphers` is for tests.
  static base::Result<std::shared_ptr<Security>, std::string> open(
      std::shared_ptr<tss::KeyManager> keys, const net::PortFacts& facts,
      const tss::CipherLibrary& ciphers = tss::best_ciphers());

  tss::SecureDomain& domain() { return domain_; }
  const tss::SecureDomain& domain() const { return domain_; }
  /// A sentence where other hosts with these keys may have `own` too, unless the user chose it: a loopback address, in a domain without SSI.
  /// Else empty.
  std::string why_risky_at(const net::FabricAddress& own) const;
  /// Whether endpoints of `job` may live here.
  bool covers(std::uint32_t job) const;

 private:
  Security(std::shared_ptr<tss::KeyManager> keys, const net::PortFacts& facts,
           const tss::CipherLibrary& ciphers);
  std::shared_ptr<tss::KeyManager> keys_;
  tss::SecureDomain domain_;
};

}  // namespace uet::fep
