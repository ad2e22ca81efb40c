/// Packets sealed and opened under a key file, as an endpoint with FI_UET_KEYS does; and what only scripts do with keys. [TSS 7, 10]
#pragma once

#include <memory>
#include <set>
#include <string>

#include "fep/security.h"
#include "lib/base/units.h"

namespace uet::drill {

class Sealing {
 public:
  /// The domain of `job` in `key_file`, at a port with these facts. Null with `error` set.
  static std::unique_ptr<Sealing> open(const std::string& key_file, std::uint32_t job,
                                       const net::PortFacts& facts, std::string& error);

  tss::SecureDomain& domain() { return security_->domain(); }
  /// What scripts may need, as far as the key file tells.
  std::set<std::string> capabilities() const;
  /// Takes over changes of the file and reserves counters, once a second.
  void service(base::Instant now);

  // Of the packets that leave from now on. Empty, or why it cannot be.
  /// Under the key that packets do not usually leave under, or under the usual one again.
  std::string use_other_key(bool other);
  /// Counters go on so far ahead that what was sealed before is below the floor of every receiver. [TSS 11.4]
  std::string jump();

 private:
  explicit Sealing(std::shared_ptr<fep::Security> security);

  std::shared_ptr<fep::Security> security_;
  bool usual_an_;
  bool is_on_other_ = false;
  base::Instant service_at_;
};

}  // namespace uet::drill
