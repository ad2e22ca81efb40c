/// What a secured world has beyond a clear one: keys that rotate, the attacker on the links, and what must be true in spite of it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/sim/host.h"
#include "apps/sim/link_attacker.h"
#include "apps/sim/sealed_watch.h"
#include "apps/sim/swarm_plan.h"
#include "sim/fabric.h"
#include "tss/key_manager.h"

namespace uet::sim {

class SecureWorld {
 public:
  using Report = std::function<void(const std::string&)>;

  /// `hosts` may be empty until start(). Everything must outlive it.
  SecureWorld(Simulation& simulation, Fabric& fabric, const SwarmPlan& plan,
              std::vector<std::unique_ptr<Host>>& hosts, Report report);
  ~SecureWorld();

  /// A host is about to start, the first time or again: gives it security of its own.
  void arm(HostId host, fep::FepConfig& config);
  /// Once, when all hosts are there.
  void start();
  /// All that the attacker has comes once more. Returns when that is over.
  SimTime replay_everything();
  /// A host is about to die.
  void on_crash(HostId host) { check_host(host); }
  /// At any time: no pair of key and IV was used twice, no derived key by two senders; nothing opened that no host has sealed, all
  /// else did, and nothing counts as authentic that was not opened.
  void check();

  std::uint64_t rotations() const { return rotations_; }
  /// Hosts that started again without their counters.
  std::uint64_t counters_lost() const { return counters_lost_; }
  const SealedWatch& sealed() const { return ciphers_; }
  const LinkAttacker& attacker() const { return attacker_; }

 private:
  /// Keys of one host. The counters that it has given out outlive its crashes, as those on disk do, unless the plan says otherwise.
  struct Keys final : tss::KeyManager {
    tss::DomainConfig config;
    KeysOfHost seen;  ///< by those who watch the ciphers
    std::unique_ptr<tss::CipherLibrary> ciphers;
    bool has_changed = false, has_started = false, has_lost_counters = false;
    std::map<tss::Fingerprint, std::uint64_t> counters;
    base::Rng rng{0};

    tss::DomainConfig domain() override { return config; }
    std::optional<tss::DomainConfig> changed_domain() override;
    std::optional<tss::CounterRange> reserve(const tss::Fingerprint& key,
                                             std::uint64_t count) override;
    void fill_random(std::span<std::uint8_t> out) override;
  };
  /// Sees what a host sends, and hands on what it receives to who watched before.
  struct Tap final : FrameObserver {
    SecureWorld* world = nullptr;
    FrameObserver* next = nullptr;
    void on_delivered(const Frame& frame) override {
      if (next != nullptr) next->on_delivered(frame);
    }
    void on_sent(const Frame& frame) override { world->on_sent(frame); }
    bool take(Frame* frame) override { return world->attacker_.take(frame); }
  };

  void on_sent(const Frame& frame);
  void check_host(HostId host);
  /// A new key of the domain.
  tss::Key next_key();
  /// As `host` gets it: a client what is derived from it for `epoch`.
  tss::KeyConfig key_for(HostId host, const tss::Key& key, std::uint16_t epoch) const;
  void give(HostId host, const tss::KeyConfig& key);
  void choose_role(HostId host);
  void begin_rotation();
  void switch_key(HostId host);
  void end_rotation();
  void tell(HostId host);

  Simulation& simulation_;
  Fabric& fabric_;
  const SwarmPlan& plan_;
  std::vector<std::unique_ptr<Host>>& hosts_;
  const Report report_;
  base::Rng rng_;
  SealedWatch ciphers_;
  LinkAttacker attacker_;
  std::vector<std::shared_ptr<Keys>> keys_;
  std::vector<Tap> taps_;
  bool an_ = false;  ///< of the newest key
  std::uint32_t keys_made_ = 0;
  bool is_rotating_ = false;
  std::uint64_t rotations_ = 0, next_rotation_ = 0, counters_lost_ = 0;
};

}  // namespace uet::sim
