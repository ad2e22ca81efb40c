/// Messages and remote memory: what is posted, and the target itself.
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <algorithm>
#include <cstring>

#include "lib/base/check.h"
#include "tests/fuzz/calls.h"
#include "tests/fuzz/virtual_host.h"

namespace uet::fuzz {

namespace {

using Buffer = std::vector<std::uint8_t>;

constexpr std::size_t kReceiveBytes = 5000;
constexpr std::size_t kLargestPacket = 8192;  ///< bytes of payload
constexpr std::uint64_t kClassBits =
    0xff;  ///< of a tag: what receives ask for; above: which message it is

void* context_of(std::uint64_t id) {
  return reinterpret_cast<void*>(id);
}

std::size_t any_length(std::uint8_t choice) {
  constexpr std::array<std::size_t, 12> kLengths = {8,    0,    1,    16,   17,     64,
                                                    1000, 4096, 4097, 6000, 20'000, 100'000};
  return kLengths[choice % kLengths.size()];
}

/// A buffer in up to three pieces, or in more than an operation may have.
std::vector<iovec> in_pieces(Buffer& buffer, std::uint8_t choice) {
  const std::size_t pieces = choice % 16 == 15 ? 17 : 1 + choice % 3;
  std::vector<iovec> iov;
  for (std::size_t i = 0, at = 0; i < pieces; ++i) {
    const std::size_t n = i + 1 == pieces ? buffer.size() - at : (buffer.size() - at) / 2;
    iov.push_back({buffer.data() + at, n});
    at += n;
  }
  return iov;
}

}  // namespace

std::uint64_t Calls::add(Thing& ep, bool transmits, std::uint64_t flags, bool has_completion,
                         std::unique_ptr<Buffer> buffer) {
  Operation op;
  op.ep = &ep;
  op.cq = transmits ? ep.tx_cq : ep.rx_cq;
  op.flags = flags;
  op.is_receive = !transmits;
  op.must_end = transmits;
  op.tells_success =
      op.cq != nullptr && (has_completion || !(transmits ? ep.tx_selective : ep.rx_selective));
  op.buffer = std::move(buffer);
  operations_.emplace(++last_context_, std::move(op));
  return last_context_;
}

/// What `ret` means for the operation that was to be posted. It may have completed inside the call, but that has not been read.
void Calls::posted(ssize_t ret, std::uint64_t context) {
  UET_CHECK(ret <= 0);
  const Operation& op = operations_.at(context);
  UET_CHECK(ret != 0 || op.ep->is_enabled);
  if (ret != 0) operations_.erase(context);
}

/// An operation that was accepted asks for nothing that a datagram has not.
void Calls::check_promises(const Thing& ep, std::uint64_t flags, std::size_t length) {
  constexpr std::size_t kLargestDatagram = 1024;
  if (!ep.is_datagram) return;
  UET_CHECK((flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_FENCE)) == 0);
  UET_CHECK(length <= kLargestDatagram);
}

fi_addr_t Calls::destination(Thing& ep, std::uint8_t choice) {
  constexpr std::array<fi_addr_t, 4> kOdd = {FI_ADDR_UNSPEC, FI_ADDR_NOTAVAIL, 1000,
                                             std::uint64_t{1} << 40};
  if (choice >= 248) return kOdd[choice % kOdd.size()];
  for (const Thing* used : ep.uses)
    if (used->kind == Kind::kAv && !used->addresses.empty())
      return used->addresses[choice % used->addresses.size()];
  return 0;
}

void Calls::send(Choices& in) {
  const std::uint8_t how = in.u8(), what = in.u8(), length = in.u8();
  Thing* const ep = pick(Kind::kEp, in.u8());
  if (ep == nullptr) return;
  fid_ep* const f = as<fid_ep>(*ep);
  const fi_addr_t to = destination(*ep, in.u8());
  const bool is_tagged = (how & 1) != 0;
  const std::uint64_t id = ++last_sent_;
  const std::uint64_t tag = id << 8 | (what & 3);
  auto buffer = std::make_unique<Buffer>(any_length(length), static_cast<std::uint8_t>(id));
  const std::size_t n = buffer->size();
  std::uint8_t* const data = buffer->data();
  sent_[id] = {
      .length = n, .is_tagged = is_tagged, .is_datagram = ep->is_datagram, .has_arrived = false};
  if (ep->is_datagram && is_tagged) UET_CHECK(fi_tinject(f, data, 0, to, tag) != 0);

  if (how / 2 % 4 == 0) {  // over when the call returns
    const bool has_data = (what & 4) != 0;
    const ssize_t ret =
        is_tagged
            ? (has_data ? fi_tinjectdata(f, data, n, id, to, tag) : fi_tinject(f, data, n, to, tag))
            : (has_data ? fi_injectdata(f, data, n, id, to) : fi_inject(f, data, n, to));
    UET_CHECK(ret <= 0 && (ret != 0 || ep->is_enabled));
    if (ret != 0) sent_.erase(id);
    return;
  }
  const std::uint64_t kind = FI_SEND | (is_tagged ? FI_TAGGED : FI_MSG);
  const auto finish = [&](ssize_t ret, std::uint64_t context, std::uint64_t flags) {
    posted(ret, context);
    if (ret != 0) sent_.erase(id);
    if (ret != 0) return;
    UET_CHECK((flags & kIdempotent) == 0);
    check_promises(*ep, flags, n);
    Operation& op = operations_.at(context);
    // It waits for a receive, and what is fenced waits for it.
    if ((has_rendezvous_ && !ep->is_datagram) ||
        (flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)) != 0)
      op.must_end = false;
    if ((flags & FI_FENCE) != 0) ep->is_fenced = true;
    if ((flags & FI_INJECT) == 0) return;
    op.buffer.reset();
    // Without an entry on success it has no context either.
    if ((flags & FI_COMPLETION) == 0 && ep->tx_selective) operations_.erase(context);
  };
  if (how / 2 % 4 == 3) {
    constexpr std::array<std::uint64_t, 11> kFlags = {
        0,          FI_COMPLETION, FI_INJECT,    FI_REMOTE_CQ_DATA,  FI_DELIVERY_COMPLETE,
        FI_FENCE,   FI_MORE,       FI_MULTICAST, FI_COMMIT_COMPLETE, FI_INJECT | FI_COMPLETION,
        kIdempotent};
    const std::uint64_t flags = kFlags[what / 4 % kFlags.size()] | kFlags[length / 16 % 7];
    const std::uint64_t context =
        add(*ep, true, kind, (flags & FI_COMPLETION) != 0, std::move(buffer));
    const auto iov = in_pieces(*operations_.at(context).buffer, how >> 3);
    if (is_tagged) {
      const fi_msg_tagged m = {iov.data(), nullptr, iov.size(),          to,
                               tag,        0,       context_of(context), id};
      return finish(fi_tsendmsg(f, &m, flags), context, flags);
    }
    const fi_msg m = {iov.data(), nullptr, iov.size(), to, context_of(context), id};
    return finish(fi_sendmsg(f, &m, flags), context, flags);
  }
  const std::uint64_t flags = ep->tx_flags;
  const std::uint64_t context =
      add(*ep, true, kind, (flags & FI_COMPLETION) != 0, std::move(buffer));
  void* const c = context_of(context);
  if (how / 2 % 4 == 1) {
    return finish(
        is_tagged ? fi_tsend(f, data, n, nullptr, to, tag, c) : fi_send(f, data, n, nullptr, to, c),
        context, flags);
  }
  return finish(is_tagged ? fi_tsenddata(f, data, n, nullptr, id, to, tag, c)
                          : fi_senddata(f, data, n, nullptr, id, to, c),
                context, flags);
}

void Calls::receive(Choices& in) {
  const std::uint8_t how = in.u8(), what = in.u8();
  Thing* const ep = pick(Kind::kEp, in.u8());
  if (ep == nullptr) return;
  fid_ep* const f = as<fid_ep>(*ep);
  const bool is_tagged = (how & 1) != 0, has_flags = (how & 2) != 0;
  const fi_addr_t from = (what & 0x80) != 0 ? destination(*ep, what) : FI_ADDR_UNSPEC;
  const std::uint64_t tag = what & 3, ignore = ~kClassBits;
  constexpr std::array<std::uint64_t, 8> kFlags = {
      0, FI_COMPLETION, FI_MULTI_RECV, FI_DISCARD, FI_COMPLETION | FI_MULTI_RECV, FI_MORE, FI_CLAIM,
      0};
  const std::uint64_t flags = has_flags ? kFlags[how / 4 % kFlags.size()] : ep->rx_flags;
  // Where entries have no flags nothing would say that a buffer came back.
  const bool is_blind = ep->rx_cq != nullptr && ep->rx_cq->format < FI_CQ_FORMAT_MSG;
  if ((flags & FI_MULTI_RECV) != 0 && is_blind) return;
  const std::size_t bytes = (flags & FI_MULTI_RECV) != 0 ? 4 * kReceiveBytes
                            : (what & 4) != 0            ? any_length(how >> 4)
                                                         : kReceiveBytes;
  const std::uint64_t context = add(*ep, false, FI_RECV | (is_tagged ? FI_TAGGED : FI_MSG),
                                    (flags & FI_COMPLETION) != 0, std::make_unique<Buffer>(bytes));
  Operation& op = operations_.at(context);
  op.is_multi = (flags & FI_MULTI_RECV) != 0;
  void* const c = context_of(context);
  Buffer& buffer = *op.buffer;
  ssize_t ret = 0;
  if (!has_flags) {
    ret = is_tagged ? fi_trecv(f, buffer.data(), bytes, nullptr, from, tag, ignore, c)
                    : fi_recv(f, buffer.data(), bytes, nullptr, from, c);
  } else {
    const auto iov =
        op.is_multi ? std::vector<iovec>{{buffer.data(), bytes}} : in_pieces(buffer, what >> 3);
    const fi_msg_tagged t = {iov.data(), nullptr, iov.size(), from, tag, ignore, c, 0};
    const fi_msg m = {iov.data(), nullptr, iov.size(), from, c, 0};
    ret = is_tagged ? fi_trecvmsg(f, &t, flags) : fi_recvmsg(f, &m, flags);
  }
  // Nothing was peeked at with this context.
  UET_CHECK(ret != 0 || (flags & (FI_CLAIM | FI_DISCARD)) == 0);
  posted(ret, context);
}

void Calls::remote(Choices& in) {
  const std::uint8_t how = in.u8(), length = in.u8();
  Thing* const ep = pick(Kind::kEp, in.u8());
  Thing* const mr = pick(Kind::kMr, how >> 5);
  if (ep == nullptr) return;
  fid_ep* const f = as<fid_ep>(*ep);
  const fi_addr_t to = destination(*ep, in.u8());
  auto buffer = std::make_unique<Buffer>(any_length(length), static_cast<std::uint8_t>(0xa5));
  const std::size_t n = buffer->size();
  std::uint64_t at = mr != nullptr ? reinterpret_cast<std::uint64_t>(mr->bytes.data()) : 0;
  std::uint64_t key = mr != nullptr ? fi_mr_key(as<fid_mr>(*mr)) : 0;
  if (length >= 192) at += in.u16();
  if (length >= 224) key ^= std::uint64_t{1} << (in.u8() % 64);
  if (how % 8 == 0) {
    const ssize_t ret = (how & 8) != 0
                            ? fi_inject_write(f, buffer->data(), n, to, at, key)
                            : fi_inject_writedata(f, buffer->data(), n, how, to, at, key);
    UET_CHECK(ret <= 0 && (ret != 0 || ep->is_enabled));
    return;
  }
  const bool reads = how % 8 >= 5;
  const std::uint64_t kind = FI_RMA | (reads ? FI_READ : FI_WRITE);
  if (how % 8 == 4 || how % 8 == 7) {
    constexpr std::array<std::uint64_t, 5> kFlags = {0, FI_COMPLETION, FI_REMOTE_CQ_DATA,
                                                     FI_DELIVERY_COMPLETE, FI_FENCE};
    const bool is_idempotent = (how & 128) != 0;
    const std::uint64_t flags =
        kFlags[length / 12 % kFlags.size()] | (is_idempotent ? kIdempotent : 0);
    const std::uint64_t context =
        add(*ep, true, kind, (flags & FI_COMPLETION) != 0, std::move(buffer));
    const auto iov = in_pieces(*operations_.at(context).buffer, how >> 3);
    const fi_rma_iov there[2] = {{at, n, key}, {at, n, key}};
    const fi_msg_rma m = {
        iov.data(),          nullptr, iov.size(), to, there, (how & 64) != 0 ? 2u : 1u,
        context_of(context), how};
    const ssize_t ret = reads ? fi_readmsg(f, &m, flags) : fi_writemsg(f, &m, flags);
    UET_CHECK(ret != 0 || m.rma_iov_count == 1);
    UET_CHECK(ret != 0 || !ep->is_datagram);
    if (ret == 0 && is_idempotent)
      UET_CHECK((flags & FI_REMOTE_CQ_DATA) == 0 && (key & kIdempotentKey) != 0 &&
                n <= kLargestPacket);
    if ((flags & FI_FENCE) != 0) ep->is_fenced = true;
    return posted(ret, context);
  }
  const std::uint64_t flags = ep->tx_flags;
  const std::uint64_t context =
      add(*ep, true, kind, (flags & FI_COMPLETION) != 0, std::move(buffer));
  std::uint8_t* const data = operations_.at(context).buffer->data();
  void* const c = context_of(context);
  const ssize_t ret = reads          ? fi_read(f, data, n, nullptr, to, at, key, c)
                      : how % 8 == 3 ? fi_writedata(f, data, n, nullptr, how, to, at, key, c)
                                     : fi_write(f, data, n, nullptr, to, at, key, c);
  posted(ret, context);
  if (ret != 0 || reads || (flags & FI_INJECT) == 0) return;
  operations_.at(context).buffer.reset();
  if ((flags & FI_COMPLETION) == 0 && ep->tx_selective) operations_.erase(context);
}

void Calls::peek(Choices& in) {
  const std::uint8_t how = in.u8();
  Thing* const ep = pick(Kind::kEp, in.u8());
  if (ep == nullptr) return;
  const bool is_tagged = (how & 1) != 0;
  const std::uint64_t flags =
      FI_PEEK | ((how & 2) != 0 ? FI_CLAIM : 0) | ((how & 12) == 12 ? FI_DISCARD : 0);
  const std::uint64_t context =
      add(*ep, false, FI_RECV | (is_tagged ? FI_TAGGED : FI_MSG), true, nullptr);
  Operation& op = operations_.at(context);
  op.is_claimed = (flags & (FI_CLAIM | FI_DISCARD)) == FI_CLAIM;
  op.is_receive = false;
  op.is_peek = true;
  op.must_end = true;
  const fi_msg_tagged t = {nullptr,
                           nullptr,
                           0,
                           FI_ADDR_UNSPEC,
                           std::uint64_t{how} >> 4 & 3,
                           ~kClassBits,
                           context_of(context),
                           0};
  const fi_msg m = {nullptr, nullptr, 0, FI_ADDR_UNSPEC, context_of(context), 0};
  posted(
      is_tagged ? fi_trecvmsg(as<fid_ep>(*ep), &t, flags) : fi_recvmsg(as<fid_ep>(*ep), &m, flags),
      context);
}

/// The second half of a peek that claimed.
void Calls::claim(Choices& in) {
  const std::uint8_t how = in.u8();
  if (claims_.empty()) return;
  const std::size_t at = in.u8() % claims_.size();
  const std::uint64_t context = claims_[at];
  Operation& op = operations_.at(context);
  if (op.ep == nullptr) return;  // closed
  const bool discards = (how & 1) != 0, is_tagged = (op.flags & FI_TAGGED) != 0;
  const std::uint64_t flags =
      FI_CLAIM | (discards ? FI_DISCARD : 0) | ((how & 2) != 0 ? FI_COMPLETION : 0);
  op.buffer = std::make_unique<Buffer>((how & 4) != 0 ? 16 : kReceiveBytes);
  const iovec iov = {op.buffer->data(), op.buffer->size()};
  const fi_msg_tagged t = {&iov, nullptr, 1, FI_ADDR_UNSPEC, 0, ~kClassBits, context_of(context),
                           0};
  const fi_msg m = {&iov, nullptr, 1, FI_ADDR_UNSPEC, context_of(context), 0};
  fid_ep* const f = as<fid_ep>(*op.ep);
  const ssize_t ret = is_tagged ? fi_trecvmsg(f, &t, flags) : fi_recvmsg(f, &m, flags);
  UET_CHECK(ret == 0 || ret == -FI_EAGAIN);
  if (ret != 0) return;
  claims_.erase(claims_.begin() + static_cast<std::ptrdiff_t>(at));
  op.is_open = true;
  op.is_receive = !discards;
  op.tells_success = (flags & FI_COMPLETION) != 0 || !op.ep->rx_selective;
}

void Calls::cancel(Choices& in) {
  const std::uint64_t newest = in.u8();
  const std::uint64_t context = last_context_ - std::min(last_context_, newest);
  Thing* const ep = pick(Kind::kEp, in.u8());
  if (ep == nullptr) return;
  const ssize_t ret = fi_cancel(ep->f, context_of(context));
  UET_CHECK(ret == 0 || ret == -FI_ENOENT || (!ep->is_enabled && ret == -FI_EOPBADSTATE));
  if (ret != 0) return;
  const auto op = operations_.find(context);
  UET_CHECK(op != operations_.end() && op->second.is_open && op->second.ep == ep);
}

// --- The target -----------------------------------------------------------------------------------

void Calls::step(Choices& in) {
  static constexpr std::array<Do, 24> kCalls = {
      &Calls::send,      &Calls::send,   &Calls::send,   &Calls::receive, &Calls::receive,
      &Calls::receive,   &Calls::remote, &Calls::remote, &Calls::insert,  &Calls::read,
      &Calls::read,      &Calls::wait,   &Calls::peek,   &Calls::claim,   &Calls::cancel,
      &Calls::pass_time, &Calls::open,   &Calls::open,   &Calls::close,   &Calls::bind,
      &Calls::enable,    &Calls::ask,    &Calls::count,  &Calls::look};
  (this->*kCalls[in.u8() % kCalls.size()])(in);
}

void calls(Bytes input) {
  constexpr int kSteps = 200;
  Calls program(
      {.has_rendezvous = input.size() % 2 == 1, .has_datagrams = input.size() / 2 % 2 == 1});
  Choices in(input);
  for (int i = 0; i < kSteps && !in.is_empty(); ++i) program.step(in);
  program.finish();
}

}  // namespace uet::fuzz
