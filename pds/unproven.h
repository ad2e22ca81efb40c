/// Target PDCs whose peer has not proved that it hears us. Any host can send a SYN in the name of any other, so such a PDC costs
/// next to nothing and has no place that lasts; see docs/decisions/0100.
#pragma once

#include <cstdint>
#include <iterator>

#include "pds/pdc.h"

namespace uet::pds {

/// In the order of opening. A peer has proved itself with the first packet that names our PDCID.
class UnprovenPdcs {
 public:
  /// Packets that a target sends to such a peer of its own accord; everything else answers a packet.
  static constexpr std::uint8_t kUnasked = 2;
  /// While read data waits for the proof: questions, each after twice the time of the one before, so that a minute sees all but the last
  /// of them even where a round trip takes 100 us.
  static constexpr std::uint8_t kQuestions = 20;
  /// Data earns more of them, grants above all: a control packet of some 50 bytes for each of 2 KiB that came.
  static constexpr std::uint8_t kMostUnasked = 200;
  static constexpr std::uint32_t unasked_for(std::uint64_t rcvd_bytes, bool is_proof_awaited) {
    const std::uint64_t earned = rcvd_bytes / 2048;
    const std::uint32_t free = is_proof_awaited ? kQuestions : kUnasked;
    return earned >= kMostUnasked - free ? kMostUnasked : free + static_cast<std::uint32_t>(earned);
  }
  /// Read data on an ACK to such a peer: what is longer waits for the proof.
  static constexpr std::size_t kAnswerBytes = 64;

  /// `places`: target PDCs that the table can hold. Half of them at most are unproven; a table of a few has no half to spare.
  /// `grace`: how long one of them must have been silent before it may be pushed out.
  UnprovenPdcs(std::uint32_t places, Duration grace)
      : share_(places < kSmallTable ? places : places / 2), grace_(grace) {}

  void add(Pdc& pdc) {
    list_.push_back(pdc);
    ++size_;
    if (next_to_ask_ == nullptr) next_to_ask_ = &pdc;
  }
  void remove(Pdc& pdc) {
    if (next_to_ask_ == &pdc) next_to_ask_ = behind(pdc);
    if (next_to_look_at_ == &pdc) next_to_look_at_ = behind(pdc);
    list_.erase(list_.iterator_to(pdc));
    --size_;
  }
  std::uint32_t size() const { return size_; }
  std::uint32_t share() const { return share_; }
  bool has_share_left() const { return size_ < share_; }
  /// Each one once, the oldest first, from when half of the share is used: its peer is to be asked for the proof, so that an honest
  /// one that had nothing to say since its first message keeps its place when a flood takes the rest. A peer with more to say proves
  /// itself within a round trip, so those that came just now are not asked yet. Null while there is none.
  Pdc* take_next_to_ask(Instant now) {
    if (next_to_ask_ == nullptr || size_ < share_ / 2 ||
        now - next_to_ask_->opened_at < grace_ / kAskAfter)
      return nullptr;
    Pdc* const pdc = next_to_ask_;
    next_to_ask_ = behind(*pdc);
    return pdc;
  }
  /// The oldest one whose peer has had its chance: silent for the time of grace, or asking for much longer without ever having
  /// heard an answer. Null while there is none.
  Pdc* to_evict(Instant now) {
    int looked = 0;
    for (Pdc& pdc : list_) {
      if (++looked > kLookAt) break;
      if (had_its_chance(now, pdc)) return &pdc;
    }
    return nullptr;
  }
  /// The same among those under one address. Of many it looks at some, and goes on behind them the next time.
  Pdc* to_evict_of(Instant now, const net::FabricAddress& peer) {
    if (size_ <= kLookAt) next_to_look_at_ = nullptr;
    for (int looked = 0; looked < kLookAt && !list_.empty(); ++looked) {
      if (next_to_look_at_ == nullptr) next_to_look_at_ = &list_.front();
      Pdc& pdc = *next_to_look_at_;
      if (now - pdc.opened_at < grace_) {  // nor has any that was opened later had its chance
        next_to_look_at_ = nullptr;
        break;
      }
      if (pdc.peer == peer && had_its_chance(now, pdc)) return &pdc;
      next_to_look_at_ = behind(pdc);
      if (next_to_look_at_ == nullptr) break;
    }
    return nullptr;
  }
  /// The same among the first ones of `pdcs`, but for `except`.
  template <typename List>
  Pdc* to_evict_among(Instant now, List& pdcs, const Pdc& except) {
    int looked = 0;
    for (Pdc& pdc : pdcs) {
      if (++looked > kLookAt) break;
      if (&pdc != &except && had_its_chance(now, pdc)) return &pdc;
    }
    return nullptr;
  }

 private:
  /// Null behind the last one.
  Pdc* behind(Pdc& pdc) {
    const auto next = std::next(list_.iterator_to(pdc));
    return next == list_.end() ? nullptr : &*next;
  }
  bool had_its_chance(Instant now, const Pdc& pdc) const {
    return now - pdc.heard_at >= grace_ || now - pdc.opened_at >= grace_ * kChances;
  }

  static constexpr std::uint32_t kSmallTable = 16;
  static constexpr int kChances = 4;
  static constexpr int kAskAfter = 4;  ///< part of the time of grace
  static constexpr int kLookAt = 64;

  std::uint32_t share_;
  Duration grace_;
  std::uint32_t size_ = 0;
  Pdc* next_to_ask_ = nullptr;      ///< it and all behind it in the list have not been asked
  Pdc* next_to_look_at_ = nullptr;  ///< by to_evict_of(); null: the first one
  boost::intrusive::list<
      Pdc,
      boost::intrusive::member_hook<Pdc, boost::intrusive::list_member_hook<>, &Pdc::unproven_hook>,
      boost::intrusive::constant_time_size<false>>
      list_;
};

}  // namespace uet::pds
