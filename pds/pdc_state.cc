#include "pds/pdc_state.h"

namespace uet::pds {

std::string_view name_of(PdcState state) {
  constexpr std::array<std::string_view, kPdcStateCount> kNames = {
      "CLOSED",   "CREATING",       "PENDING",   "ESTABLISHED", "QUIESCE",
      "ACK_WAIT", "CLOSE_ACK_WAIT", "CLOSE_REQ", "CLOSING"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view name_of(PdcInput input) {
  constexpr std::array<std::string_view, kPdcInputCount> kNames = {
      "first-send",    "syn-accepted", "syn-unconfirmed", "syn-confirmed",
      "peer-learnt",   "close-wanted", "drained",         "close-sent",
      "close-arrived", "close-done",   "failed"};
  return kNames[static_cast<std::size_t>(input)];
}

}  // namespace uet::pds
