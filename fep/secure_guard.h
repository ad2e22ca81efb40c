/// Judges the openings of delivery contexts in a secure domain, so that a recorded first packet opens
/// nothing. [TSS 11] (decisions 132, 135, 136)
///
/// Every packet that arrives here has verified, so the question is only whether it is old. While no earlier process of this host
/// has used the keys, this one has seen all openings under them, and the start of a PDC tells: what is at or after the PSN expected
/// of its source is new. Otherwise an older process may have seen any start, and every opening is challenged with a random one,
/// which costs a round trip, until the keys change.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "pds/opening_guard.h"
#include "tss/secure_domain.h"

namespace uet::fep {

class SecureGuard final : public pds::OpeningGuard {
 public:
  /// `domain` must outlive the guard.
  explicit SecureGuard(tss::SecureDomain& domain);

  Challenge on_opening(const Opening& opening) override;
  bool knows_order() const override;
  bool is_confirmed(const Opening& opening, base::Psn announced) override;
  bool may_wait(const net::FabricAddress& source) override;
  void on_wait_over(const net::FabricAddress& source) override;
  std::optional<base::Psn> on_target_closed(const net::FabricAddress& source,
                                            base::Psn start) override;
  void on_half_open_limit() override;
  std::optional<base::Psn> expected_by(const net::FabricAddress& target) override;
  void on_expected_psn(const net::FabricAddress& target, base::Psn expected) override;

  std::size_t peers_known() const { return peers_.size(); }
  std::size_t longest_chain() const;
  std::uint32_t waiting() const { return waiting_; }

 private:
  struct Peer {
    net::FabricAddress address;
    std::optional<base::Psn>
        expected;  ///< as target: of its next PDC, behind all starts that were closed or challenged
    std::optional<base::Psn> told;  ///< as initiator: what it expects of ours
    std::uint32_t waiting = 0;      ///< its PDCs whose challenge is unanswered
  };
  Peer* find(const net::FabricAddress& address);
  /// Whether its start says if it is old: all openings under the present keys have been seen here, and nothing newer of its sender.
  bool tells(const Opening& opening) const;
  void expect_behind(Peer& peer, base::Psn start);
  std::size_t first_bucket(const net::FabricAddress& address) const {
    return address.hash(domain_.hash_key()) & (buckets_.size() - 1);
  }
  /// Null when the table is full. Entries are never forgotten: a source without one is challenged.
  Peer* find_or_add(const net::FabricAddress& address);
  /// Uniform in [2^16, end).
  base::Psn random_start(std::uint32_t end);

  tss::SecureDomain& domain_;
  std::size_t capacity_;
  std::vector<Peer> peers_;             ///< reserved at construction
  std::vector<std::uint32_t> buckets_;  ///< place + 1; open addressing
  std::uint32_t waiting_ = 0;
  std::array<std::uint32_t, 32> random_{};
  std::size_t random_left_ = 0;
};

}  // namespace uet::fep
