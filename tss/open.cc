// A packet arrives. The order of the checks is significant: cheap ones first, nothing is believed
// before the ICV fits, and nothing is remembered of a packet that fails. [TSS 10.2]

#include <algorithm>
#include <bit>

#include "lib/base/planted.h"
#include "lib/wire/pds_headers.h"
#include "tss/secure_domain.h"

namespace uet::tss {

using base::DropReason;
using base::planted;
using base::PlantedBug;

SecureDomain::Refusal SecureDomain::open(net::Packet& packet, const Route& route, bool is_trimmed) {
  was_newest_ = false;
  const auto bytes = packet.bytes();
  constexpr std::uint8_t kTypeTss = 1;
  if (bytes.empty()) return count(DropReason::kTssMalformed);
  if (bytes[0] >> 3 != kTypeTss) {
    if (planted(PlantedBug::kClearBelieved)) return std::nullopt;
    return count(DropReason::kTssMissing);
  }
  const auto header = parse_header(bytes);
  if (!header) return count(DropReason::kTssMalformed);
  if (const Refusal refusal = check(*header, bytes.size())) return refusal;
  Source* const source = sources_.find(route.source, header->ssi);
  if (!is_member(*header, route.source, source)) return count(DropReason::kTssNotMember);
  if (is_trimmed && !planted(PlantedBug::kTrimmedBelieved))
    return peek_trimmed(packet, *header, route, source);
  const std::size_t front = header->size() + config_.clear_bytes;
  if (bytes.size() < front + kIcvBytes) return count(DropReason::kTssMalformed);

  Association& a = slots_[planted(PlantedBug::kAnIgnored) ? tx_slot_ : header->an];
  const OpenKey key = open_key(a, *header, route, source);
  const Iv iv = make_iv(iv_prefix(*header, route.source), header->tsc, *key.mask);
  const AdditionalData aad(carrier_, config_.aad_from_tss, route, bytes, front);
  const auto text = bytes.subspan(front, bytes.size() - front - kIcvBytes);
  const bool is_genuine = key.cipher->open(iv, aad.bytes(), text, text.data() + text.size());
  if (!is_genuine && !(is_trimmed && planted(PlantedBug::kTrimmedBelieved))) {
    count_forgery();
    return DropReason::kTssBadIcv;
  }
  if (const Refusal refusal = accept(a, *header, route, source, key)) return refusal;
  packet.trim_front(header->size());
  packet.trim_back(kIcvBytes);
  ++stats_.in_auth_pkts;
  return std::nullopt;
}

/// What can be said without a key and without the sender.
SecureDomain::Refusal SecureDomain::check(const Header& header, std::size_t bytes) {
  if (header.sdi != config_.sdi) return count(DropReason::kTssUnknownDomain);
  const Association& a = slots_[header.an];
  if (a.state == SlotState::kEmpty) return count(DropReason::kTssNoKey);
  if (is_stopped_) return count(DropReason::kTssDomainStopped);
  if (header.sp != config_.ssi_mode) return count(DropReason::kTssMalformed);
  if (bytes < header.size() + config_.clear_bytes) return count(DropReason::kTssMalformed);
  if (config_.reject_old_epochs && a.epoch) {
    // Serial: epochs wrap. They begin anew with each key, and peers do not switch together. [TSS 7.2, 7.4]
    const auto age = static_cast<std::int16_t>(*a.epoch - header.epoch());
    if (age > 0 && age > static_cast<int>(config_.max_epoch_age))
      return count(DropReason::kTssLateEpoch);
  }
  return std::nullopt;
}

/// The list is searched for strangers, and for the others once after it has changed.
bool SecureDomain::is_member(const Header& header, const net::FabricAddress& address,
                             const Source* source) const {
  if (source != nullptr && source->members_version == members_version_) return true;
  if (config_.members.empty()) return !needs_members(config_);
  // In server mode the SSI is the client's in both directions.
  const bool any_ssi = config_.role == Role::kClient || !header.sp;
  if (!any_ssi)
    return std::binary_search(config_.members.begin(), config_.members.end(),
                              Member{header.ssi, address});
  return std::any_of(config_.members.begin(), config_.members.end(),
                     [&](const Member& m) { return m.address == address; });
}

SecureDomain::OpenKey SecureDomain::open_key(Association& a, const Header& header,
                                             const Route& route, Source* source) {
  if (!derives()) return {a.common_open.get(), a.key.mask ? &*a.key.mask : &no_mask_, nullptr};
  const Context context = context_of(header, route.source);
  if (source != nullptr) {
    for (ReadyKey& key : source->slots[header.an].keys)
      if (key.is_for(a.generation, context)) return {key.cipher.get(), &key.mask, &key};
  }
  derive_into(rx_key_, a, context, Direction::kOpen);
  return {rx_key_.cipher.get(), &rx_key_.mask, nullptr};
}

/// The packet verified. What is known of its sender grows only here.
SecureDomain::Refusal SecureDomain::accept(Association& a, const Header& header, const Route& route,
                                           Source* source, const OpenKey& key) {
  if (source == nullptr) {
    source = sources_.add(route.source, header.ssi, [this](const Source& s) {
      return std::none_of(slots_.begin(), slots_.end(), [&](const Association& slot) {
        return slot.state != SlotState::kEmpty &&
               s.slots[slot.key.an].generation == slot.generation;
      });
    });
    if (source == nullptr) {
      const Refusal refusal = count(DropReason::kTssSourcesFull);
      if (std::has_single_bit(stats_.in_source_table_full_pkts)) alarm(Alarm::kSourcesFull);
      return refusal;
    }
  }
  source->members_version = members_version_;
  Source::Slot& slot = slot_of(*source, a);
  const ReplayFilter::Limits limits{
      .floor = config_.tsc_floor ? config_.tsc_floor_window : UINT64_MAX,
      .window = config_.replay_window};
  if (!slot.replay.accept(header.tsc, limits, sources_.window(*source, header.an)) &&
      !planted(PlantedBug::kReplayIgnored))
    return count(DropReason::kTssReplayed);
  was_newest_ = config_.tsc_floor && slot.replay.newest() == header.tsc &&
                !was_heard_under_newer_key(*source, a);
  if (derives() && key.cached == nullptr) {
    slot.newest = !slot.newest;
    std::swap(slot.keys[slot.newest], rx_key_);
    if (!rx_key_.cipher) rx_key_.cipher = ciphers_.make(Direction::kOpen);
  }
  return std::nullopt;
}

/// Counters begin anew with each key, and senders go from one key to the next. Of two that were there in the beginning neither is known
/// to be the older one.
bool SecureDomain::was_heard_under_newer_key(const Source& source, const Association& a) const {
  const Association& other = slots_[!a.key.an];
  const bool came_after = a.generation > other.generation && a.generation > first_generations_;
  return other.state != SlotState::kEmpty && !came_after &&
         source.slots[other.key.an].generation == other.generation;
}

/// What is remembered of the sender under this filling of the slot, begun anew if it is another.
Source::Slot& SecureDomain::slot_of(Source& source, const Association& a) {
  Source::Slot& slot = source.slots[a.key.an];
  if (slot.generation != a.generation) {
    slot.generation = a.generation;
    slot.replay = ReplayFilter{};
    sources_.reset_window(source, a.key.an);
  }
  return slot;
}

namespace {

constexpr std::size_t kHintBytes = wire::PdsRequestCc::kSize;

bool is_request(std::uint8_t first_byte) {
  switch (static_cast<wire::PdsType>(first_byte >> 3)) {
    case wire::PdsType::kRudReq:
    case wire::PdsType::kRodReq:
    case wire::PdsType::kRudCcReq:
    case wire::PdsType::kRodCcReq:
      return true;
    default:
      return false;
  }
}

}  // namespace

/// The ICV went with the end of the packet. Without it GCM is a key stream, so the front can be read
/// with the key, and changed without it. Nothing is remembered of it. [TSS 9.4]
SecureDomain::Refusal SecureDomain::peek_trimmed(net::Packet& packet, const Header& header,
                                                 const Route& route, Source* source) {
  Association& a = slots_[header.an];
  const std::size_t clear = config_.clear_bytes;
  if (!config_.trim_hints || packet.size() < header.size() + kHintBytes)
    return count(DropReason::kTssTrimmed);
  if (source == nullptr || source->slots[header.an].generation != a.generation)
    return count(DropReason::kTssTrimmed);
  const OpenKey key = open_key(a, header, route, source);
  packet.trim_front(header.size());
  packet.trim_back(packet.size() - kHintBytes);
  key.cipher->peek(make_iv(iv_prefix(header, route.source), header.tsc, *key.mask),
                   packet.bytes().subspan(clear));
  if (!is_request(packet.bytes()[0])) return count(DropReason::kTssTrimmed);
  ++stats_.in_trim_hint_pkts;
  return std::nullopt;
}

void SecureDomain::count_forgery() {
  if (++stats_.in_auth_fail_pkts % config_.auth_fail_threshold != 0) return;
  alarm(Alarm::kForgedPackets);
  if (!config_.stop_at_auth_fail_threshold) return;
  is_stopped_ = true;
  alarm(Alarm::kDomainStopped);
}

/// Counts under the specification's names. [TSS 12.1]
SecureDomain::Refusal SecureDomain::count(DropReason reason) {
  SecurityStats& s = stats_;
  switch (reason) {
    case DropReason::kTssUnknownDomain:
      ++s.in_errored_pkts;
      break;
    case DropReason::kTssNoKey:
      ++s.in_invalid_sa;
      break;
    case DropReason::kTssMalformed:
    case DropReason::kTssDomainStopped:
      ++s.in_invalid;
      break;
    case DropReason::kTssLateEpoch:
      ++s.in_late_pkts;
      break;
    case DropReason::kTssNotMember:
      ++s.in_binding_failure_pkts;
      break;
    case DropReason::kTssMissing:
      ++s.in_rx_encryption_bypass_pkts;
      ++s.in_binding_failure_pkts;
      break;
    case DropReason::kTssReplayed:
      ++s.in_replay_pkts;
      break;
    case DropReason::kTssTrimmed:
      ++s.in_trimmed_pkts;
      break;
    case DropReason::kTssSourcesFull:
      ++s.in_source_table_full_pkts;
      break;
    case DropReason::kTssCounterSpent:
      ++s.out_invoke_fail;
      break;
    case DropReason::kTssNoTxKey:
      ++s.out_errored_pkts;
      break;
    default:
      UET_CHECK(false);
  }
  return reason;
}

}  // namespace uet::tss
