// Ordered messages without an ordered context: numbered, so that the target can restore their order. [decision 141]
#include "ses/transmitter.h"

namespace uet::ses {

bool Transmitter::wants_spray(const TxOp& op) const {
  return op.fills_gap || (op.may_spray && !op.peer->stream_of(op.space()).is_refused);
}

/// The target need not know numbers that are further ahead of what it waits for.
bool Transmitter::is_stream_full(const TxOp& op) const {
  if (op.is_sequenced || !wants_spray(op)) return false;
  const SendStream& stream = op.peer->stream_of(op.space());
  return stream.first != nullptr &&
         number_distance(stream.next, stream.first->place.number) >= kSequenceWindow;
}

/// The target has taken a number of it, so what it refuses is not the number.
bool Transmitter::is_stream_known(const TxOp& op) {
  return op.peer->stream_of(op.space()).newest_taken != SendStream{}.newest_taken;
}

/// The number stays through all attempts; how far behind it the oldest one is does not.
void Transmitter::join_stream(TxOp& op) {
  SendStream& stream = op.peer->stream_of(op.space());
  if (!op.is_sequenced) {
    if (stream.id == 0) {
      // Unlike those of a process that had our address before. [decision 141]
      if (next_stream_ == 0) next_stream_ = 1 + core_.rng.below(kNumberMask);
      stream.id = next_stream_;
      next_stream_ = next_stream_ == kNumberMask ? 1 : next_stream_ + 1;
    }
    op.is_sequenced = true;
    op.place.stream = stream.id;
    op.place.number = stream.next;
    stream.next = number_after(stream.next);
    op.before = stream.last;
    op.behind = nullptr;
    (stream.last != nullptr ? stream.last->behind : stream.first) = &op;
    stream.last = &op;
  }
  op.place.behind =
      static_cast<std::uint16_t>(number_distance(op.place.number, stream.first->place.number));
  op.buffer_offset = op.place.pack();
}

/// The target took it, perhaps before its turn.
void Transmitter::note_taken(TxOp& op) {
  SendStream& stream = op.peer->stream_of(op.space());
  if (number_distance(op.place.number, stream.newest_taken) > 0)
    stream.newest_taken = op.place.number;
  leave_stream(op);
}

/// The target has it, or will never wait for it again.
void Transmitter::leave_stream(TxOp& op) {
  SendStream& stream = op.peer->stream_of(op.space());
  const bool was_full =
      stream.first == &op && number_distance(stream.next, op.place.number) >= kSequenceWindow;
  (op.before != nullptr ? op.before->behind : stream.first) = op.behind;
  (op.behind != nullptr ? op.behind->before : stream.last) = op.before;
  op.is_sequenced = false;
  op.buffer_offset = 0;
  if (!was_full) return;
  for (Flow* f = op.peer->flows; f != nullptr; f = f->next_of_peer) defer(*f);
}

/// Ends without having been taken, as far as is known, and the target may hold what came behind it. A newest message without
/// older ones leaves no trace: the next one says that everything before it is over.
bool Transmitter::leaves_gap(const TxOp& op, ReturnCode code) const {
  if (op.fills_gap || code == ReturnCode::kOk) return false;
  const SendStream& stream = op.peer->stream_of(op.space());
  if (code == ReturnCode::kPeerSilent || stream.is_refused) return false;
  const bool is_alone = stream.first == &op && stream.last == &op;
  return !is_alone || number_after(op.place.number) != stream.next;
}

/// The operation is over for its user. Its descriptor says so to the target, so that this cannot fail for lack of room.
void Transmitter::fill_gap(TxOp& op) {
  release_memory(op);
  op.fills_gap = true;
  op.is_rendezvous = false;
  op.endpoint = nullptr;
  op.length = 0;
  op.header_data = 0;
  op.retries = 0;
  op.has_header_data = op.delivery_complete = op.cancelled = op.memory_gone = false;
  op.awaits_delivery = false;
  op.state = OpState::kPending;
  lane_of(op).pending.push_front(op);
  defer(*op.flow);
}

/// Its peer takes no numbered messages, or has no place for one more stream.
bool Transmitter::may_fall_back(const TxOp& op) const {
  const bool has_memory = op.endpoint != nullptr || op.inject_block != nullptr || op.length == 0;
  return has_memory && !op.cancelled && !op.memory_gone;
}

/// From now on they go by ROD, behind those that are out: once none is, and none that was taken waits for one that was refused.
/// Else what was refused is tried again as it is.
void Transmitter::fall_back(Lane& lane) {
  lane.is_way_refused = false;
  if (lane.failed.empty()) return;
  const TxOp& oldest = lane.failed.front();
  SendStream& stream = oldest.peer->stream_of(oldest.space());
  for (const TxOp* op = stream.first; op != nullptr; op = op->behind)
    if (op->state == OpState::kCarried) return;
  if (stream.first == nullptr ||
      number_distance(stream.first->place.number, stream.newest_taken) > 0)
    stream.is_refused = true;
}

}  // namespace uet::ses
