/// Peers that do not fit this endpoint, found out by what is counted, and named once with the setting to look at. One object for each
/// endpoint; asked once a second, while the endpoint stands still.
#pragma once

#include <cstdint>
#include <string>

#include "fep/fep.h"
#include "fep/settings/settings.h"
#include "provider/reach.h"
#include "provider/remarks.h"

namespace uet::provider {

class PeerFit {
 public:
  /// Sentences for the user, which the caller tells once nothing waits for it: a standard error that is not read may block.
  Remarks look(base::Instant now, fep::Fep& fep, const fep::Settings& settings);

 private:
  void look_at_crc(fep::Fep& fep, const fep::Settings& settings);
  void look_at_credit(fep::Fep& fep, const fep::Settings& settings);
  void look_at_security(fep::Fep& fep, const fep::Settings& settings);
  void look_at_room(fep::Fep& fep, const fep::Settings& settings);
  void remark(std::string text);

  Reach reach_;
  Remarks remarks_;  ///< of the look under way

  std::uint64_t data_sent_ = 0,
                asked_ = 0;  ///< packets with data, and control packets, at the look before
  int looks_without_credit_ = 0;
  /// Of messages that came, at the look before: while all of it stays as it is, receives wait for something else.
  struct Received {
    std::uint64_t matched = 0, delivered = 0;
    std::size_t unexpected = 0, receives = 0;
    bool operator==(const Received&) const = default;
  };
  Received received_;
  int looks_without_room_ = 0;
  std::uint64_t bad_crcs_told_ = 0;
  int looks_since_crc_ = kLooksBetweenWarnings, looks_since_room_ = kLooksBetweenWarnings;
};

}  // namespace uet::provider
