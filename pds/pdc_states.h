/// Moves PDCs through their states and counts those on the way in and out. [PDS 6.2, 16.2, 16.3]
#pragma once

#include "lib/base/trace.h"
#include "pds/pdc.h"

namespace uet::pds {

class PdcStates {
 public:
  explicit PdcStates(base::Trace& trace) : trace_(trace) {}

  /// `input` must be allowed in the state of the PDC.
  void change(Instant now, Pdc& pdc, PdcInput input);

  /// A PDC in CREATING is to close as soon as it is established.
  void want_close(Pdc& pdc) {
    if (!pdc.is_close_wanted) ++close_wanted_;
    pdc.is_close_wanted = true;
  }
  /// The PDC ends.
  void forget(const Pdc& pdc) { close_wanted_ -= pdc.is_close_wanted ? 1 : 0; }

  std::uint32_t close_wanted() const { return close_wanted_; }
  std::uint32_t closing() const { return closing_; }
  std::uint32_t half_open() const { return half_open_; }

 private:
  base::Trace& trace_;
  std::uint32_t closing_ = 0;
  std::uint32_t close_wanted_ = 0;
  std::uint32_t half_open_ = 0;  ///< in CREATING or PENDING
};

}  // namespace uet::pds
