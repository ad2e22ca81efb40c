#include "provider/shared_context.h"

#include <rdma/fi_tagged.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "provider/domain.h"
#include "provider/errors.h"
#include "provider/offer.h"

namespace uet::provider {
namespace {

// --- Of transmission: everything else goes through its endpoints

int stx_close(fid* f) {
  return guarded([&] { return SharedTransmit::of(f).close(); });
}
ssize_t no_cancel(fid_t, void*) {
  return -FI_EOPNOTSUPP;
}
int no_getopt(fid_t, int, int, void*, std::size_t*) {
  return -FI_ENOPROTOOPT;
}
int no_setopt(fid_t, int, int, const void*, std::size_t) {
  return -FI_ENOPROTOOPT;
}
int no_tx_ctx(fid_ep*, int, fi_tx_attr*, fid_ep**, void*) {
  return -FI_ENOSYS;
}
int no_rx_ctx(fid_ep*, int, fi_rx_attr*, fid_ep**, void*) {
  return -FI_ENOSYS;
}
ssize_t no_size_left(fid_ep*) {
  return -FI_EOPNOTSUPP;
}

fi_ops stx_fid_ops = make_ops({.close = stx_close});
fi_ops_ep stx_ops = {.size = sizeof(fi_ops_ep),
                     .cancel = no_cancel,
                     .getopt = no_getopt,
                     .setopt = no_setopt,
                     .tx_ctx = no_tx_ctx,
                     .rx_ctx = no_rx_ctx,
                     .rx_size_left = no_size_left,
                     .tx_size_left = no_size_left};

// --- Of reception

ssize_t post(fid_ep* f, const Endpoint::Receive& op) {
  return guarded_fast([&] { return SharedReceive::of(f).post(op); });
}

ssize_t shared_msg_recv(fid_ep* f, void* buffer, std::size_t length, void*, fi_addr_t source,
                        void* context) {
  const iovec iov{buffer, length};
  return post(f, {.iov = {&iov, 1},
                  .source = source,
                  .flags = SharedReceive::of(f).flags(),
                  .context = context});
}
ssize_t shared_msg_recvv(fid_ep* f, const iovec* iov, void**, std::size_t count, fi_addr_t source,
                         void* context) {
  return post(f, {.iov = {iov, count},
                  .source = source,
                  .flags = SharedReceive::of(f).flags(),
                  .context = context});
}
ssize_t shared_msg_recvmsg(fid_ep* f, const fi_msg* m, std::uint64_t flags) {
  return post(f, {.iov = {m->msg_iov, m->iov_count},
                  .source = m->addr,
                  .flags = flags,
                  .context = m->context});
}

ssize_t shared_tagged_recv(fid_ep* f, void* buffer, std::size_t length, void*, fi_addr_t source,
                           std::uint64_t tag, std::uint64_t ignore, void* context) {
  const iovec iov{buffer, length};
  return post(f, {.tagged = true,
                  .tag = tag,
                  .ignore = ignore,
                  .iov = {&iov, 1},
                  .source = source,
                  .flags = SharedReceive::of(f).flags() & ~FI_MULTI_RECV,
                  .context = context});
}
ssize_t shared_tagged_recvv(fid_ep* f, const iovec* iov, void**, std::size_t count,
                            fi_addr_t source, std::uint64_t tag, std::uint64_t ignore,
                            void* context) {
  return post(f, {.tagged = true,
                  .tag = tag,
                  .ignore = ignore,
                  .iov = {iov, count},
                  .source = source,
                  .flags = SharedReceive::of(f).flags() & ~FI_MULTI_RECV,
                  .context = context});
}
ssize_t shared_tagged_recvmsg(fid_ep* f, const fi_msg_tagged* m, std::uint64_t flags) {
  return post(f, {.tagged = true,
                  .tag = m->tag,
                  .ignore = m->ignore,
                  .iov = {m->msg_iov, m->iov_count},
                  .source = m->addr,
                  .flags = flags,
                  .context = m->context});
}

fi_ops_msg with_receives(fi_ops_msg ops) {
  ops.recv = shared_msg_recv;
  ops.recvv = shared_msg_recvv;
  ops.recvmsg = shared_msg_recvmsg;
  return ops;
}
fi_ops_tagged with_receives(fi_ops_tagged ops) {
  ops.recv = shared_tagged_recv;
  ops.recvv = shared_tagged_recvv;
  ops.recvmsg = shared_tagged_recvmsg;
  return ops;
}

int srx_close(fid* f) {
  return guarded([&] { return SharedReceive::of(f).close(); });
}
/// It works from the beginning.
int srx_control(fid*, int command, void*) {
  return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}
ssize_t srx_cancel(fid_t f, void* context) {
  return guarded([&] { return SharedReceive::of(f).cancel(context); });
}
int srx_getopt(fid_t f, int level, int name, void* value, std::size_t* length) {
  return guarded([&] { return SharedReceive::of(f).get_option(level, name, value, length); });
}
int srx_setopt(fid_t f, int level, int name, const void* value, std::size_t length) {
  return guarded([&] { return SharedReceive::of(f).set_option(level, name, value, length); });
}
ssize_t srx_size_left(fid_ep* f) {
  return guarded([&] { return SharedReceive::of(f).size_left(); });
}

fi_ops srx_fid_ops = make_ops({.close = srx_close, .control = srx_control});
fi_ops_ep srx_ops = {.size = sizeof(fi_ops_ep),
                     .cancel = srx_cancel,
                     .getopt = srx_getopt,
                     .setopt = srx_setopt,
                     .tx_ctx = no_tx_ctx,
                     .rx_ctx = no_rx_ctx,
                     .rx_size_left = srx_size_left,
                     .tx_size_left = no_size_left};

constexpr std::size_t kDefaultMinMultiRecv = 64;

}  // namespace

// --- SharedTransmit

SharedTransmit::SharedTransmit(Domain& domain, std::size_t size, void* context)
    : domain_(domain), worker_(domain.worker()), size_(size), domain_use_(domain.users()) {
  fid = {.fclass = FI_CLASS_STX_CTX, .context = context, .ops = &stx_fid_ops};
  ops = &stx_ops;
}

int SharedTransmit::open(Domain& domain, const fi_tx_attr* attr, fid_stx** out, void* context) {
  const std::size_t most = domain.settings().tx_size;
  const std::size_t size = attr != nullptr && attr->size != 0 ? attr->size : most;
  if (size > most) return -FI_EINVAL;
  *out = new SharedTransmit(domain, size, context);
  return 0;
}

int SharedTransmit::close() {
  const UserOf until_unlocked(domain_.users());  // it keeps the worker
  const std::lock_guard guard(worker_.lock());
  join();  // which leave() undoes
  is_closed_ = true;
  leave();
  return 0;
}

// --- SharedReceive

SharedReceive::SharedReceive(Domain& domain, const fi_rx_attr* attr, void* context)
    : domain_(domain), min_multi_recv_(kDefaultMinMultiRecv), domain_use_(domain.users()) {
  static fi_ops_msg receives = with_receives(no_msg_ops);
  static fi_ops_tagged tagged_receives = with_receives(no_tagged_ops);
  fid = {.fclass = FI_CLASS_SRX_CTX, .context = context, .ops = &srx_fid_ops};
  ops = &srx_ops;
  const std::uint64_t caps = attr != nullptr ? attr->caps : 0;
  const bool takes_all = (caps & (FI_MSG | FI_TAGGED)) == 0;
  msg = takes_all || (caps & FI_MSG) != 0 ? &receives : &no_msg_ops;
  tagged = takes_all || (caps & FI_TAGGED) != 0 ? &tagged_receives : &no_tagged_ops;
  rma = &no_rma_ops;
  atomic = &no_atomic_ops;
  collective = &no_collective_ops;
  op_flags_ = attr != nullptr ? attr->op_flags : 0;
  directed_ = (caps & FI_DIRECTED_RECV) != 0;
}

int SharedReceive::open(Domain& domain, const fi_rx_attr* attr, fid_ep** out, void* context) {
  if (attr != nullptr && (attr->op_flags & ~kRxOpFlags) != 0) return -FI_EINVAL;
  auto* srx = new SharedReceive(domain, attr, context);
  Worker& worker = domain.worker();
  const auto opened = [&] {
    const std::lock_guard guard(worker.lock());
    return worker.ses().open_receive_context(srx->min_multi_recv_, *srx);
  }();
  if (!opened) {
    delete srx;
    return fi_error_of(opened.error());
  }
  srx->id_ = *opened;
  *out = srx;
  return 0;
}

/// Which peer a source is only an endpoint's address vector knows, and there may be several.
ssize_t SharedReceive::post(Endpoint::Receive op) {
  if (directed_ && op.source != FI_ADDR_UNSPEC) return -FI_EOPNOTSUPP;
  if ((op.flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)) != 0) return -FI_EOPNOTSUPP;
  op.source = FI_ADDR_UNSPEC;
  return Endpoint::hand_over(domain_, id_, op);
}

ssize_t SharedReceive::cancel(void* context) {
  Worker& worker = domain_.worker();
  const std::lock_guard guard(worker.lock());
  const base::Instant now = worker.now();
  worker.turn_at(now);  // what has arrived already is not cancelled
  return worker.ses().cancel(now, id_, reinterpret_cast<std::uint64_t>(context)) ? 0 : -FI_ENOENT;
}

ssize_t SharedReceive::size_left() {
  const std::lock_guard guard(domain_.worker().lock());
  return static_cast<ssize_t>(domain_.worker().ses().free_receives());
}

int SharedReceive::get_option(int level, int name, void* value, std::size_t* length) {
  if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (*length < sizeof min_multi_recv_) return -FI_ETOOSMALL;
  const std::lock_guard guard(domain_.worker().lock());
  std::memcpy(value, &min_multi_recv_, sizeof min_multi_recv_);
  *length = sizeof min_multi_recv_;
  return 0;
}

int SharedReceive::set_option(int level, int name, const void* value, std::size_t length) {
  if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (length < sizeof min_multi_recv_) return -FI_EINVAL;
  const std::lock_guard guard(domain_.worker().lock());
  std::memcpy(&min_multi_recv_, value, sizeof min_multi_recv_);
  domain_.worker().ses().set_min_multi_recv(id_, min_multi_recv_);
  return 0;
}

int SharedReceive::close() {
  if (users_.any()) return -FI_EBUSY;
  {
    Worker& worker = domain_.worker();
    const std::lock_guard guard(worker.lock());
    worker.ses().close_endpoint(worker.now(), id_);
  }
  delete this;
  return 0;
}

void SharedReceive::on_completion(ses::EndpointId, const ses::Completion& c) {
  if (!members_.empty()) members_.front()->complete(c);
}

}  // namespace uet::provider
