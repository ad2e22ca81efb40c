/// Peers that do not fit this endpoint, found out by what is counted, and named once with the setting to look at. One object for each
/// endpoint; asked once a second, while the endpoint stands still.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fep/fep.h"
#include "fep/settings/settings.h"

namespace uet::provider {

class PeerFit {
 public:
  /// Sentences for the user, which the caller tells once nothing waits for it: a standard error that is not read may block.
  std::vector<std::string> look(base::Instant now, fep::Fep& fep, const fep::Settings& settings);

 private:
  void look_at_crc(fep::Fep& fep, const fep::Settings& settings);
  void look_at_credit(fep::Fep& fep, const fep::Settings& settings);
  void look_at_security(fep::Fep& fep, const fep::Settings& settings);
  void look_at_room(fep::Fep& fep, const fep::Settings& settings);
  void look_for_silence(base::Instant now, fep::Fep& fep, const fep::Settings& settings);
  void look_for_narrow_ways(fep::Fep& fep);
  void remark(std::string text);
  /// True with a link.
  bool look_at_link(base::Instant now, fep::Fep& fep, const fep::Settings& settings);

  static constexpr int kLooksBetweenWarnings = 60;

  std::vector<std::string> remarks_;  ///< of the look under way

  std::uint64_t data_sent_ = 0,
                asked_ = 0;  ///< packets with data, and control packets, at the look before
  base::Instant looked_at_, looked_before_;  ///< this look and the one before
  int looks_without_credit_ = 0, looks_without_link_ = 0;
  /// A PDC whose peer is heard of while its oldest packet does not arrive; id 0: none.
  struct Stuck {
    std::uint16_t id = 0;
    base::Psn cack;
    std::uint32_t nacks = 0;  ///< received on it
    bool operator==(const Stuck&) const = default;
  };
  Stuck stuck_;
  std::uint64_t retransmitted_ = 0;  ///< at the look before
  /// Of messages that came, at the look before: while all of it stays as it is, receives wait for something else.
  struct Received {
    std::uint64_t matched = 0, delivered = 0;
    std::size_t unexpected = 0, receives = 0;
    bool operator==(const Received&) const = default;
  };
  Received received_;
  int looks_without_room_ = 0;
  std::uint64_t bad_crcs_told_ = 0;
  int looks_since_crc_ = kLooksBetweenWarnings, looks_since_silence_ = kLooksBetweenWarnings,
      looks_since_narrow_ = kLooksBetweenWarnings, looks_since_room_ = kLooksBetweenWarnings;
};

}  // namespace uet::provider
