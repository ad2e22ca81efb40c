#include "pds/send_window.h"

#include <limits>

#include "lib/base/planted.h"

namespace uet::pds {

using base::planted;
using base::PlantedBug;

bool SendWindow::allows(const Pdc& pdc, Psn psn) const {
  if (planted(PlantedBug::kWindowIgnored)) return true;
  const auto ahead = static_cast<std::uint32_t>(psn.distance_from(pdc.tx.cack));
  return ahead <= std::min(pdc.tx.mp_range, records_.ring_size());
}

bool SendWindow::may_take_psn(const Pdc& pdc) const {
  if (!allows(pdc, pdc.tx.next)) return false;
  if (pdc.state == PdcState::kCreating &&
      static_cast<std::uint32_t>(pdc.tx.next.distance_from(pdc.start)) > kMaxSynOffset)
    return false;
  if (env_.guard != nullptr && config_.limit_psn_range &&
      pdc.tx.next.value() - pdc.start.value() >= config_.psn_range)
    return false;
  return records_.can_add(pdc.tx.ring, pdc.tx.next);
}

std::uint32_t SendWindow::psns_left(const Pdc& pdc) const {
  UET_DCHECK(pdc.state != PdcState::kCreating);
  const TxHalf& tx = pdc.tx;
  std::uint32_t left = std::numeric_limits<std::uint32_t>::max();
  if (!planted(PlantedBug::kWindowIgnored)) {
    const std::uint32_t last = std::min(tx.mp_range, records_.ring_size());
    const auto used = static_cast<std::uint32_t>((tx.next - 1).distance_from(tx.cack));
    left = used < last ? last - used : 0;
  }
  if (env_.guard == nullptr || !config_.limit_psn_range) return left;
  const std::uint32_t used = tx.next.value() - pdc.start.value();
  return std::min(left, used < config_.psn_range ? config_.psn_range - used : 0);
}

bool SendWindow::has_psns_for(const Pdc& pdc, std::uint64_t more) const {
  if (env_.guard == nullptr || !config_.limit_psn_range) return true;
  const std::uint32_t used = pdc.tx.next.value() - pdc.start.value();
  return used + more + config_.psn_range_reserve <= config_.psn_range;
}

Duration SendWindow::repeated_rto(Duration first, unsigned rto_cnt) const {
  return longer_each_time(first, rto_cnt, 0,
                          std::min(kLongestRto, std::max(config_.rto_max, first)));
}

bool SendWindow::has_unacked_data(const Pdc& pdc) const {
  const TxHalf& tx = pdc.tx;
  if (!tx.queue.empty()) return true;
  if (tx.unacked == 0) return false;
  for (Psn psn = tx.left_edge; psn.is_before(tx.next); ++psn) {
    const TxRecord& record = records_.at(tx.ring, psn);
    if (!record.is_acked() && record.message != nullptr) return true;
  }
  return false;
}

}  // namespace uet::pds
