#include "apps/sim/swarm_windows.h"

#include <fmt/format.h>

#include <utility>

namespace uet::sim {

using base::Event;
using base::EventId;
using base::Psn;

WindowWatch::WindowWatch(const pds::PdsConfig& config, bool peers_are_honest, Report report)
    : assumed_(config.default_mpr * 128u),
      granted_(config.local_mp_range),
      max_pdc_(config.max_pdc),
      peers_are_honest_(peers_are_honest),
      report_(std::move(report)) {}

void WindowWatch::on_event(const Event& event) {
  switch (event.id) {
    case EventId::kPdcOpened:
      return on_opened(event);
    case EventId::kPdcStateChanged:
      return on_moved(event);
    case EventId::kRequestSent:
    case EventId::kPacketRetransmitted:
      return on_sent(event);
    case EventId::kAckReceived:
      return on_acknowledged(event);
    case EventId::kPdcClosed:
      pdcs_.erase(event.pdc);
      return;
    default:
      return;
  }
}

void WindowWatch::on_opened(const Event& event) {
  if (event.pdc == 0) report_("a PDC has the identifier 0");
  const Psn start = event.psn;
  if (!pdcs_.try_emplace(event.pdc, Pdc{start, start - 1, start, assumed_}).second)
    report_(fmt::format("PDC {} was opened twice", event.pdc));
  if (pdcs_.size() > max_pdc_) report_(fmt::format("{} PDCs are open", pdcs_.size()));
}

/// A target that challenges an opening moves all its PSNs. [PDS 6.5]
void WindowWatch::on_moved(const Event& event) {
  const auto at = pdcs_.find(event.pdc);
  if (at == pdcs_.end()) return;
  Pdc& pdc = at->second;
  const std::int32_t shift = event.psn.distance_from(pdc.start);
  for (Psn* psn : {&pdc.start, &pdc.cack, &pdc.next}) *psn = *psn + shift;
}

// [PDS 7.2, 21.11]
void WindowWatch::on_sent(const Event& event) {
  const auto at = pdcs_.find(event.pdc);
  if (at == pdcs_.end()) {
    if (event.pdc != 0)  // 0: a packet of RUDI or UUD
      report_(
          fmt::format("PSN {} left on PDC {}, which is not open", event.psn.value(), event.pdc));
    return;
  }
  Pdc& pdc = at->second;
  const std::int32_t ahead = event.psn.distance_from(pdc.cack);
  if (!peers_are_honest_) {
    // An attacker may have granted any window, and forged acknowledgements change only the attacker's own PDCs.
  } else if (ahead <= 0 || static_cast<std::uint32_t>(ahead) > pdc.window) {
    report_(fmt::format("PSN {} left on PDC {} with CACK {} and a window of {}", event.psn.value(),
                        event.pdc, pdc.cack.value(), pdc.window));
  }
  if (event.id != EventId::kRequestSent) return;
  if (event.psn.is_before(pdc.next))
    report_(fmt::format("PSN {} of PDC {} was used twice", event.psn.value(), event.pdc));
  pdc.next = event.psn + 1;
}

void WindowWatch::on_acknowledged(const Event& event) {
  const auto at = pdcs_.find(event.pdc);
  if (at == pdcs_.end()) return;
  Pdc& pdc = at->second;
  const Psn cack(static_cast<std::uint32_t>(event.a));
  if (cack.is_before(pdc.cack)) return;  // an older one says nothing about the window
  pdc.cack = cack;
  pdc.window = granted_;
}

}  // namespace uet::sim
