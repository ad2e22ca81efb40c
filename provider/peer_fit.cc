#include "provider/peer_fit.h"

#include <string>
#include <utility>

namespace uet::provider {
namespace {

/// A few may be damage on the way; more of them are a peer with another setting.
constexpr std::uint64_t kPacketsToTell = 3;
constexpr std::uint64_t kCreditRequestsToTell =
    5;  ///< a second; requests that draw nothing leave ten times in one
constexpr int kLooksToTell = 2;
constexpr int kLooksToTellOfRoom = 3;  ///< so long may a receiver compute, and then go on by itself

}  // namespace

Remarks PeerFit::look(base::Instant now, fep::Fep& fep, const fep::Settings& settings) {
  ++looks_since_crc_;
  ++looks_since_room_;
  look_at_crc(fep, settings);
  look_at_credit(fep, settings);
  look_at_security(fep, settings);
  look_at_room(fep, settings);
  const bool is_explained = looks_since_crc_ < kLooksBetweenWarnings;
  reach_.look(now, fep, settings, is_explained, remarks_);
  return std::exchange(remarks_, {});
}

void PeerFit::remark(std::string text) {
  remarks_.push_back(std::move(text));
}

void PeerFit::look_at_crc(fep::Fep& fep, const fep::Settings& settings) {
  const std::uint64_t bad = fep.trace().drops(base::DropReason::kBadCrc);
  if (bad < bad_crcs_told_ + kPacketsToTell || looks_since_crc_ < kLooksBetweenWarnings) return;
  remark(std::to_string(bad - bad_crcs_told_) + " packets with a wrong CRC, the last from " +
         fep.last_bad_crc_from().to_string() + ": is FI_UET_PROTECT the same there (here " +
         (settings.protect == fep::Protection::kNone ? "none" : "crc") + ")?");
  bad_crcs_told_ = bad;
  looks_since_crc_ = 0;
}

/// A peer that gives no credit is asked again and again, while no data leaves: those of this version give it whatever they run.
void PeerFit::look_at_credit(fep::Fep& fep, const fep::Settings& settings) {
  base::Trace& trace = fep.trace();
  const std::uint64_t data =
      trace.count(base::EventId::kRequestSent) + trace.count(base::EventId::kPacketRetransmitted);
  const std::uint64_t asked = trace.count(base::EventId::kControlSent);
  const cc::Algorithm cc = settings.cc;
  const bool wants_credit = cc == cc::Algorithm::kRccc || cc == cc::Algorithm::kBoth;
  const bool is_stuck = wants_credit && data == data_sent_ &&
                        asked >= asked_ + kCreditRequestsToTell &&
                        fep.pds().gauges().queued_messages > 0;
  looks_without_credit_ = is_stuck ? looks_without_credit_ + 1 : 0;
  data_sent_ = data;
  asked_ = asked;
  if (looks_without_credit_ != kLooksToTell) return;
  std::string peer = "a peer";
  fep.pds().for_each_pdc([&](const pds::Pds::PdcView& pdc) {
    if (pdc.queued > 0) peer = pdc.peer.to_string();
    return pdc.queued == 0;
  });
  remark("credit was asked for " + std::to_string(asked) + " times and " + peer +
         " grants none: it is of an older version or another make, and needs FI_UET_CC=nscc here "
         "(it is " +
         (cc == cc::Algorithm::kRccc ? "rccc" : "both") + ")");
}

void PeerFit::look_at_security(fep::Fep& fep, const fep::Settings& settings) {
  const base::Trace& trace = fep.trace();
  if (settings.keys.empty() && trace.drops(base::DropReason::kTssUnexpected) >= kPacketsToTell)
    remark(
        "packets come encrypted, and are dropped: a peer has FI_UET_KEYS set, and this endpoint "
        "has not");
  if (!settings.keys.empty() && trace.drops(base::DropReason::kTssMissing) >= kPacketsToTell)
    remark("packets come in clear, and are dropped: FI_UET_KEYS is set here, and not at a peer");
}

/// A receive that names one of the messages behind those that fill the room waits for ever, and nothing else tells why. One message for
/// which there would be no room anyway, of a stranger perhaps, says nothing of the rest.
void PeerFit::look_at_room(fep::Fep& fep, const fep::Settings& settings) {
  const base::Trace& trace = fep.trace();
  const ses::Ses::Gauges gauges = fep.ses().gauges();
  const Received before =
      std::exchange(received_, {.matched = trace.count(base::EventId::kMessageMatched),
                                .delivered = trace.count(base::EventId::kMessageDelivered),
                                .unexpected = gauges.unexpected_messages,
                                .receives = gauges.receives_posted});
  const bool is_room_used = gauges.unexpected_messages >= settings.overflow_msgs / 2 ||
                            gauges.unexpected_bytes >= settings.overflow_bytes / 2;
  const bool is_stuck = gauges.header_only_messages > 0 && is_room_used &&
                        gauges.receives_posted > 0 && received_ == before;
  looks_without_room_ = is_stuck ? looks_without_room_ + 1 : 0;
  if (looks_without_room_ < kLooksToTellOfRoom || looks_since_room_ < kLooksBetweenWarnings) return;
  remark("receives wait, and " + std::to_string(gauges.unexpected_messages) +
         " messages that none of them takes fill the room for what arrives before its receive, so "
         "that others are refused: raise FI_UET_OVERFLOW_MSGS (here " +
         std::to_string(settings.overflow_msgs) + ") and FI_UET_OVERFLOW_BYTES (here " +
         std::to_string(settings.overflow_bytes) + "), or receive some of these messages first");
  looks_since_room_ = 0;
}

}  // namespace uet::provider
