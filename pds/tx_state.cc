#include "pds/tx_state.h"

namespace uet::pds {

std::string_view name_of(TxState state) {
  constexpr std::array<std::string_view, kTxStateCount> kNames = {
      "UNSENT",    "IN_FLIGHT", "SUSPECTED", "ARRIVED",    "ASK_DUE",     "ASKED",
      "ASK_AGAIN", "ACKED",     "QUEUED",    "BACKED_OFF", "PLACE_WANTED"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view name_of(TxEvent event) {
  constexpr std::array<std::string_view, kTxEventCount> kNames = {"sent",
                                                                  "overtaken",
                                                                  "window-shrank",
                                                                  "arrived",
                                                                  "busy",
                                                                  "answer-missing",
                                                                  "asked",
                                                                  "lost",
                                                                  "refused",
                                                                  "paused",
                                                                  "paused-for-place",
                                                                  "resumed",
                                                                  "acknowledged"};
  return kNames[static_cast<std::size_t>(event)];
}

}  // namespace uet::pds
