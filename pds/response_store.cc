#include "pds/response_store.h"

#include <cstring>

namespace uet::pds {

ResponseStore::ResponseStore(std::uint32_t kept, std::uint32_t acks, std::uint16_t max_data,
                             const base::HashKey& key)
    : key_(key),
      pool_(kept + kEdgeReserve + acks),
      index_(pool_, kept),
      kept_max_(kept),
      acks_max_(acks),
      max_data_(max_data),
      data_(new std::uint8_t[static_cast<std::size_t>(kept + kEdgeReserve + acks) * max_data + 1]) {
}

RxRecord* ResponseStore::add(std::uint32_t owner, Psn psn, RxRecord::State state,
                             const RxMeta& meta) {
  // Each kind has its own share, so that a burst of ACKs never takes the room of answers that must
  // be kept.
  const bool room =
      state == RxRecord::State::kAckOnly ? pool_.in_use() - kept_ < acks_max_ : can_keep(true);
  if (!room) return nullptr;
  RxRecord* record = pool_.acquire();
  record->psn = psn;
  record->owner = owner;
  record->meta = meta;
  if (state != RxRecord::State::kAckOnly) change_state(*record, state);
  return record;
}

RxRecord* ResponseStore::find(std::uint32_t owner, Psn psn) {
  return index_.find(hash(owner, psn),
                     [&](const RxRecord& r) { return r.owner == owner && r.psn == psn; });
}

void ResponseStore::change_state(RxRecord& record, RxRecord::State state) {
  const bool was_kept = record.state != RxRecord::State::kAckOnly;
  const bool is_kept = state != RxRecord::State::kAckOnly;
  record.state = state;
  if (was_kept == is_kept) return;
  const std::size_t h = hash(record.owner, record.psn);
  if (is_kept) {
    index_.insert(h, record);
    ++kept_;
  } else {
    index_.erase(h, record);
    --kept_;
  }
}

void ResponseStore::set_response(RxRecord& record, const SesResponse& response) {
  UET_CHECK(response.header_bytes <= record.header.size());
  UET_CHECK(response.data.size() <= max_data_);
  record.next_hdr = response.next_hdr;
  record.header_bytes = response.header_bytes;
  record.header = response.header;
  record.data_bytes = static_cast<std::uint16_t>(response.data.size());
  if (!response.data.empty())
    std::memcpy(data_.get() + static_cast<std::size_t>(pool_.index_of(&record)) * max_data_,
                response.data.data(), response.data.size());
}

std::span<const std::uint8_t> ResponseStore::data_of(const RxRecord& record) const {
  return {data_.get() + static_cast<std::size_t>(pool_.index_of(&record)) * max_data_,
          record.data_bytes};
}

void ResponseStore::remove(RxRecord& record) {
  UET_DCHECK(!record.queued);
  change_state(record, RxRecord::State::kAckOnly);
  pool_.release(&record);
}

void ResponseStore::link(Part& part, std::uint32_t after, RxRecord& record) {
  const std::uint32_t index = pool_.index_of(&record);
  record.queued = true;
  record.queue_before = after;
  std::uint32_t& next_of_before = after == base::kNoIndex ? part.head : pool_.at(after).queue_next;
  record.queue_next = next_of_before;
  next_of_before = index;
  (record.queue_next == base::kNoIndex ? part.tail : pool_.at(record.queue_next).queue_before) =
      index;
}

void ResponseStore::push(AckQueue& queue, RxRecord& record) {
  record.queued_first = false;
  link(queue.rest, queue.rest.tail, record);
}

void ResponseStore::push_ordered(AckQueue& queue, RxRecord& record) {
  std::uint32_t after = queue.rest.tail;
  while (after != base::kNoIndex && pool_.at(after).psn.is_after(record.psn)) {
    after = pool_.at(after).queue_before;
    ++passed_;
  }
  record.queued_first = false;
  link(queue.rest, after, record);
}

void ResponseStore::push_front(AckQueue& queue, RxRecord& record) {
  record.queued_first = true;
  link(queue.first, base::kNoIndex, record);
}

RxRecord* ResponseStore::front(const AckQueue& queue) {
  if (queue.is_empty()) return nullptr;
  return &pool_.at(queue.first.head != base::kNoIndex ? queue.first.head : queue.rest.head);
}

RxRecord* ResponseStore::pop(AckQueue& queue) {
  RxRecord* record = front(queue);
  if (record != nullptr) unqueue(queue, *record);
  return record;
}

void ResponseStore::unqueue(AckQueue& queue, RxRecord& record) {
  UET_CHECK(record.queued);
  Part& part = record.queued_first ? queue.first : queue.rest;
  (record.queue_before == base::kNoIndex ? part.head : pool_.at(record.queue_before).queue_next) =
      record.queue_next;
  (record.queue_next == base::kNoIndex ? part.tail : pool_.at(record.queue_next).queue_before) =
      record.queue_before;
  record.queued = false;
}

}  // namespace uet::pds
