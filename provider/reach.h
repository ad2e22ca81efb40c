/// Why packets of this endpoint do not reach a peer: no link, no way out of this host, a peer that is silent, a way that loses them. Found
/// out by what is counted, and named once. One object for each endpoint.
#pragma once

#include <string>
#include <unordered_map>

#include "fep/fep.h"
#include "fep/settings/settings.h"
#include "provider/deaf_planes.h"
#include "provider/refused_packets.h"
#include "provider/remarks.h"
#include "provider/stuck_pdcs.h"

namespace uet::provider {

class Reach {
 public:
  /// Once a second. `is_explained`: it was said a moment ago why peers may be silent.
  void look(base::Instant now, fep::Fep& fep, const fep::Settings& settings, bool is_explained,
            Remarks& remarks);

 private:
  /// A peer that was heard of, beyond the life of its contexts.
  struct Heard {
    bool is_outage_told() const { return outages > 0 && told_at > at; }
    void note_told(base::Instant now) {
      told_at = now;
      ++outages;
    }

    base::Instant at;       ///< latest
    base::Instant told_at;  ///< of its latest outage that was told
    int outages = 0;        ///< that were told
  };

  /// True with a link.
  bool look_at_link(base::Instant now, fep::Fep& fep, const fep::Settings& settings);
  void remember_heard(base::Instant now, fep::Fep& fep);
  void look_for_unanswered_openings(base::Instant now, fep::Fep& fep,
                                    const fep::Settings& settings);
  void look_for_outages(base::Instant now);
  /// `others`: so many more peers have fallen silent.
  void tell_outage(base::Instant now, net::FabricAddress peer, base::Duration silence, int others);
  void look_for_narrow_ways(fep::Fep& fep);
  void look_for_one_way_losses(fep::Fep& fep);
  void remark(std::string text);

  Remarks remarks_;  ///< of the look under way
  StuckPdcs stuck_;
  RefusedPackets refused_;
  DeafPlanes deaf_planes_;
  std::unordered_map<net::FabricAddress, Heard> heard_;  ///< bounded
  int looks_without_link_ = 0;
  int looks_since_silence_ = kLooksBetweenWarnings, looks_since_outage_ = kLooksBetweenWarnings;
  int looks_since_lossy_ = kLooksBetweenWarnings;
};

}  // namespace uet::provider
