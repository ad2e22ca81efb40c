#include "pds/psn_class.h"

#include "lib/base/planted.h"
#include "pds/pool_sizes.h"

namespace uet::pds {

using base::planted;
using base::PlantedBug;

PsnClass classify(const Pdc& pdc, Psn psn) {
  const RxHalf& rx = pdc.rx;
  const std::int32_t d = psn.distance_from(rx.cack);
  const bool is_ahead = planted(PlantedBug::kPlainCompare) ? psn.value() > rx.cack.value() : d > 0;
  if (is_ahead) {
    if (static_cast<std::uint32_t>(d) > rx.granted) return PsnClass::kBeyond;
    const bool known = rx.tracker != nullptr && rx.tracker->test(RxTracker::kReceived, psn);
    return known ? PsnClass::kKnown : PsnClass::kNew;
  }
  // Below the start there was never anything; after 2^31 PSNs the start itself has no meaning any
  // more.
  if (!rx.is_past_half && psn.is_before(pdc.start)) return PsnClass::kBelowStart;
  if (d <= -static_cast<std::int32_t>(kMaxWindow)) return PsnClass::kTooOld;
  return PsnClass::kFinished;
}

}  // namespace uet::pds
