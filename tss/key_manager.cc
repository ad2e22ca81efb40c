#include "tss/key_manager.h"

namespace uet::tss {

std::string_view name_of(Alarm alarm) {
  switch (alarm) {
    case Alarm::kCounterLow:
      return "7/8 of the packet counters of the key are spent; rotate the key";
    case Alarm::kCounterSpent:
      return "all packet counters of the key are spent; nothing is sent until the key is rotated";
    case Alarm::kNoReservation:
      return "the counter state of the key is missing or cannot be written";
    case Alarm::kForgedPackets:
      return "many packets did not verify: a wrong key at a peer, or forgeries";
    case Alarm::kDomainStopped:
      return "too many packets did not verify; nothing is accepted until another key comes "
             "(uet-keys "
             "rotate) or a signal has the file read again (FI_UET_KEYS_SIGNAL)";
    case Alarm::kPendingFlood:
      return "many openings were challenged and never came back: they may be replays";
    case Alarm::kSourcesFull:
      return "more senders than max_sources; new ones are refused";
  }
  return "";
}

}  // namespace uet::tss
