#include "pds/reorder_buffer.h"

#include "pds/congestion.h"

namespace uet::pds {

namespace {
// ROD packets follow one path, so packets behind a gap mean that it is lost; a few are waited for
// in case the path changed.
constexpr std::uint32_t kHeldBeforeNack = 3;
// Of the NACKs that one packet may draw.
constexpr unsigned kReportsAtOnce = 16;

std::size_t hash_of(const base::HashKey& key, std::uint32_t owner, Psn psn) {
  return key(std::uint64_t{owner} << 32 | psn.value());
}
}  // namespace

bool ReorderBuffer::hold(Instant now, Pdc& pdc, const Arrival& in) {
  if (in.packet == nullptr || in.is_control) return false;
  const std::uint32_t owner = table_.slot_of(pdc);
  if (find(pdc, in.psn) != nullptr) {
    trace_.drop(now, DropReason::kDuplicate, in.body.size(), pdc.id, in.psn);
    return true;
  }
  // Held packets may not take the buffers that receiving the missing one, and answering, need.
  if (pool_.available() < pool_.capacity() / 2) return false;
  // A forged opening never gets the packet that it waits for.
  if (pdc.is_unproven() && held_.in_use() >= held_.capacity() / 8) return false;
  // A peer may leave gaps open for as long as it likes: it leaves a quarter to others, however many PDCs it has.
  PeerShares::Use& peer = peers_.at(pdc.share);
  if (peer.held > 3 * (held_.capacity() - held_.in_use())) return false;
  Entry* held = held_.acquire();
  if (held == nullptr) return false;
  ++peer.held;
  held->owner = owner;
  held->arrival = in;
  held->packet = std::move(*in.packet);
  held->arrival.packet = nullptr;
  index_.insert(hash_of(env_.hash_key, owner, in.psn), *held);
  RxHalf& rx = pdc.rx;
  ++rx.held;
  rx.held_last = rx.held == 1 ? in.psn : serial_max(rx.held_last, in.psn);
  report_gaps(now, pdc, in.meta);
  return true;
}

// Names every missing PSN that enough later ones have overtaken: once when it is overtaken, and again in rounds, since its copy
// may be lost too. The source knows by the time whether that copy can have arrived.
void ReorderBuffer::report_gaps(Instant now, Pdc& pdc, const RxMeta& meta) {
  RxHalf& rx = pdc.rx;
  if (rx.held < kHeldBeforeNack) return;
  begin_round_if_due(now, pdc);
  report_gaps_before(now, pdc, meta, rx.held_last - (kHeldBeforeNack - 1));
}

void ReorderBuffer::report_all_gaps(Instant now, Pdc& pdc, const RxMeta& meta) {
  if (pdc.rx.held == 0) return;
  begin_round_if_due(now, pdc);
  report_gaps_before(now, pdc, meta, pdc.rx.held_last);
}

// A round walks over all that is held, so a source that asks again and again begins none.
void ReorderBuffer::begin_round_if_due(Instant now, Pdc& pdc) {
  if (now - pdc.rx.last_ooo_nack < gap_round(pdc)) return;
  pdc.rx.last_ooo_nack = now;
  pdc.rx.gaps_reported = pdc.rx.edge;
}

void ReorderBuffer::report_gaps_before(Instant now, Pdc& pdc, const RxMeta& meta, Psn end) {
  RxHalf& rx = pdc.rx;
  unsigned reports = 0;
  const unsigned most = pdc.is_unproven() ? 1 : kReportsAtOnce;  // one packet draws one
  for (Psn psn = serial_max(rx.gaps_reported, rx.edge) + 1; psn.is_before(end) && reports < most;
       ++psn) {
    rx.gaps_reported = psn;
    if (find(pdc, psn) != nullptr) continue;
    ++reports;
    wire::PdsNack header;
    header.nack_code = code_of(Notice::kInferredLost);
    header.nack_psn = psn;
    header.m = meta.ecn;
    header.spdcid = NackQueue::identifier_of(pdc);
    header.dpdcid = pdc.peer_id;
    nacks_.add(now, pdc.peer, meta, header, header.spdcid != 0, &pdc);
  }
}

// The destination does not know the round trip. The configured one is a fair guess, and a round too early is answered by the source.
Duration ReorderBuffer::gap_round(const Pdc& pdc) const {
  return std::min(round_trip(pdc, config_), base_rtt_);
}

ReorderBuffer::Entry* ReorderBuffer::find(const Pdc& pdc, Psn psn) {
  const std::uint32_t owner = table_.slot_of(pdc);
  return index_.find(hash_of(env_.hash_key, owner, psn),
                     [&](const Entry& e) { return e.owner == owner && e.arrival.psn == psn; });
}

std::optional<ReorderBuffer::Held> ReorderBuffer::take_next(Pdc& pdc) {
  if (pdc.rx.held == 0) return std::nullopt;
  Entry* entry = find(pdc, pdc.rx.edge + 1);
  if (entry == nullptr) return std::nullopt;
  Held next{entry->arrival, std::move(entry->packet)};
  drop(pdc, *entry);
  return next;
}

void ReorderBuffer::drop(Pdc& pdc, Entry& entry) {
  index_.erase(hash_of(env_.hash_key, entry.owner, entry.arrival.psn), entry);
  held_.release(&entry);
  --peers_.at(pdc.share).held;
  --pdc.rx.held;
}

void ReorderBuffer::release(Pdc& pdc) {
  for (Psn psn = pdc.rx.cack + 1; pdc.rx.held > 0 && psn.is_at_or_before(pdc.rx.held_last); ++psn)
    if (Entry* entry = find(pdc, psn)) drop(pdc, *entry);
}

}  // namespace uet::pds
