#include "pds/pdc_states.h"

namespace uet::pds {

namespace {

constexpr bool counts_as_closing(PdcState s) {
  return s == PdcState::kQuiesce || s == PdcState::kAckWait || s == PdcState::kCloseAckWait ||
         s == PdcState::kCloseReq || s == PdcState::kClosing;
}

constexpr bool is_half_open(PdcState s) {
  return s == PdcState::kCreating || s == PdcState::kPending;
}

}  // namespace

void PdcStates::change(Instant now, Pdc& pdc, PdcInput input) {
  const auto next = next_state(pdc.state, input, pdc.role());
  UET_CHECK(next.has_value());
  trace_.emit(now, base::EventId::kPdcStateChanged, pdc.id, pdc.start,
              static_cast<std::uint64_t>(pdc.state), static_cast<std::uint64_t>(*next));
  closing_ += counts_as_closing(*next) ? 1 : 0;
  closing_ -= counts_as_closing(pdc.state) ? 1 : 0;
  half_open_ += is_half_open(*next) ? 1 : 0;
  half_open_ -= is_half_open(pdc.state) ? 1 : 0;
  pdc.state = *next;
}

}  // namespace uet::pds
