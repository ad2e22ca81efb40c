/// The security sublayer of one endpoint: seals what leaves and opens what arrives under the keys of
/// one secure domain. [TSS 10]
///
/// An endpoint belongs to exactly one domain, so every delivery context of it does, and no packet
/// of another domain or in clear ever reaches packet delivery (decision 0130). Reads no clock, no
/// file and no random source: a KeyManager brings what is needed. Nothing here allocates per packet;
/// a new sender costs two allocations, after its first packet has verified. One thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/base/drop_reason.h"
#include "lib/net/packet.h"
#include "tss/association.h"
#include "tss/framing.h"
#include "tss/key_manager.h"
#include "tss/source_table.h"

namespace uet::tss {

/// Names are the specification's counters, in our casing. [TSS 12.1]
struct SecurityStats {
  std::uint64_t in_auth_pkts = 0, out_auth_pkts = 0;
  std::uint64_t in_auth_fail_pkts = 0, in_errored_pkts = 0, in_invalid_sa = 0, in_invalid = 0;
  std::uint64_t in_late_pkts = 0, in_binding_failure_pkts = 0, in_rx_encryption_bypass_pkts = 0;
  std::uint64_t in_replay_pkts = 0, in_trimmed_pkts = 0, in_trim_hint_pkts = 0;
  std::uint64_t in_source_table_full_pkts = 0;
  std::uint64_t out_invoke_fail = 0, out_errored_pkts = 0;
  // Ours.
  std::uint64_t keys_derived = 0;  ///< KDF runs
};

class SecureDomain {
 public:
  using Refusal = std::optional<base::DropReason>;

  /// `manager` must outlive the domain, whose key must be there and usable at `own`: see
  /// why_not_usable().
  SecureDomain(KeyManager& manager, const Carrier& carrier, const net::FabricAddress& own,
               const CipherLibrary& ciphers = best_ciphers());
  SecureDomain(const SecureDomain&) = delete;
  SecureDomain& operator=(const SecureDomain&) = delete;
  /// Gives unused counters back.
  ~SecureDomain();

  /// Why this endpoint must not start; empty when it may. A domain that has no key to send under, or
  /// no counters for it, may not: nothing is ever sent in clear instead.
  std::string why_not_usable() const;

  /// Bytes that seal() adds: the header in front and the ICV behind.
  std::size_t header_bytes() const { return config_.ssi_mode ? 16 : 12; }
  std::size_t overhead() const { return header_bytes() + kIcvBytes; }

  /// Encrypts `packet`, a PDS packet, in place. It needs headroom for the header and tailroom for
  /// the ICV. On refusal the packet must not be sent. A retransmission is sealed again, like any
  /// other packet.
  Refusal seal(net::Packet& packet, const net::FabricAddress& destination, std::uint16_t entropy);
  /// The same for a packet of a burst: unless it is refused, header and counter are there on return, and its bytes, which must stay
  /// where they are, become cipher text in seal_pending() at the latest.
  Refusal seal_later(net::Packet& packet, const net::FabricAddress& destination,
                     std::uint16_t entropy);
  void seal_pending();
  /// Verifies and decrypts `packet` in place and removes header and ICV. On refusal the packet must
  /// be dropped without any answer; its bytes are then worthless. `is_trimmed`: a switch says that
  /// it cut this packet, so nothing of it can be verified: what is left then is a hint, the PDS header of a request, and only
  /// with `trim_hints` and from a sender of whom packets have verified. [TSS 9.4]
  Refusal open(net::Packet& packet, const Route& route, bool is_trimmed = false);
  /// Of the packet that open() has just let through: none that its sender sealed later came before. False also of hints, and where counters
  /// do not tell, which is what `tsc_floor: off` says.
  bool was_newest() const { return was_newest_; }

  /// Once a second, and when is_due_early(): takes over changes of the domain and reserves counters. Waits for nothing.
  /// True: the manager is at it, and should be asked again soon.
  bool service();
  /// True once when half of a reservation is spent: a small one may not last a second.
  bool is_due_early() const {
    if (tx_slot_ < 0) return false;
    const Association& a = slots_[tx_slot_];
    return a.counter.wants_more() && !a.has_asked_early;
  }

  // --- Keys. service() calls these when the manager reports a change; public for managers that act
  // by themselves. [TSS 13.1]
  /// False when the slot is taken, or the key is in the other slot. Waits for its counters.
  bool install(const KeyConfig& key);
  /// What leaves from now on leaves under the key of `an`. False, and nothing changes, when there is
  /// none or no counters can be had for it.
  bool select(bool an);
  void remove(bool an);
  SlotState slot_state(bool an) const { return slots_[an].state; }
  /// The AN that packets leave under now; none: there is no key for them.
  std::optional<bool> tx_an() const {
    return tx_slot_ < 0 ? std::nullopt : std::optional(tx_slot_ == 1);
  }
  /// True when no process of this host had any of these keys before, so that every opening was seen by this one.
  bool are_keys_fresh() const {
    return std::all_of(slots_.begin(), slots_.end(), [](const Association& a) {
      return a.state == SlotState::kEmpty || a.is_fresh;
    });
  }

  const DomainConfig& config() const { return config_; }
  const SecurityStats& stats() const { return stats_; }
  KeyManager& manager() { return manager_; }
  /// Of tables of those who send in this domain.
  const base::HashKey& hash_key() const { return hash_key_; }
  std::size_t sources_known() const { return sources_.size(); }

 private:
  struct SealKey {
    Cipher* cipher = nullptr;
    const Mask* mask = nullptr;
  };
  struct OpenKey {
    Cipher* cipher = nullptr;
    const Mask* mask = nullptr;
    ReadyKey* cached = nullptr;  ///< where it came from; null: derived into the scratch key
  };
  struct Opening;

  // --- secure_domain.cc
  bool apply(const DomainConfig& wanted);
  void take_epoch(Association& a);
  bool put(const KeyConfig& key);
  void install_soon(const KeyConfig& key);
  void reserve_counters(Association& a);
  bool take_counters(Association& a, const std::optional<CounterRange>& range);
  bool ask_for_counters(Association& a);
  void alarm(Alarm which) { manager_.on_alarm(which, config_.sdi); }

  // --- seal.cc
  std::optional<Header> next_header(Association& a, const net::FabricAddress& destination);
  std::optional<std::uint32_t> ssi_towards(const net::FabricAddress& destination);
  SealKey seal_key(Association& a, const Header& header, const net::FabricAddress& destination);

  // --- open.cc
  Refusal check(const Header& header, std::size_t bytes);
  OpenKey open_key(Association& a, const Header& header, const Route& route, Source* source);
  Refusal accept(Association& a, const Header& header, const Route& route, Source* source,
                 const OpenKey& key);
  Refusal peek_trimmed(net::Packet& packet, const Header& header, const Route& route,
                       Source* source);
  void count_forgery();
  bool is_member(const Header& header, const net::FabricAddress& address,
                 const Source* source) const;
  Source::Slot& slot_of(Source& source, const Association& a);
  bool was_heard_under_newer_key(const Source& source, const Association& a) const;
  Refusal count(base::DropReason reason);

  // --- Both ways
  bool derives() const {
    return config_.mode == Mode::kCluster ||
           (config_.mode == Mode::kServer && config_.role == Role::kServer);
  }
  Context context_of(const Header& header, const net::FabricAddress& identity_address) const;
  void derive_into(ReadyKey& key, Association& a, const Context& context, Direction direction);
  void report_key(const Association& a, const Context& context, const DerivedKey& key);

  KeyManager& manager_;
  DomainConfig config_;
  const Carrier carrier_;
  const net::FabricAddress own_;
  const CipherLibrary& ciphers_;

  std::array<Association, 2> slots_;
  int tx_slot_ = -1;
  std::uint64_t generations_ = 0, first_generations_ = 0;
  bool is_stopped_ = false;
  bool was_newest_ = false;
  const base::HashKey hash_key_;
  const Mask no_mask_;
  ReadyKey tx_key_;  ///< the derived key that our packets leave under; a server's to strangers
  ReadyKey rx_key_;  ///< scratch: goes into the table when its packet has verified
  SourceTable sources_;
  std::uint64_t members_version_ = 1;   ///< counts changes of the list of members
  std::optional<DomainConfig> coming_;  ///< until the counters of its key are there
  bool wanted_tx_an_;                   ///< what the manager says; select() may have failed
  SecurityStats stats_;

  static constexpr std::size_t kBurst = 32;
  /// Text that may wait is half of this and one packet more: still in the first level of the cache, where it was built. A packet of
  /// 8 KiB goes alone, since two of them together gain nothing.
  static constexpr std::size_t kBurstBytes = 16 * 1024;
  std::unique_ptr<BurstSealer> sealer_;
  std::array<SealJob, kBurst> jobs_;  ///< the first pending_ wait for their cipher
  std::array<AdditionalData, kBurst> job_aads_;
  std::size_t pending_ = 0, pending_bytes_ = 0;
};

}  // namespace uet::tss
