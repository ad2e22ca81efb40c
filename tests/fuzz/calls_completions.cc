/// Reading completions, waiting for them, and what the model says of each.
#include <algorithm>
#include <cstring>

#include "lib/base/check.h"
#include "tests/fuzz/calls.h"
#include "tests/fuzz/virtual_host.h"

namespace uet::fuzz {

namespace {

std::uint64_t id_of(void* context) {
  return reinterpret_cast<std::uint64_t>(context);
}

}  // namespace

void Calls::arrived(Operation& op, std::uint64_t id, bool is_tagged, std::size_t length,
                    int error) {
  const auto sent = sent_.find(id);
  UET_CHECK(sent != sent_.end());  // a node sent it
  UET_CHECK(sent->second.is_tagged == is_tagged);
  UET_CHECK(op.ep == nullptr || sent->second.is_datagram == op.ep->is_datagram);
  UET_CHECK(!sent->second.has_arrived);  // and it has not been delivered
  sent->second.has_arrived = true;
  if (error != 0) return;
  UET_CHECK(length == sent->second.length);
  if (op.is_multi || op.buffer == nullptr) return;
  const auto wanted = static_cast<std::uint8_t>(id);
  UET_CHECK(std::all_of(op.buffer->begin(),
                        op.buffer->begin() + static_cast<std::ptrdiff_t>(length),
                        [&](std::uint8_t b) { return b == wanted; }));
}

/// `flags` is 0 where the format has none.
void Calls::completed(Thing& cq, std::uint64_t context, std::uint64_t flags, std::size_t length,
                      std::uint64_t tag, std::uint64_t data, int error) {
  UET_CHECK(error != FI_EOVERRUN);
  if (context == 0) {  // data of a remote write, or an injected message that failed
    UET_CHECK(error != 0 || flags == 0 || (flags & FI_REMOTE_WRITE) != 0);
    return;
  }
  const auto at = operations_.find(context);
  UET_CHECK(at != operations_.end());
  Operation& op = at->second;
  UET_CHECK(op.is_open && op.cq == &cq);
  UET_CHECK(error != 0 || op.tells_success);
  // A datagram that met no receive is gone.
  UET_CHECK(error != 0 || !op.is_peek || !op.ep->is_datagram);
  constexpr std::uint64_t kKindFlags =
      FI_SEND | FI_RECV | FI_RMA | FI_READ | FI_WRITE | FI_MSG | FI_TAGGED;
  const bool is_release = flags == FI_MULTI_RECV;
  UET_CHECK(flags == 0 || is_release || (flags & kKindFlags) == op.flags);
  if (op.is_receive && op.buffer != nullptr && error == 0) UET_CHECK(length <= op.buffer->size());
  const bool took = op.is_receive && !is_release && (error == 0 || error == FI_ETRUNC);
  if (took && cq.format == FI_CQ_FORMAT_TAGGED && (op.flags & FI_TAGGED) != 0) {
    arrived(op, tag >> 8, true, length, error);
  } else if (took && cq.format >= FI_CQ_FORMAT_DATA && (op.flags & FI_MSG) != 0 &&
             (flags & FI_REMOTE_CQ_DATA) != 0) {
    arrived(op, data, false, length, error);
  }
  if (op.is_multi && (flags & FI_MULTI_RECV) == 0 && error != FI_ECANCELED) return;
  op.is_open = false;
  op.buffer.reset();
  if (op.is_claimed && error == 0) claims_.push_back(context);
  op.is_claimed = false;
}

void Calls::take_error(Thing& cq) {
  fi_cq_err_entry e{};
  UET_CHECK(fi_cq_readerr(as<fid_cq>(cq), &e, 0) == 1);
  UET_CHECK(e.err != 0);
  completed(cq, id_of(e.op_context), e.flags, e.len, e.tag, e.data, e.err);
}

/// Reads up to `count` entries, waiting for at most `timeout_ms` (0: not at all).
ssize_t Calls::take(Thing& cq, std::size_t count, int timeout_ms) {
  fi_cq_tagged_entry room[4];
  count = std::min(count, std::size(room));
  fid_cq* const f = as<fid_cq>(cq);
  const ssize_t n = timeout_ms == 0 ? fi_cq_read(f, room, count)
                                    : fi_cq_sread(f, room, count, nullptr, timeout_ms);
  UET_CHECK(n <= static_cast<ssize_t>(count));
  const auto* at = reinterpret_cast<const std::uint8_t*>(room);
  for (ssize_t i = 0; i < n; ++i) {
    // Each format is the beginning of the next.
    constexpr std::array<std::size_t, 5> kBytes = {0, sizeof(fi_cq_entry), sizeof(fi_cq_msg_entry),
                                                   sizeof(fi_cq_data_entry),
                                                   sizeof(fi_cq_tagged_entry)};
    fi_cq_tagged_entry e{};
    std::memcpy(&e, at, kBytes[cq.format]);
    at += kBytes[cq.format];
    completed(cq, id_of(e.op_context), e.flags, e.len, e.tag, e.data, 0);
  }
  if (n == -FI_EAVAIL) take_error(cq);
  return n;
}

void Calls::drain(Thing& cq) {
  for (ssize_t n = 1; n > 0 || n == -FI_EAVAIL;) n = take(cq, 4, 0);
}

void Calls::drain_all() {
  for (Thing& cq : all(Kind::kCq))
    if (cq.f != nullptr) drain(cq);
}

void Calls::read(Choices& in) {
  const std::uint8_t how = in.u8();
  if (Thing* cq = pick(Kind::kCq, how)) take(*cq, how >> 5, 0);
}

// --- Waiting --------------------------------------------------------------------------------------

void Calls::wait(Choices& in) {
  const std::uint8_t how = in.u8(), which = in.u8();
  const auto timeout = [&](const Thing& t) { return t.spins ? how & 1 : 1 + (how & 31); };
  if (how >= 192) {
    Thing* const cntr = pick(Kind::kCntr, which);
    if (cntr == nullptr) return;
    const int ret = fi_cntr_wait(as<fid_cntr>(*cntr), in.u8(), timeout(*cntr));
    UET_CHECK(ret == 0 || ret == -FI_ETIMEDOUT || ret == -FI_EAVAIL);
  } else if (how >= 160) {
    Thing* const set = pick(Kind::kSet, which);
    void* contexts[4];
    if (set != nullptr) UET_CHECK(fi_poll(as<fid_poll>(*set), contexts, 4) >= 0);
  } else if (how >= 128) {
    Thing* const fabric = pick(Kind::kFabric, 0);
    Thing* const cq = pick(Kind::kCq, which);
    Thing* const cntr = pick(Kind::kCntr, which);
    fid* fids[2];
    int count = 0;
    if (cq != nullptr) fids[count++] = cq->f;
    if (cntr != nullptr) fids[count++] = cntr->f;
    if (fabric == nullptr) return;
    const int ret = fi_trywait(as<fid_fabric>(*fabric), fids, count);
    UET_CHECK(ret == 0 || ret == -FI_EAGAIN);
  } else if (Thing* cq = pick(Kind::kCq, which)) {
    if ((how & 64) != 0) UET_CHECK(fi_cq_signal(as<fid_cq>(*cq)) == 0);
    take(*cq, 1 + (how >> 5 & 1), timeout(*cq));
  }
}

void Calls::count(Choices& in) {
  const std::uint8_t how = in.u8();
  Thing* const cntr = pick(Kind::kCntr, in.u8());
  if (cntr == nullptr) return;
  fid_cntr* const f = as<fid_cntr>(*cntr);
  const std::uint64_t before = fi_cntr_read(f);
  if (how % 4 == 0) UET_CHECK(fi_cntr_add(f, how) == 0 && fi_cntr_read(f) >= before + how);
  if (how % 4 == 1) UET_CHECK(fi_cntr_set(f, how) == 0);
  if (how % 4 == 2) UET_CHECK(fi_cntr_adderr(f, 1) == 0);
  fi_cntr_readerr(f);
}

/// Whatever turns a loop: domains without a queue or a counter have nothing that would.
void Calls::turn_all() {
  for (Thing& cq : all(Kind::kCq))
    if (cq.f != nullptr) fi_cq_read(as<fid_cq>(cq), nullptr, 0);
  for (Thing& cntr : all(Kind::kCntr))
    if (cntr.f != nullptr) fi_cntr_read(as<fid_cntr>(cntr));
}

void Calls::pass_time(Choices& in) {
  constexpr std::array kSpans = {base::Duration::from_us(10),     base::Duration::from_ms(1),
                                 base::Duration::from_ms(25),     base::Duration::from_ms(150),
                                 base::Duration::from_seconds(2), base::Duration::from_seconds(5)};
  const std::uint8_t how = in.u8();
  if (how >= 224) VirtualHost::instance().lost_in_256 = in.u8() / 2;
  for (int i = 0; i < 4; ++i) {
    VirtualHost::instance().pass(kSpans[how % kSpans.size()]);
    turn_all();
    VirtualHost::instance().pass(base::Duration::from_us(6));
    turn_all();
  }
}

}  // namespace uet::fuzz
