#include "ses/rx_message.h"

#include "ses/sender_table.h"

namespace uet::ses {
namespace {

constexpr std::size_t kFirstBuckets = 64;

}  // namespace

bool RxMessage::is_consistent_with(const RequestView& r) const {
  return opcode == r.opcode && is_sequenced == r.is_sequenced && dc == r.dc && rel == r.rel &&
         job_id == r.job_id && pid_on_fep == r.pid_on_fep && resource_index == r.resource_index &&
         initiator == r.initiator && mkey_match == r.mkey_match &&
         buffer_offset == r.buffer_offset && request_length == r.request_length &&
         carried_length == r.carried_length;
}

RxMessageTable::RxMessageTable(std::uint32_t max, const base::HashKey& hash_key)
    : hash_key_(hash_key),
      pool_(max, 32),
      windows_(max),
      buckets_(new Set::bucket_type[kFirstBuckets]()),
      by_key_(Set::bucket_traits(buckets_.get(), kFirstBuckets), Hash{&hash_key}) {}

RxMessageTable::~RxMessageTable() {
  by_key_.clear();
  by_age_.clear();
}

RxMessage* RxMessageTable::find(const MessageKey& key) {
  if (last_found_ != nullptr && last_found_->key == key) return last_found_;
  const auto it = by_key_.find(key, Hash{&hash_key_}, Equal());
  if (it == by_key_.end()) return nullptr;
  last_found_ = &*it;
  return last_found_;
}

RxMessage* RxMessageTable::create(const MessageKey& key, const RequestView& r,
                                  std::int64_t active_ns, Sender& sender, bool is_proven) {
  RxMessage* m = pool_.acquire();
  if (m == nullptr) return nullptr;
  m->key = key;
  m->target = RxTarget::kDiscard;
  m->endpoint = nullptr;
  m->opcode = r.opcode;
  m->dc = r.dc;
  m->rel = r.rel;
  m->is_sequenced = r.is_sequenced;
  m->is_proven = is_proven;
  m->hd = false;
  m->job_id = r.job_id;
  m->pid_on_fep = r.pid_on_fep;
  m->resource_index = r.resource_index;
  m->initiator = r.initiator;
  m->mkey_match = r.mkey_match;
  m->buffer_offset = r.buffer_offset;
  m->request_length = r.request_length;
  m->carried_length = r.carried_length;
  m->seen = 0;
  m->end = r.carried_length;
  m->som_seen = false;
  m->header_data = 0;
  m->code = ReturnCode::kOk;
  m->code_was_told = false;
  m->active_at_ns = active_ns;
  m->receive = nullptr;
  m->unexpected = nullptr;
  m->region = {};
  m->start = m->limit = m->placed = 0;
  m->progress = {};
  if (pool_.in_use() > 2 * by_key_.bucket_count()) grow_buckets(by_key_, buckets_);
  by_key_.insert(*m);
  by_age_.push_back(*m);
  m->sender = &sender;
  sender.discarded.push_back(*m);
  ++sender.messages;
  if (!is_proven) ++sender.unproven_messages;
  ++use_.of(key.pdc);
  return m;
}

void RxMessageTable::set_target(RxMessage& message, RxTarget target) {
  const bool was_discarded = message.target == RxTarget::kDiscard;
  const bool is_discarded = target == RxTarget::kDiscard;
  message.target = target;
  if (was_discarded == is_discarded) return;
  MessageList& from = was_discarded ? message.sender->discarded : message.sender->live;
  MessageList& to = is_discarded ? message.sender->discarded : message.sender->live;
  to.splice(to.end(), from, from.iterator_to(message));
}

void RxMessageTable::release(RxMessage& message) {
  message.coverage.clear(windows_);
  Sender& sender = *message.sender;
  MessageList& list = message.target == RxTarget::kDiscard ? sender.discarded : sender.live;
  list.erase(list.iterator_to(message));
  --sender.messages;
  if (!message.is_proven) --sender.unproven_messages;
  --use_.of(message.key.pdc);
  by_key_.erase(by_key_.iterator_to(message));
  if (last_found_ == &message) last_found_ = nullptr;
  by_age_.erase(by_age_.iterator_to(message));
  pool_.release(&message);
}

void RxMessageTable::count(RxMessage& m, const RequestView& r) {
  m.seen = std::min<std::uint64_t>(m.seen + r.covered, m.carried_length);
  if (r.som) {
    m.som_seen = true;
    m.hd = r.hd;
    m.header_data = r.header_data;
  }
  if (closes_early(r))
    m.end = r.message_offset;
  else if (m.target != RxTarget::kDiscard)
    m.coverage.add(r.message_offset, r.covered, m.carried_length, windows_);
}

void RxMessageTable::touch(RxMessage& message, std::int64_t active_ns) {
  message.active_at_ns = active_ns;
  by_age_.splice(by_age_.end(), by_age_, by_age_.iterator_to(message));
}

}  // namespace uet::ses
