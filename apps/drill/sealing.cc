#include "apps/drill/sealing.h"

#include <algorithm>

#include "keys/file_keys.h"

namespace uet::drill {

std::unique_ptr<Sealing> Sealing::open(const std::string& key_file, std::uint32_t job,
                                       const net::PortFacts& facts, std::string& error) {
  std::shared_ptr<tss::KeyManager> keys = keys::FileKeys::open(key_file, job, "", error);
  if (keys == nullptr) return nullptr;
  auto security = fep::Security::open(std::move(keys), facts);
  if (!security) {
    error = key_file + ": " + security.error();
    return nullptr;
  }
  return std::unique_ptr<Sealing>(new Sealing(std::move(*security)));
}

Sealing::Sealing(std::shared_ptr<fep::Security> security)
    : security_(std::move(security)), usual_an_(security_->domain().config().tx_an) {}

std::set<std::string> Sealing::capabilities() const {
  const tss::DomainConfig& c = security_->domain().config();
  std::set<std::string> can = {"secured"};
  if (c.keys.size() > 1) can.insert("two-keys");
  if (c.replay_window > 0) can.insert("replay-window");
  if (c.tsc_floor) can.insert("tsc-floor");
  if (!c.trim_hints) can.insert("no-trim-hints");
  if (c.epoch != 0) can.insert("epoch");
  if (c.mode == tss::Mode::kCluster && c.ssi_mode) can.insert("ssi-keys");
  return can;
}

void Sealing::service(base::Instant now) {
  if (now < service_at_ || is_on_other_) return;  // it would return to the key of the file
  const bool soon = domain().service();
  usual_an_ = domain().config().tx_an;
  service_at_ = now + base::Duration::from_ms(soon ? 10 : 1000);
}

std::string Sealing::use_other_key(bool other) {
  is_on_other_ = domain().select(usual_an_ != other) && other;
  if (is_on_other_ == other) return "";
  return "there is no other key, or no counters for it";
}

std::string Sealing::jump() {
  const bool an = domain().config().tx_an;
  const auto keys = domain().config().keys;
  const auto key =
      std::find_if(keys.begin(), keys.end(), [an](const auto& k) { return k.an == an; });
  if (key == keys.end()) return "there is no key";
  domain().remove(an);  // what it had reserved is never used
  const bool is_back = domain().install(*key) && domain().select(an);
  return is_back ? "" : "no counters can be reserved";
}

}  // namespace uet::drill
