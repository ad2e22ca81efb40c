#include "ses/send_stream.h"

#include "ses/tx_op.h"

namespace uet::ses {

std::uint32_t StreamNames::take() {
  return 1 + static_cast<std::uint32_t>(rng_.below(kNumberMask));
}

bool SendStream::reaches_bound(const TxOp& oldest) const {
  return number_distance(next_, oldest.place.number) >= kSequenceWindow;
}

bool SendStream::is_full() const {
  return first_ != nullptr && reaches_bound(*first_);
}

void SendStream::join(TxOp& op, StreamNames& names) {
  if (!op.is_sequenced) {
    if (id_ == 0) id_ = names.take();
    op.is_sequenced = true;
    op.place.stream = id_;
    op.place.number = next_;
    next_ = number_after(next_);
    op.before = last_;
    op.behind = nullptr;
    (last_ != nullptr ? last_->behind : first_) = &op;
    last_ = &op;
  }
  op.place.behind =
      static_cast<std::uint16_t>(number_distance(op.place.number, first_->place.number));
  op.buffer_offset = op.place.pack();
}

bool SendStream::leave(TxOp& op) {
  const bool was_full = first_ == &op && reaches_bound(op);
  (op.before != nullptr ? op.before->behind : first_) = op.behind;
  (op.behind != nullptr ? op.behind->before : last_) = op.before;
  op.is_sequenced = false;
  op.buffer_offset = 0;
  return was_full;
}

bool SendStream::take(TxOp& op) {
  if (number_distance(op.place.number, newest_taken_) > 0) newest_taken_ = op.place.number;
  return leave(op);
}

bool SendStream::leaves_gap(const TxOp& op) const {
  if (is_refused_) return false;
  const bool is_alone = first_ == &op && last_ == &op;
  return !is_alone || number_after(op.place.number) != next_;
}

void SendStream::on_refused() {
  for (const TxOp* op = first_; op != nullptr; op = op->behind)
    if (op->state == OpState::kCarried) return;
  if (first_ == nullptr || number_distance(first_->place.number, newest_taken_) > 0)
    is_refused_ = true;
}

}  // namespace uet::ses
