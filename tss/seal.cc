// A packet leaves. [TSS 10.1]

#include <algorithm>

#include "tss/secure_domain.h"

namespace uet::tss {

using base::DropReason;

SecureDomain::Refusal SecureDomain::seal(net::Packet& packet, const net::FabricAddress& destination,
                                         std::uint16_t entropy) {
  const Refusal refusal = seal_later(packet, destination, entropy);
  seal_pending();
  return refusal;
}

SecureDomain::Refusal SecureDomain::seal_later(net::Packet& packet,
                                               const net::FabricAddress& destination,
                                               std::uint16_t entropy) {
  if (tx_slot_ < 0) return count(DropReason::kTssNoTxKey);
  Association& a = slots_[tx_slot_];
  const auto header = next_header(a, destination);
  if (!header)
    return count(a.counter.left() == 0 ? DropReason::kTssCounterSpent : DropReason::kTssNoTxKey);
  const SealKey key = seal_key(a, *header, destination);
  const Iv iv = make_iv(iv_prefix(*header, own_), header->tsc, *key.mask);

  const std::size_t clear = config_.clear_bytes;
  UET_CHECK(packet.size() >= clear);
  emit_header(*header, packet.prepend(header->size()));
  std::uint8_t* const icv = packet.append(kIcvBytes);
  const Route route{own_, destination, entropy};
  AdditionalData& aad = job_aads_[pending_];
  aad =
      AdditionalData(carrier_, config_.aad_from_tss, route, packet.bytes(), header->size() + clear);
  const auto text = packet.bytes().subspan(header->size() + clear);
  jobs_[pending_++] = {key.cipher, iv, aad.bytes(), text.first(text.size() - kIcvBytes), icv};
  pending_bytes_ += text.size();
  if (pending_ == jobs_.size() || pending_bytes_ > kBurstBytes / 2) seal_pending();
  ++stats_.out_auth_pkts;
  return std::nullopt;
}

void SecureDomain::seal_pending() {
  if (pending_ == 0)
    return;  // also in a child made by fork(), which has no sealer (locked_memory.h)
  sealer_->seal(std::span(jobs_).first(pending_));
  pending_ = pending_bytes_ = 0;
}

/// Complete but for what the packet's own bytes decide. A counter value is spent.
std::optional<Header> SecureDomain::next_header(Association& a,
                                                const net::FabricAddress& destination) {
  const auto ssi = ssi_towards(destination);
  if (!ssi) return std::nullopt;
  const auto counter = a.counter.take();
  if (!counter) return std::nullopt;
  return Header{.sp = config_.ssi_mode,
                .an = a.key.an,
                .sdi = config_.sdi,
                .ssi = *ssi,
                .tsc = std::uint64_t{a.epoch.value()} << kCounterBits | *counter};
}

/// Ours, or as a server the client's: the one that the list of members gives its address. [TSS 5]
std::optional<std::uint32_t> SecureDomain::ssi_towards(const net::FabricAddress& destination) {
  if (!config_.ssi_mode) return 0;
  if (config_.role != Role::kServer) return config_.ssi;
  if (const Source* client = sources_.find_member(destination, members_version_))
    return client->ssi;
  const auto at = std::find_if(config_.members.begin(), config_.members.end(),
                               [&](const Member& m) { return m.address == destination; });
  if (at == config_.members.end()) return std::nullopt;
  return at->ssi;
}

SecureDomain::SealKey SecureDomain::seal_key(Association& a, const Header& header,
                                             const net::FabricAddress& destination) {
  if (!derives()) return {a.common_seal.get(), a.key.mask ? &*a.key.mask : &no_mask_};
  const bool is_server = config_.role == Role::kServer;
  const Context context = context_of(header, is_server ? destination : own_);
  ReadyKey* ready = &tx_key_;
  if (is_server)
    if (Source* client = sources_.find(destination, header.ssi)) ready = &client->tx;
  if (!ready->is_for(a.generation, context)) {
    seal_pending();  // under the key that was there
    derive_into(*ready, a, context, Direction::kSeal);
  }
  return {ready->cipher.get(), &ready->mask};
}

}  // namespace uet::tss
