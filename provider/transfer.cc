/// Data transfer: what the calls of msg.cc, tagged.cc, rma.cc and atomic.cc have in common, on the way down
/// and on the way back.
#include <algorithm>
#include <limits>
#include <mutex>
#include <type_traits>
#include <variant>

#include "provider/domain.h"
#include "provider/endpoint.h"
#include "provider/errors.h"
#include "provider/mr.h"
#include "provider/offer.h"
#include "provider/post_queue.h"
#include "provider/shared_context.h"
#include "provider/triggered.h"
#include "ses/payload_sizes.h"

namespace uet::provider {
namespace {

using ses::OpKind;
using ses::ReturnCode;

/// Of operations without a context, which fi_cancel(nullptr) must not take for one: fi_inject and
/// the like are over for the application when they return.
constexpr std::uint64_t kNoContext = ~std::uint64_t{0};

constexpr std::uint64_t kDeliveryFlags = FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;
/// What only an endpoint that hears of its messages can promise.
constexpr std::uint64_t kReliableFlags = kDeliveryFlags | FI_FENCE;
/// What changes the meaning of a call, and is not on offer.
constexpr std::uint64_t kForeignFlags = FI_COMMIT_COMPLETE | FI_MULTICAST | FI_TRIGGER;

/// No memory of a program lies at address 0: a caller that passes it has lost a base,
/// and a copy would end the process.
bool are_buffers(std::span<const iovec> iov) {
  if (iov.size() > Endpoint::kIovLimit) return false;
  const auto is_null = [](const iovec& v) { return v.iov_base == nullptr && v.iov_len != 0; };
  if (std::ranges::none_of(iov, is_null)) return true;
  // Some libraries ignore the error, and hang.
  tell_user(
      "an operation without a buffer was refused: the program or its library passed address 0");
  return false;
}

/// A multi-receive buffer comes back without a message: the next one did not fit in what was left.
bool is_bare_release(const ses::Completion& c) {
  return c.multi_recv_released && c.code == ReturnCode::kOk && c.buffer == nullptr;
}

/// What the entry of a completion says it was.
std::uint64_t entry_flags(const ses::Completion& c) {
  switch (c.kind) {
    case OpKind::kSend:
      return FI_SEND | FI_MSG;
    case OpKind::kTaggedSend:
      return FI_SEND | FI_TAGGED;
    case OpKind::kWrite:
      return FI_RMA | FI_WRITE;
    case OpKind::kRead:
      return FI_RMA | FI_READ;
    case OpKind::kReceive:
    case OpKind::kPeek:
      return FI_RECV | FI_MSG;
    case OpKind::kTaggedReceive:
    case OpKind::kTaggedPeek:
      return FI_RECV | FI_TAGGED;
    case OpKind::kRemoteWrite:
      return FI_RMA | FI_REMOTE_WRITE;
    case OpKind::kRemoteRead:
      return FI_RMA | FI_REMOTE_READ;
    case OpKind::kAtomic:
      return FI_ATOMIC | FI_WRITE;
    case OpKind::kFetchingAtomic:
      return FI_ATOMIC | FI_READ;
    case OpKind::kRemoteAtomic:
      return FI_ATOMIC | FI_REMOTE_WRITE;
    case OpKind::kRemoteFetchingAtomic:
      return FI_ATOMIC | FI_REMOTE_READ;
  }
  return 0;
}

}  // namespace

/// Only memory that is registered can be a device's. [FI_MR_HMEM]
int Endpoint::locate(Domain& domain, std::span<Local> buffers) {
  if (!domain.has_device_regions()) [[likely]]
    return 0;
  Devices& devices = domain.worker().devices();
  for (Local& buffer : buffers) {
    const auto place = devices.find(buffer.iov);
    if (!place) return -FI_EOPNOTSUPP;
    buffer.place = *place;
    Device* const device = devices.at(place->id);
    if (device == nullptr) continue;
    if (device->is_broken()) return -FI_EIO;
    if (buffer.is_source) device->renew(buffer.iov);
  }
  return 0;
}

std::uint8_t Endpoint::device_flag(std::span<const Local> buffers) {
  Devices::Id id = 0;
  for (const Local& buffer : buffers) id = id != 0 ? id : buffer.place.id;
  return static_cast<std::uint8_t>(id << kDeviceShift);
}

int Endpoint::check_transmit(SizeLimits::Kind kind, std::uint64_t flags, std::size_t bytes) const {
  if ((flags & kForeignFlags) != 0 || !sizes_.has(kind)) return -FI_EOPNOTSUPP;
  if ((flags & FI_INJECT) != 0 && bytes > sizes_.of(kind).inject) return -FI_EINVAL;
  if (bytes > sizes_.of(kind).whole) return -FI_EMSGSIZE;
  return id_ == 0 ? -FI_EOPBADSTATE : 0;
}

/// With the lock held, where the bound is shared.
std::size_t Endpoint::tx_room() const {
  return tx_cq_ != nullptr && tx_cq_->is_full() ? 0 : tx_places();
}

std::size_t Endpoint::tx_places() const {
  if (shared_tx_ != nullptr) return shared_tx_->room();
  const std::size_t now = tx_outstanding_;
  return now < tx_size_ ? tx_size_ - now : 0;
}

/// Every transmit call ends here: `post` hands the operation to SES, and is tried once more after a
/// turn of the loop when something ran out.
template <typename Post>
ssize_t Endpoint::transmit(fi_addr_t peer, std::uint64_t flags, std::span<Local> buffers, Turn turn,
                           Post&& post) {
  const base::Instant now = worker_.now();
  // A call that was answered is carried out whatever room there is by now: others wait behind it.
  if (turn == Turn::kOwn && tx_room() == 0) {
    worker_.turn_at(now);
    if (tx_room() == 0) return -FI_EAGAIN;
  }
  if (turn == Turn::kTriggered && tx_places() == 0) return -FI_EAGAIN;
  if (const int error = locate(domain_, buffers); error != 0) return error;
  // Counted first: an operation may complete inside the call.
  const std::size_t inject = (flags & FI_INJECT) != 0 ? 1 : 0;
  ++tx_outstanding_;
  if (shared_tx_ != nullptr) shared_tx_->add(1);
  injects_outstanding_ += inject;
  auto posted = post(now);
  if (!posted && posted.error() == ses::PostError::kAgain && turn == Turn::kOwn) {
    worker_.turn_at(now);
    posted = post(now);
  }
  if (!posted) {
    --tx_outstanding_;
    if (shared_tx_ != nullptr) shared_tx_->remove(1);
    injects_outstanding_ -= inject;
    return fi_error_of(posted.error());
  }
  if (inject != 0) injected_at_ = now;
  if ((flags & FI_MORE) == 0 && turn == Turn::kOwn)
    worker_.after_post(now, describe_post(now, peer, buffers));
  return 0;
}

/// With the lock held, after it was posted.
DelayedPosts::Post Endpoint::describe_post(base::Instant now, fi_addr_t peer,
                                           std::span<const Local> buffers) const {
  DelayedPosts::Post post{.peer = peer};
  std::size_t sent = 0;
  for (const Local& buffer : buffers) {
    const std::size_t bytes = total_bytes(buffer.iov);
    post.bytes += bytes;
    if (buffer.is_source) sent += bytes;
  }
  if (sent <= ses::kSmallestPayload) return post;
  // Packets of one size leave in one run; a shorter one ends it. What is long makes one by itself.
  constexpr std::size_t kLong = 16384;
  post.joins_others =
      sent <= kLong &&
      ses::is_cut_evenly(sent, worker_.fep().payload_towards(now, av_->fabric_address(peer)));
  return post;
}

/// While another thread has the loop an operation is left for it: posting waits for nothing that may take long. Where every
/// place is taken the call waits for the loop after all: nothing can be left behind what is there already, and programs expect
/// no receive to be refused within rx_attr->size. A transmit is refused where those that are left take the room of the endpoint.
template <typename Op>
ssize_t Endpoint::post(const Op& op) {
  if (const int error = check(op); error != 0) return error;
  Worker::Held held(worker_.lock(), std::try_to_lock);
  if (!held && may_leave(op)) {
    constexpr bool is_transmit = !std::is_same_v<Op, Receive>;
    const std::size_t room = is_transmit ? tx_room() : std::numeric_limits<std::size_t>::max();
    const PostQueue::Pushed pushed = left_of(op).push(op, room);
    if (pushed == PostQueue::Pushed::kNoRoom) return -FI_EAGAIN;
    if (pushed == PostQueue::Pushed::kYes) {
      worker_.leave(*this);
      return 0;
    }
  }
  if (!held) held.lock();
  if (!carry_out_before(op)) return -FI_EAGAIN;
  return post_now(op);
}

/// The answer of a peek or a claim is about this moment; what lies in device memory is looked up in the call; and how much room
/// other endpoints leave is known with the lock alone.
template <typename Op>
bool Endpoint::may_leave(const Op& op) const {
  const bool is_receive = std::is_same_v<Op, Receive>;
  if (!is_receive && shared_tx_ != nullptr) return false;
  if (is_receive && (op.flags & (FI_PEEK | FI_CLAIM)) != 0) return false;
  return !domain_.has_device_regions() && PostQueue::fits(op);
}

/// What a queue reports of an operation that is over without an answer of its peer.
template <typename Op>
CqEntry Endpoint::entry_of(const Op& op) {
  CqEntry entry{.op_context = op.context};
  if constexpr (std::is_same_v<Op, Rma>)
    entry.flags = FI_RMA | (op.read ? FI_READ : FI_WRITE);
  else if constexpr (std::is_same_v<Op, Atomic>)
    entry.flags = FI_ATOMIC | (op.form != AtomicForm::kPlain ? FI_READ : FI_WRITE);
  else
    entry.flags =
        (std::is_same_v<Op, Receive> ? FI_RECV : FI_SEND) | (op.tagged ? FI_TAGGED : FI_MSG);
  return entry;
}

bool Endpoint::carry_out() {
  const bool has_receives = !carry_out(*left_receives_);
  return carry_out(*left_transmits_) && !has_receives;
}

bool Endpoint::carry_out(PostQueue& left) {
  return left.take([this](const auto& op) {
    const ssize_t error = guarded_fast([&] { return post_now(op, Turn::kLeft); });
    if (error == -FI_EAGAIN) return false;
    if (error != 0) fail(op, error);
    return true;
  });
}

template <typename Op>
PostQueue& Endpoint::left_of(const Op&) const {
  return std::is_same_v<Op, Receive> ? *left_receives_ : *left_transmits_;
}

/// Receives do not wait for room that transmits lack.
template <typename Op>
bool Endpoint::carry_out_before(const Op& op) {
  PostQueue& left = left_of(op);
  return left.empty() || carry_out(left);
}

template bool Endpoint::carry_out_before(const Send&);
template bool Endpoint::carry_out_before(const Rma&);
template bool Endpoint::carry_out_before(const Receive&);
template bool Endpoint::carry_out_before(const Atomic&);

/// The call was answered already: what is wrong with its operation comes through the queue.
template <typename Op>
void Endpoint::fail(const Op& op, ssize_t error) {
  constexpr bool is_receive = std::is_same_v<Op, Receive>;
  CqEntry entry = entry_of(op);
  entry.error = static_cast<int>(-error);
  entry.prov_errno = prov_errno_of_own(entry.error);
  Counter counter = is_receive ? kRecv : kSend;
  if ((entry.flags & FI_READ) != 0) counter = kRead;
  if ((entry.flags & FI_WRITE) != 0) counter = kWrite;
  if (op.deferred) {
    const auto& work = *static_cast<const TriggeredOp*>(op.context);
    entry.op_context = work.context;
    work.count(false);
  } else {
    count(counter, false);
  }
  if (Cq* cq = is_receive ? rx_cq_ : tx_cq_; cq != nullptr) cq->push(entry);
}

template void Endpoint::fail(const Send&, ssize_t);
template void Endpoint::fail(const Rma&, ssize_t);
template void Endpoint::fail(const Receive&, ssize_t);
template void Endpoint::fail(const Atomic&, ssize_t);

/// What operations of all kinds have in common, from libfabric's terms to those of SES.
template <typename Op, typename Request>
void Endpoint::describe(const Op& op, std::span<const Local> buffers, Request& request) const {
  if ((op.flags & FI_REMOTE_CQ_DATA) != 0) request.data = op.data;
  request.inject = (op.flags & FI_INJECT) != 0;
  request.delivery_complete = (op.flags & kDeliveryFlags) != 0;
  request.fence = (op.flags & FI_FENCE) != 0;
  request.user_flags =
      static_cast<std::uint8_t>(entry_flag(op.flags) | (request.inject ? kIsInject : 0) |
                                (op.deferred ? kIsDeferred : 0) | device_flag(buffers));
  const bool is_over = request.inject && (op.flags & FI_COMPLETION) == 0 && !op.deferred;
  request.completion_may_wait = is_over && !counts_transmits() && tx_room() > tx_size_ / 2;
  request.context = is_over ? kNoContext : reinterpret_cast<std::uint64_t>(op.context);
}

/// Of FI_INJECT_COMPLETE, no stronger level, and short enough to be copied. [FI 7]
template <typename Op>
bool Endpoint::is_over_when_copied(const Op& op, SizeLimits::Kind kind) const {
  return (op.flags & kCompletionLevels) == FI_INJECT_COMPLETE && !op.deferred &&
         !domain_.has_device_regions() && total_bytes(op.iov) <= sizes_.of(kind).inject;
}

/// Its entry does not wait for the peer. Counters do, as with fi_inject, and an error is reported without a context.
template <typename Op>
ssize_t Endpoint::post_copied(const Op& op, Turn turn) {
  Op copied = op;
  copied.flags = (op.flags | FI_INJECT) & ~(FI_INJECT_COMPLETE | FI_COMPLETION);
  const ssize_t error = post_now(copied, turn);
  if (error == 0 && entry_flag(op.flags) != 0 && tx_cq_ != nullptr) tx_cq_->push(entry_of(op));
  return error;
}

int Endpoint::check(const Send& op) const {
  if ((op.flags & kIdempotent) != 0) return -FI_EOPNOTSUPP;
  if (!are_buffers(op.iov)) return -FI_EINVAL;
  if (is_datagram() && (op.flags & kReliableFlags) != 0) return -FI_EOPNOTSUPP;
  const auto kind = op.tagged ? SizeLimits::kTagged : SizeLimits::kMessage;
  return check_transmit(kind, op.flags, total_bytes(op.iov));
}

ssize_t Endpoint::post_now(const Send& op, Turn turn) {
  if (is_over_when_copied(op, op.tagged ? SizeLimits::kTagged : SizeLimits::kMessage))
    return post_copied(op, turn);
  std::array<Local, 1> buffers{{{.iov = op.iov, .is_source = true, .place = {}}}};
  return transmit(op.destination, op.flags, buffers, turn, [&](base::Instant now) {
    ses::SendRequest request;
    if (is_datagram()) request.delivery = ses::Delivery::kDatagram;
    request.peer = av_->peer(op.destination);
    request.tagged = op.tagged;
    request.tag = op.tag;
    request.iov = op.iov;
    request.device = buffers[0].place.memory;
    describe(op, buffers, request);
    return worker_.ses().send(now, id_, request);
  });
}

int Endpoint::check(const Rma& op) const {
  if (!are_buffers(op.iov)) return -FI_EINVAL;
  if (op.read && (op.flags & (FI_INJECT | FI_REMOTE_CQ_DATA)) != 0) return -FI_EINVAL;
  return check_transmit(SizeLimits::kRma, op.flags, total_bytes(op.iov));
}

ssize_t Endpoint::post_now(const Rma& op, Turn turn) {
  if (!op.read && is_over_when_copied(op, SizeLimits::kRma)) return post_copied(op, turn);
  std::array<Local, 1> buffers{{{.iov = op.iov, .is_source = !op.read, .place = {}}}};
  return transmit(op.peer, op.flags, buffers, turn, [&](base::Instant now) {
    ses::RmaRequest request;
    request.peer = av_->peer(op.peer);
    request.read = op.read;
    if ((op.flags & kIdempotent) != 0) request.delivery = ses::Delivery::kIdempotent;
    request.remote_offset = op.remote_address;
    request.key = op.key;
    request.iov = op.iov;
    request.device = buffers[0].place.memory;
    describe(op, buffers, request);
    return worker_.ses().rma(now, id_, request);
  });
}

ssize_t Endpoint::post_send(const Send& op) {
  return (op.flags & FI_TRIGGER) != 0 ? post_triggered(op) : post(op);
}
ssize_t Endpoint::post_rma(const Rma& op) {
  return (op.flags & FI_TRIGGER) != 0 ? post_triggered(op) : post(op);
}
ssize_t Endpoint::post_receive(const Receive& op) {
  return (op.flags & FI_TRIGGER) != 0 ? post_triggered(op) : post(op);
}

namespace {

/// Elements as the memory they lie in.
class Elements {
 public:
  /// False where there are too many pieces, or one that is nowhere.
  bool assign(std::span<const fi_ioc> from, std::size_t element) {
    if (from.size() > pieces_.size()) return false;
    for (const fi_ioc& v : from) {
      if (__builtin_mul_overflow(v.count, element, &pieces_[size_].iov_len)) return false;
      pieces_[size_++].iov_base = v.addr;
      if (__builtin_add_overflow(count_, v.count, &count_)) return false;
    }
    return are_buffers(pieces());
  }
  std::span<const iovec> pieces() const { return {pieces_.data(), size_}; }
  std::size_t count() const { return count_; }

 private:
  std::array<iovec, Endpoint::kIovLimit> pieces_{};
  std::size_t size_ = 0;
  std::size_t count_ = 0;
};

}  // namespace

/// An atomic that was looked at: what it is, and where its elements lie.
struct Endpoint::PreparedAtomic {
  AmoKind kind;
  std::uint64_t flags = 0;
  std::size_t count = 0;
  Elements operand, compare, result;
};

/// 0, or the error to answer.
int Endpoint::prepare(const Atomic& op, PreparedAtomic& out) const {
  const auto kind = find_amo(op.op, op.type, op.form);
  if (!kind || (op.flags & kIdempotent) != 0) return -FI_EOPNOTSUPP;
  const bool fetching = op.form != AtomicForm::kPlain;
  if (fetching && (op.flags & FI_REMOTE_CQ_DATA) != 0) return -FI_EINVAL;
  if ((op.flags & FI_TAGGED) != 0 && (caps_ & FI_TAGGED) == 0) return -FI_EOPNOTSUPP;
  if (kind->has_operand() && !out.operand.assign(op.operand, kind->element)) return -FI_EINVAL;
  if (op.form == AtomicForm::kCompare && !out.compare.assign(op.compare, kind->element))
    return -FI_EINVAL;
  if (fetching && !out.result.assign(op.result, kind->element)) return -FI_EINVAL;
  out.count = kind->has_operand() ? out.operand.count() : out.result.count();
  if (out.count == 0 || (fetching && out.result.count() != out.count) ||
      (op.form == AtomicForm::kCompare && out.compare.count() != out.count))
    return -FI_EINVAL;
  if (out.count > max_elements(*kind, op.form, payload_mtu())) return -FI_EMSGSIZE;
  out.kind = *kind;
  out.flags = op.flags;
  if (fetching) out.flags &= ~FI_INJECT;  // operands are copied anyway, and the result is not over
  return check_transmit(SizeLimits::kAtomic, out.flags, out.count * kind->element);
}

int Endpoint::check(const Atomic& op) const {
  PreparedAtomic prepared{};
  return prepare(op, prepared);
}

ssize_t Endpoint::post_atomic(const Atomic& op) {
  if ((op.flags & FI_TRIGGER) != 0) return post_triggered(op);
  PreparedAtomic prepared{};
  if (const int error = prepare(op, prepared); error != 0) return error;
  const std::lock_guard guard(worker_.lock());
  if (!carry_out_before(op)) return -FI_EAGAIN;
  return post_prepared(op, prepared, Turn::kOwn);
}

ssize_t Endpoint::post_now(const Atomic& op, Turn turn) {
  PreparedAtomic prepared{};
  if (const int error = prepare(op, prepared); error != 0) return error;
  return post_prepared(op, prepared, turn);
}

ssize_t Endpoint::post_prepared(const Atomic& op, const PreparedAtomic& prepared, Turn turn) {
  Atomic plain = op;
  plain.flags = prepared.flags;
  std::array<Local, 3> buffers{
      {{.iov = prepared.operand.pieces(), .is_source = true, .place = {}},
       {.iov = prepared.compare.pieces(), .is_source = true, .place = {}},
       {.iov = prepared.result.pieces(), .is_source = false, .place = {}}}};
  return transmit(op.peer, plain.flags, buffers, turn, [&](base::Instant now) {
    ses::AtomicRequest request;
    request.peer = av_->peer(op.peer);
    request.tagged = (op.flags & FI_TAGGED) != 0;
    request.fetching = op.form != AtomicForm::kPlain;
    request.op = prepared.kind.op;
    request.type = prepared.kind.type;
    request.count = prepared.count;
    request.operand = prepared.operand.pieces();
    request.compare = prepared.compare.pieces();
    request.result = prepared.result.pieces();
    request.operand_device = buffers[0].place.memory;
    request.compare_device = buffers[1].place.memory;
    request.result_device = buffers[2].place.memory;
    request.remote_offset = op.remote_address;
    request.key = op.key;
    describe(plain, buffers, request);
    return worker_.ses().atomic(now, id_, request);
  });
}

int Endpoint::check(const Receive& op) const {
  if ((op.flags & kForeignFlags) != 0) return -FI_EOPNOTSUPP;
  if ((op.flags & (FI_PEEK | FI_DISCARD)) == 0 && !are_buffers(op.iov)) return -FI_EINVAL;
  // Discards what a peek or a claim names; alone it would post a receive.
  const bool names_message = (op.flags & (FI_PEEK | FI_CLAIM)) != 0;
  if ((op.flags & FI_DISCARD) != 0 && !names_message) return -FI_EINVAL;
  if (shared_rx_ != nullptr && !names_message) return -FI_EOPNOTSUPP;
  return id_ == 0 ? -FI_EOPBADSTATE : 0;
}

ssize_t Endpoint::post_now(const Receive& op, Turn turn) {
  ses::PeerId source = ses::kAnyPeer;
  if (directed_receive_ && op.source != FI_ADDR_UNSPEC) {
    source = av_->peer(op.source);
    if (source == 0) return -FI_EINVAL;
  }
  if ((op.flags & FI_PEEK) != 0) return post_peek(worker_.now(), op, source);
  return give_receive(domain_, id_, op, source, turn);
}

ssize_t Endpoint::hand_over(Domain& domain, ses::EndpointId id, const Receive& op) {
  if ((op.flags & kForeignFlags) != 0) return -FI_EOPNOTSUPP;
  if (!are_buffers(op.iov)) return -FI_EINVAL;
  const std::lock_guard guard(domain.worker().lock());
  return give_receive(domain, id, op, ses::kAnyPeer, Turn::kOwn);
}

/// With the lock held, and what the caller said looked at.
ssize_t Endpoint::give_receive(Domain& domain, ses::EndpointId id, const Receive& op,
                               ses::PeerId source, Turn turn) {
  Worker& worker = domain.worker();
  const base::Instant now = worker.now();
  std::array<Local, 1> buffers{{{.iov = op.iov, .is_source = false, .place = {}}}};
  if (const int error = locate(domain, buffers); error != 0) return error;

  ses::ReceiveRequest request;
  request.tagged = op.tagged;
  request.tag = op.tag;
  request.ignore = op.ignore;
  request.source = source;
  request.iov = op.iov;
  request.device = buffers[0].place.memory;
  request.multi_recv = (op.flags & FI_MULTI_RECV) != 0;
  request.user_flags = static_cast<std::uint8_t>(
      entry_flag(op.flags) | (op.deferred ? kIsDeferred : 0) | device_flag(buffers));
  request.context = reinterpret_cast<std::uint64_t>(op.context);
  const auto post = [&] {
    if ((op.flags & FI_CLAIM) != 0) {
      return worker.ses().claim_receive(now, id, request, (op.flags & FI_DISCARD) != 0);
    }
    return worker.ses().receive(now, id, request);
  };
  auto posted = post();
  if (!posted && posted.error() == ses::PostError::kAgain && turn == Turn::kOwn) {
    worker.turn_at(now);
    posted = post();
  }
  if (!posted) return fi_error_of(posted.error());
  if (turn == Turn::kOwn) worker.note_application();
  return 0;
}

/// The answer always comes through the queue, also when nothing matches. [FI 14.10]
ssize_t Endpoint::post_peek(base::Instant now, const Receive& op, ses::PeerId source) {
  ses::PeekRequest request;
  request.tagged = op.tagged;
  request.tag = op.tag;
  request.ignore = op.ignore;
  request.source = source;
  request.user_flags = kWantsEntry;
  request.context = reinterpret_cast<std::uint64_t>(op.context);
  if ((op.flags & FI_CLAIM) != 0) request.action = ses::PeekAction::kClaim;
  if ((op.flags & FI_DISCARD) != 0) request.action = ses::PeekAction::kDiscard;
  worker_.turn_at(now);
  const auto posted = worker_.ses().peek(now, id_, request);
  return posted ? 0 : fi_error_of(posted.error());
}

// --- The way back

/// With every one, as a peer hears of a write by the answer that leaves behind its completion.
bool Endpoint::settle_devices(const ses::Completion& c) {
  Devices& devices = worker_.devices();
  const bool is_of_target = c.kind == OpKind::kRemoteWrite || c.kind == OpKind::kRemoteAtomic ||
                            c.kind == OpKind::kRemoteFetchingAtomic;
  const bool is_whole = devices.drain();
  const auto id = static_cast<Devices::Id>(c.user_flags >> kDeviceShift);
  const Device* const device = is_of_target ? nullptr : devices.at(id);
  return device != nullptr ? !device->is_broken() : is_whole || !is_of_target;
}

void Endpoint::on_completion(ses::EndpointId, const ses::Completion& c) {
  // The peer answers with an initiator error to what could not be read here.
  const bool may_be_ours = c.code == ReturnCode::kOk || c.code == ReturnCode::kInitiatorErr;
  if (!worker_.devices().empty() && !settle_devices(c) && may_be_ours) {
    ses::Completion failed = c;
    failed.code = ReturnCode::kHostUnsuccessCmpl;
    return complete(failed);
  }
  complete(c);
}

void Endpoint::complete(const ses::Completion& c) {
  if ((c.user_flags & kIsDeferred) != 0) [[unlikely]]
    return complete_deferred(c);
  const bool success = c.code == ReturnCode::kOk;
  const bool wanted = (c.user_flags & kWantsEntry) != 0 || !success;
  switch (c.kind) {
    case OpKind::kSend:
    case OpKind::kTaggedSend:
    case OpKind::kWrite:
    case OpKind::kRead:
    case OpKind::kAtomic:
    case OpKind::kFetchingAtomic:
      transmit_is_over(c);
      count(counter_of(c.kind), success);
      if (wanted && tx_cq_ != nullptr) report(*tx_cq_, c, entry_flags(c));
      return;
    case OpKind::kReceive:
    case OpKind::kTaggedReceive:
      if (is_bare_release(c)) {
        if (rx_cq_ != nullptr) report(*rx_cq_, c, 0);
        return;
      }
      count(kRecv, success);
      // That a buffer is used up is told whatever else is suppressed. [FI fi_msg, FI_MULTI_RECV]
      if ((wanted || c.multi_recv_released || (shared_rx_ != nullptr && !rx_selective_)) &&
          rx_cq_ != nullptr)
        report(*rx_cq_, c, entry_flags(c));
      return;
    case OpKind::kPeek:
    case OpKind::kTaggedPeek:
      if (rx_cq_ != nullptr) report(*rx_cq_, c, entry_flags(c));
      return;
    case OpKind::kRemoteWrite:
    case OpKind::kRemoteRead:
    case OpKind::kRemoteAtomic:
    case OpKind::kRemoteFetchingAtomic:
      count(Mr::is_write(c.kind) ? kRemoteWrite : kRemoteRead, success);
      if (Mr* mr = domain_.watched(c.mr_key)) mr->on_remote_access(c.kind, success);
      if (c.has_data && (success || c.code == ReturnCode::kHostUnsuccessCmpl) && rx_cq_ != nullptr)
        report(*rx_cq_, c, entry_flags(c));
      return;
  }
}

void Endpoint::transmit_is_over(const ses::Completion& c) {
  --tx_outstanding_;
  if (shared_tx_ != nullptr) shared_tx_->remove(1);
  if ((c.user_flags & kIsInject) != 0) --injects_outstanding_;
}

/// Deferred work tells its own counter, and the endpoint's queue and counter where it asks for that or failed.
void Endpoint::complete_deferred(const ses::Completion& c) {
  const bool success = c.code == ReturnCode::kOk;
  const bool wants_entry = (c.user_flags & kWantsEntry) != 0;
  const bool is_receive = c.kind == OpKind::kReceive || c.kind == OpKind::kTaggedReceive;
  if (!is_receive) transmit_is_over(c);
  const auto work = reinterpret_cast<TriggeredOp*>(c.context)->at;
  work->count(success);
  if (wants_entry && counters_[counter_of(c.kind)] != work->counter.get())
    count(counter_of(c.kind), success);
  if (Cq* cq = is_receive ? rx_cq_ : tx_cq_; cq != nullptr && (wants_entry || !success)) {
    ses::Completion own = c;
    own.context = reinterpret_cast<std::uint64_t>(work->context);
    report(*cq, own, entry_flags(c));
  }
  deferred_.erase(work);
}

/// Which counter of an endpoint tells of an operation that it posted.
Endpoint::Counter Endpoint::counter_of(OpKind kind) {
  switch (kind) {
    case OpKind::kWrite:
    case OpKind::kAtomic:
      return kWrite;
    case OpKind::kRead:
    case OpKind::kFetchingAtomic:
      return kRead;
    case OpKind::kReceive:
    case OpKind::kTaggedReceive:
      return kRecv;
    default:
      return kSend;
  }
}

void Endpoint::count(Counter which, bool success) {
  Cntr* cntr = counters_[which];
  if (cntr == nullptr) return;
  success ? cntr->add(1) : cntr->add_error(1);
}

void Endpoint::report(Cq& cq, const ses::Completion& c, std::uint64_t flags) {
  const bool is_of_target = (flags & (FI_RECV | FI_REMOTE_WRITE | FI_REMOTE_READ)) != 0;
  const bool has_data = is_of_target && c.has_data;  // the initiator knows what it sent
  cq.add([&](CqEntry& entry) {
    entry.op_context = c.context == kNoContext ? nullptr : reinterpret_cast<void*>(c.context);
    entry.flags =
        flags | (has_data ? FI_REMOTE_CQ_DATA : 0) | (c.multi_recv_released ? FI_MULTI_RECV : 0);
    entry.length = c.length;
    entry.buffer = c.buffer;
    entry.data = has_data ? c.data : 0;
    entry.tag = c.tag;
    if (reports_source_ && is_of_target) entry.source = av_->find(c.source);
    if (c.code == ReturnCode::kOk) return;
    entry.error = fi_error_of(c.code);
    entry.prov_errno = prov_errno_of(c.code);
    entry.overflow_length = c.overflow_length;
  });
}

}  // namespace uet::provider
