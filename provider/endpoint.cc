#include "provider/endpoint.h"

#include <rdma/fi_cm.h>

#include <algorithm>
#include <cstring>

#include "provider/address.h"
#include "provider/alias.h"
#include "provider/domain.h"
#include "provider/errors.h"
#include "provider/hints.h"
#include "provider/offer.h"
#include "provider/post_queue.h"
#include "provider/shared_context.h"
#include "provider/triggered.h"
#include "ses/amo.h"

namespace uet::provider {
namespace {

/// Options newer than our headers, by value. [FI 2.5.5]
constexpr int kOptCudaApiPermitted = 10;
constexpr int kOptSharedMemoryPermitted = 11;

/// A resource index is not reused for a moment after its endpoint was closed.
constexpr base::Duration kIndexWait = base::Duration::from_ms(2500);
/// Injected messages that are not over are ours to finish when the endpoint is closed, for so long.
constexpr base::Duration kInjectLinger = base::Duration::from_seconds(2);

constexpr std::uint64_t kSendOrders =
    FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_SAR | FI_ORDER_WAS | FI_ORDER_RAS;
/// Of RMA and of atomics alike.
constexpr std::uint64_t kMemoryOrders = FI_ORDER_SAW | FI_ORDER_SAR | FI_ORDER_WAS | FI_ORDER_RAS |
                                        FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW;
constexpr std::uint64_t kRmaOrders =
    kMemoryOrders | FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW;
constexpr std::uint64_t kAtomicOrders = kMemoryOrders | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |
                                        FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;

int ep_close(fid* f) {
  return guarded([&] { return Endpoint::of(f).close(); });
}
int ep_bind(fid* f, fid* other, std::uint64_t flags) {
  return guarded([&] { return Endpoint::of(f).bind(other, flags); });
}
int ep_control(fid* f, int command, void* arg) {
  return guarded([&] { return Endpoint::of(f).control(EndpointFid::of(f), command, arg); });
}
ssize_t ep_cancel(fid_t f, void* context) {
  return guarded([&] { return Endpoint::of(f).cancel(context); });
}
int ep_getopt(fid_t f, int level, int name, void* value, std::size_t* length) {
  return guarded([&] { return Endpoint::of(f).get_option(level, name, value, length); });
}
int ep_setopt(fid_t f, int level, int name, const void* value, std::size_t length) {
  return guarded([&] { return Endpoint::of(f).set_option(level, name, value, length); });
}
int ep_tx_ctx(fid_ep*, int, fi_tx_attr*, fid_ep**, void*) {
  return -FI_ENOSYS;
}
int ep_rx_ctx(fid_ep*, int, fi_rx_attr*, fid_ep**, void*) {
  return -FI_ENOSYS;
}
ssize_t ep_rx_size_left(fid_ep* f) {
  return guarded([&] { return Endpoint::of(f).rx_size_left(); });
}
ssize_t ep_tx_size_left(fid_ep* f) {
  return guarded([&] { return Endpoint::of(f).tx_size_left(); });
}

int cm_setname(fid_t, void*, std::size_t) {
  return -FI_ENOSYS;
}
int cm_getname(fid_t f, void* address, std::size_t* length) {
  return guarded([&] { return Endpoint::of(f).get_name(address, length); });
}
int cm_getpeer(fid_ep*, void*, std::size_t*) {
  return -FI_ENOSYS;
}
int cm_connect(fid_ep*, const void*, const void*, std::size_t) {
  return -FI_ENOSYS;
}
int cm_listen(fid_pep*) {
  return -FI_ENOSYS;
}
int cm_accept(fid_ep*, const void*, std::size_t) {
  return -FI_ENOSYS;
}
int cm_reject(fid_pep*, fid_t, const void*, std::size_t) {
  return -FI_ENOSYS;
}
int cm_shutdown(fid_ep*, std::uint64_t) {
  return -FI_ENOSYS;
}
int cm_join(fid_ep*, const void*, std::uint64_t, fid_mc**, void*) {
  return -FI_ENOSYS;
}

fi_ops ep_fid_ops = make_ops({.close = ep_close, .bind = ep_bind, .control = ep_control});
fi_ops_ep ep_ops = {.size = sizeof(fi_ops_ep),
                    .cancel = ep_cancel,
                    .getopt = ep_getopt,
                    .setopt = ep_setopt,
                    .tx_ctx = ep_tx_ctx,
                    .rx_ctx = ep_rx_ctx,
                    .rx_size_left = ep_rx_size_left,
                    .tx_size_left = ep_tx_size_left};
fi_ops_cm cm_ops = {.size = sizeof(fi_ops_cm),
                    .setname = cm_setname,
                    .getname = cm_getname,
                    .getpeer = cm_getpeer,
                    .connect = cm_connect,
                    .listen = cm_listen,
                    .accept = cm_accept,
                    .reject = cm_reject,
                    .shutdown = cm_shutdown,
                    .join = cm_join};

}  // namespace

Endpoint::Endpoint(Domain& domain, const fi_info& info, const Offer& offer, void* context)
    : EndpointFid(*this), domain_(domain), worker_(domain.worker()), domain_use_(domain.users()) {
  fid = {.fclass = FI_CLASS_EP, .context = context, .ops = &ep_fid_ops};
  ops = &ep_ops;
  cm = &cm_ops;
  take_attributes(info, offer);
  choose_ops();
}

Endpoint::~Endpoint() = default;

int Endpoint::open(Domain& domain, const fi_info& info, fid_ep** out, void* context) {
  const fi_ep_attr none{};
  const fi_ep_attr& attr = info.ep_attr != nullptr ? *info.ep_attr : none;
  const Offer* any = offer_of(attr.type == FI_EP_UNSPEC ? FI_EP_RDM : attr.type);
  if (any == nullptr) return -FI_EINVAL;
  const Offer offer = under(domain.settings(), *any, info.caps);
  if ((info.caps & ~offer.caps) != 0) return -FI_EINVAL;
  const auto is_one = [](std::size_t count) { return count <= 1 || count == FI_SHARED_CONTEXT; };
  if (!is_one(attr.tx_ctx_cnt) || !is_one(attr.rx_ctx_cnt)) return -FI_EINVAL;
  if (info.tx_attr != nullptr && (info.tx_attr->msg_order & ~offer.msg_orders) != 0)
    return -FI_EINVAL;
  auto* ep = new Endpoint(domain, info, offer, context);
  if (!ep->take_auth_key(info)) {
    delete ep;
    return -FI_EINVAL;
  }
  {
    const std::lock_guard guard(domain.worker().lock());
    domain.take_over(info);
  }
  *out = ep;
  return 0;
}

/// Applications change the fi_info between calls: everything is copied here. [FI 6.7]
void Endpoint::take_attributes(const fi_info& info, const Offer& offer) {
  const fep::Settings& settings = domain_.settings();
  type_ = offer.type;
  caps_ = answer_caps(info.caps, offer);
  take_sizes(info, offer);
  tx_size_ = settings.tx_size;
  begin_with(info.tx_attr != nullptr ? info.tx_attr->op_flags : 0,
             info.rx_attr != nullptr ? info.rx_attr->op_flags : 0);
  if (info.tx_attr != nullptr) {
    msg_order_ = info.tx_attr->msg_order;
    if (info.tx_attr->size != 0) tx_size_ = std::min(tx_size_, info.tx_attr->size);
  }
  shares_tx_ = info.ep_attr != nullptr && info.ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT;
  shares_rx_ = info.ep_attr != nullptr && info.ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT;
  directed_receive_ = (caps_ & FI_DIRECTED_RECV) != 0;
  reports_source_ = (caps_ & FI_SOURCE) != 0;
  if (info.src_addr != nullptr && info.src_addrlen >= kAddressBytes) {
    wanted_address_ =
        unpack_address({static_cast<const std::uint8_t*>(info.src_addr), kAddressBytes});
  }
}

void Endpoint::take_sizes(const fi_info& info, const Offer& offer) {
  const auto at_most = [](std::size_t ours, std::size_t asked) {
    return asked != 0 ? std::min(ours, asked) : ours;
  };
  std::size_t whole = offer.max_message;
  if (is_datagram() && info.ep_attr != nullptr) whole = at_most(whole, info.ep_attr->max_msg_size);
  const std::size_t asked = info.tx_attr != nullptr ? info.tx_attr->inject_size : 0;
  const std::size_t inject = std::min(at_most(domain_.settings().inject_size, asked), whole);
  const std::size_t elements = ses::atomic_payload_of(static_cast<std::uint32_t>(payload_mtu()));
  if ((caps_ & FI_MSG) != 0) sizes_.set(SizeLimits::kMessage, {whole, inject});
  if ((caps_ & FI_TAGGED) != 0) sizes_.set(SizeLimits::kTagged, {whole, inject});
  if ((caps_ & FI_RMA) != 0) sizes_.set(SizeLimits::kRma, {whole, inject});
  if ((caps_ & FI_ATOMIC) != 0)
    sizes_.set(SizeLimits::kAtomic, {elements, std::min(inject, elements)});
}

std::size_t Endpoint::payload_mtu() const {
  return domain_.payload_mtu();
}

bool Endpoint::take_auth_key(const fi_info& info) {
  job_id_ = domain_.job_id();
  const fi_ep_attr* attr = info.ep_attr;
  if (attr != nullptr && attr->auth_key != nullptr && attr->auth_key_size != 0) {
    const auto job = job_of(attr->auth_key, attr->auth_key_size);
    if (!job) return false;
    job_id_ = *job;
  }
  if (!worker_.covers(job_id_)) return false;
  const auto& allowed = domain_.settings().jobs;
  return allowed.empty() || std::ranges::find(allowed, job_id_) != allowed.end();
}

void Endpoint::choose_ops() {
  msg = (caps_ & FI_MSG) != 0 ? &msg_ops : &no_msg_ops;
  tagged = (caps_ & FI_TAGGED) != 0 ? &tagged_ops : &no_tagged_ops;
  rma = (caps_ & FI_RMA) != 0 ? &rma_ops : &no_rma_ops;
  atomic = (caps_ & FI_ATOMIC) != 0 ? &atomic_ops : &no_atomic_ops;
  collective = &no_collective_ops;
}

// --- Binding and enabling

int Endpoint::bind(fid_t other, std::uint64_t flags) {
  const bool is_any_time = other->fclass == FI_CLASS_CNTR || other->fclass == FI_CLASS_STX_CTX;
  if (id_ != 0 && !is_any_time) return -FI_EOPBADSTATE;
  switch (other->fclass) {
    case FI_CLASS_AV: {
      Av& av = Av::of(other);
      if (&av.worker() != &worker_) return -FI_EDOMAIN;
      if (av_ != nullptr) return -FI_EBUSY;
      av_ = &av;
      av.users().add();
      return 0;
    }
    case FI_CLASS_CQ:
      return bind_cq(other, flags);
    case FI_CLASS_CNTR:
      return bind_counter(other, flags);
    case FI_CLASS_STX_CTX:
      return bind_shared_transmit(other);
    case FI_CLASS_SRX_CTX:
      return bind_shared_receive(other);
    case FI_CLASS_EQ:
      return 0;  // an RDM endpoint has no control events
    default:
      return -FI_EINVAL;
  }
}

int Endpoint::bind_cq(fid_t other, std::uint64_t flags) {
  Cq& cq = Cq::of(other);
  if (&cq.worker() != &worker_) return -FI_EDOMAIN;
  if ((flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION)) != 0) return -FI_EBADFLAGS;
  if ((flags & (FI_TRANSMIT | FI_RECV)) == 0) return -FI_EBADFLAGS;
  const bool selective = (flags & FI_SELECTIVE_COMPLETION) != 0;
  if (((flags & FI_TRANSMIT) != 0 && tx_cq_ != nullptr) ||
      ((flags & FI_RECV) != 0 && rx_cq_ != nullptr)) {
    return -FI_EINVAL;
  }
  const std::lock_guard guard(worker_.lock());
  cq.reserve();
  if ((flags & FI_TRANSMIT) != 0) {
    tx_cq_ = &cq;
    tx_selective_ = selective;
    cq.users().add();
  }
  if ((flags & FI_RECV) != 0) {
    rx_cq_ = &cq;
    rx_selective_ = selective;
    cq.users().add();
  }
  return 0;
}

int Endpoint::bind_counter(fid_t other, std::uint64_t flags) {
  static constexpr std::array kFlags = {FI_SEND,  FI_RECV,        FI_READ,
                                        FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
  Cntr& cntr = Cntr::of(other);
  if (&cntr.worker() != &worker_) return -FI_EDOMAIN;
  std::uint64_t known = 0;
  for (const std::uint64_t flag : kFlags) known |= flag;
  if (flags == 0 || (flags & ~known) != 0) return -FI_EBADFLAGS;
  const std::lock_guard guard(worker_.lock());
  for (std::size_t i = 0; i < kFlags.size(); ++i) {
    if ((flags & kFlags[i]) != 0 && counters_[i] != nullptr) return -FI_EBUSY;
  }
  for (std::size_t i = 0; i < kFlags.size(); ++i) {
    if ((flags & kFlags[i]) == 0) continue;
    counters_[i] = &cntr;
    cntr.users().add();
  }
  return 0;
}

/// Also for endpoints that are enabled, or did not ask for it: Sandia OpenSHMEM binds one to the only endpoint that it has.
int Endpoint::bind_shared_transmit(fid_t other) {
  SharedTransmit& shared = SharedTransmit::of(other);
  if (&shared.worker() != &worker_) return -FI_EDOMAIN;
  if (shared_tx_ != nullptr) return -FI_EBUSY;
  const std::lock_guard guard(worker_.lock());
  shared_tx_ = &shared;
  shared.add(tx_outstanding_);
  shared.join();
  return 0;
}

int Endpoint::bind_shared_receive(fid_t other) {
  SharedReceive& shared = SharedReceive::of(other);
  if (&shared.domain() != &domain_) return -FI_EDOMAIN;
  if (!shares_rx_) return -FI_EINVAL;
  if (shared_rx_ != nullptr) return -FI_EBUSY;
  const std::lock_guard guard(worker_.lock());
  shared.join(*this);
  shared_rx_ = &shared;
  shared.users().add();
  return 0;
}

int Endpoint::enable() {
  if (id_ != 0) return 0;
  if (av_ == nullptr) return -FI_ENOAV;
  if ((shares_tx_ && shared_tx_ == nullptr) || (shares_rx_ && shared_rx_ == nullptr)) {
    log_warning("an endpoint of FI_SHARED_CONTEXT was enabled before fi_ep_bind() of its context");
    return -FI_EOPBADSTATE;
  }
  const bool transmits = (caps_ & (FI_SEND | FI_READ | FI_WRITE)) != 0;
  const bool receives = (caps_ & FI_RECV) != 0;
  const bool counts_tx = counts_transmits();
  if (transmits && tx_cq_ == nullptr && !counts_tx) return -FI_ENOCQ;
  if (receives && rx_cq_ == nullptr && counters_[kRecv] == nullptr) return -FI_ENOCQ;

  tx_msg_flags_ = tx_selective_ ? 0 : FI_COMPLETION;
  rx_msg_flags_ = rx_selective_ ? 0 : FI_COMPLETION;
  left_transmits_ = std::make_unique<PostQueue>();
  left_receives_ = std::make_unique<PostQueue>();
  return open_below();
}

ses::EndpointConfig Endpoint::config_below() const {
  const fep::Settings& settings = domain_.settings();
  ses::EndpointConfig config;
  config.job_id = job_id_;
  config.relative = settings.mode == fep::AddressMode::kRelative;
  config.pid_on_fep = static_cast<std::uint16_t>(settings.pid_on_fep);
  if (settings.initiator_id) {
    config.initiator_id = static_cast<std::uint32_t>(*settings.initiator_id);
  }
  if (wanted_address_ && wanted_address_->resource_index != 0) {
    config.pid_on_fep = wanted_address_->pid_on_fep;
    config.resource_index = wanted_address_->resource_index;
    if (wanted_address_->has_initiator_id) config.initiator_id = wanted_address_->initiator_id;
  }
  config.sends_ordered = (msg_order_ & kSendOrders) != 0;
  config.rma_ordered = (msg_order_ & kRmaOrders) != 0;
  config.atomics_ordered = (msg_order_ & kAtomicOrders) != 0;
  config.writes_follow_sends = (msg_order_ & FI_ORDER_WAS) != 0;
  config.reads_follow_sends = (msg_order_ & FI_ORDER_RAS) != 0;
  config.min_multi_recv = min_multi_recv_;
  const bool receives = (caps_ & FI_RECV) != 0;
  config.has_untagged = receives && (caps_ & FI_MSG) != 0 && !is_datagram();
  config.has_datagrams = receives && is_datagram();
  config.has_tagged = receives && (caps_ & FI_TAGGED) != 0;
  // Whom a region is open to is for its rights to say: NCCL's plug-in reads its own memory back by an endpoint with FI_READ alone.
  config.has_rma = (caps_ & (FI_RMA | FI_ATOMIC)) != 0;
  config.accept_remote_data = rx_cq_ != nullptr;
  config.memory_space = domain_.memory_space();
  config.receive_context = shared_rx_ != nullptr ? shared_rx_->id() : 0;
  return config;
}

int Endpoint::open_below() {
  const ses::EndpointConfig config = config_below();
  const auto try_open = [&](const ses::EndpointConfig& c) {
    return worker_.ses().open_endpoint(worker_.now(), c, *this);
  };
  auto error = ses::PostError::kNoResources;
  const auto attempt = [&] {
    // FI_UET_RI is a wish for the first endpoint only.
    ses::EndpointConfig wish = config;
    if (wish.resource_index == 0) {
      wish.resource_index = static_cast<std::uint16_t>(domain_.settings().ri);
    }
    auto opened = try_open(wish);
    if (!opened && wish.resource_index != config.resource_index) opened = try_open(config);
    if (opened) {
      id_ = *opened;
      return true;
    }
    error = opened.error();
    return error != ses::PostError::kNoResources && error != ses::PostError::kAddressRests;
  };
  worker_.turn_until(attempt, kIndexWait);
  return id_ != 0 ? 0 : fi_error_of(error);
}

std::uint64_t Endpoint::possible_op_flags(bool is_transmit) const {
  return (is_transmit ? offer_of(type_)->tx_op_flags : kRxOpFlags) | (caps_ & FI_TRIGGER);
}

namespace {

/// Transmitting or receiving; nothing where `flags` names both or neither.
std::optional<bool> transmits(std::uint64_t flags) {
  const bool tx = (flags & FI_TRANSMIT) != 0;
  if (tx == ((flags & FI_RECV) != 0)) return std::nullopt;
  return tx;
}

}  // namespace

int EndpointFid::get_ops_flags(std::uint64_t& flags) const {
  const auto tx = transmits(flags);
  if (!tx) return -FI_EINVAL;
  flags = *tx ? tx_op_flags_ : rx_op_flags_;
  return 0;
}

int EndpointFid::set_ops_flags(std::uint64_t flags) {
  const auto tx = transmits(flags);
  if (!tx) return -FI_EINVAL;
  const std::uint64_t wanted = flags & ~(FI_TRANSMIT | FI_RECV);
  if ((wanted & ~endpoint_.possible_op_flags(*tx)) != 0) return -FI_EINVAL;
  (*tx ? tx_op_flags_ : rx_op_flags_) = wanted;
  return 0;
}

int Endpoint::control(EndpointFid& by, int command, void* arg) {
  switch (command) {
    case FI_ENABLE:
      return enable();
    case FI_GETOPSFLAG:
      return by.get_ops_flags(*static_cast<std::uint64_t*>(arg));
    case FI_SETOPSFLAG:
      return by.set_ops_flags(*static_cast<const std::uint64_t*>(arg));
    case FI_ALIAS:
      return Alias::open(by, *static_cast<const struct fi_alias*>(arg));
    default:
      return -FI_ENOSYS;
  }
}

int Endpoint::get_name(void* address, std::size_t* length) {
  AddressBytes bytes;
  {
    const std::lock_guard guard(worker_.lock());
    if (id_ == 0) return -FI_EOPBADSTATE;
    bytes = pack_address(worker_.ses().address_of(id_));
  }
  const std::size_t room = *length;
  *length = bytes.size();
  if (address != nullptr) std::memcpy(address, bytes.data(), std::min(room, bytes.size()));
  return room < bytes.size() ? -FI_ETOOSMALL : 0;
}

int Endpoint::get_option(int level, int name, void* value, std::size_t* length) {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  const auto answer = [&](const auto& v) {
    if (*length < sizeof v) return -FI_ETOOSMALL;
    std::memcpy(value, &v, sizeof v);
    *length = sizeof v;
    return 0;
  };
  const std::lock_guard guard(worker_.lock());
  switch (name) {
    case FI_OPT_MIN_MULTI_RECV:
      return answer(min_multi_recv_);
    case FI_OPT_TX_SIZE:
      return answer(tx_size_);
    case FI_OPT_RX_SIZE:
      return answer(static_cast<std::size_t>(domain_.settings().rx_size));
    case FI_OPT_FI_HMEM_P2P:
      return answer(int{FI_HMEM_P2P_DISABLED});
    default:
      if (const std::size_t* size = sizes_.get(name)) return answer(*size);
      return -FI_ENOPROTOOPT;
  }
}

int Endpoint::set_size(int name, const void* value, std::size_t length) {
  std::size_t bytes = 0;
  if (length < sizeof bytes) return -FI_EINVAL;
  std::memcpy(&bytes, value, sizeof bytes);
  const std::lock_guard guard(worker_.lock());
  return sizes_.lower(name, bytes);
}

namespace {

/// Of an option of type bool: the application may have any byte there, and only two of them are one.
bool is_true(const void* option) {
  unsigned char byte = 0;
  std::memcpy(&byte, option, sizeof byte);
  return byte != 0;
}

}  // namespace

int Endpoint::set_option(int level, int name, const void* value, std::size_t length) {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  switch (name) {
    case FI_OPT_MIN_MULTI_RECV: {
      if (length < sizeof min_multi_recv_) return -FI_EINVAL;
      if (shares_rx_) return -FI_EOPNOTSUPP;  // it is the shared context's
      const std::lock_guard guard(worker_.lock());
      std::memcpy(&min_multi_recv_, value, sizeof min_multi_recv_);
      if (id_ != 0) worker_.ses().set_min_multi_recv(id_, min_multi_recv_);
      return 0;
    }
    case FI_OPT_FI_HMEM_P2P: {
      int wanted = 0;
      if (length < sizeof wanted) return -FI_EINVAL;
      std::memcpy(&wanted, value, sizeof wanted);
      // Copies are the choice of the provider with each of them.
      const bool may_copy = wanted == FI_HMEM_P2P_ENABLED || wanted == FI_HMEM_P2P_PREFERRED ||
                            wanted == FI_HMEM_P2P_DISABLED;
      return may_copy ? 0 : -FI_EOPNOTSUPP;
    }
    case kOptCudaApiPermitted: {
      if (length < sizeof(bool)) return -FI_EINVAL;
      // Our copies are calls of CUDA; without device memory there are none.
      const bool has_calls = (caps_ & FI_HMEM) != 0;
      if (is_true(value)) return has_calls ? 0 : -FI_EINVAL;
      return has_calls ? -FI_EOPNOTSUPP : 0;
    }
    case kOptSharedMemoryPermitted:
      if (length < sizeof(bool)) return -FI_EINVAL;
      return is_true(value) ? -FI_EOPNOTSUPP : 0;
    default:
      return sizes_.get(name) != nullptr ? set_size(name, value, length) : -FI_ENOPROTOOPT;
  }
}

ssize_t Endpoint::cancel(void* context) {
  const std::lock_guard guard(worker_.lock());
  if (id_ == 0) return -FI_EOPBADSTATE;
  const base::Instant now = worker_.now();
  // What has arrived already is not cancelled.
  worker_.turn_at(now);
  const bool is_all_posted = carry_out();
  if (worker_.ses().cancel(now, id_, reinterpret_cast<std::uint64_t>(context))) return 0;
  if (cancel_triggered(now, context)) return 0;
  return is_all_posted ? -FI_ENOENT : -FI_EAGAIN;  // it may be among those that wait to be posted
}

ssize_t Endpoint::tx_size_left() {
  const std::lock_guard guard(worker_.lock());
  if (id_ == 0) return -FI_EOPBADSTATE;
  const std::size_t outstanding = tx_outstanding_;
  const std::size_t own =
      shared_tx_ != nullptr ? shared_tx_->room() : tx_size_ - std::min(tx_size_, outstanding);
  return static_cast<ssize_t>(std::min(own, worker_.ses().free_sends()));
}

ssize_t Endpoint::rx_size_left() {
  const std::lock_guard guard(worker_.lock());
  if (id_ == 0) return -FI_EOPBADSTATE;
  return static_cast<ssize_t>(worker_.ses().free_receives());
}

void Endpoint::leave_shared() {
  const std::lock_guard guard(worker_.lock());
  if (shared_tx_ != nullptr) {
    shared_tx_->remove(tx_outstanding_);
    shared_tx_->leave();
  }
  if (shared_rx_ != nullptr) {
    shared_rx_->leave(*this);
    shared_rx_->users().remove();
  }
}

/// What was injected is waited for.
void Endpoint::hurry() {
  const std::lock_guard guard(worker_.lock());
  carry_out();
  worker_.ses().hurry(worker_.now(), id_);
}

/// A wait turns the loop for the injects of all endpoints: what was posted before one that was in vain has had its time, and a
/// program that closes many endpoints waits for a peer that is gone once.
void Endpoint::finish_injects() {
  hurry();
  base::Instant begin;
  base::Duration limit = kInjectLinger;
  {
    const std::lock_guard guard(worker_.lock());
    begin = worker_.now();
    if (carry_out() && injected_at_ <= worker_.injects_awaited_since()) limit = base::Duration{};
  }
  const auto is_over = [&] { return carry_out() && injects_outstanding_ == 0; };
  if (worker_.turn_until(is_over, limit) || limit == base::Duration{}) return;
  const std::lock_guard guard(worker_.lock());
  worker_.note_awaited_injects(begin);
}

int Endpoint::close() {
  if (users_.any()) return -FI_EBUSY;
  drop_triggered();
  if (id_ != 0) {
    finish_injects();
    const std::lock_guard guard(worker_.lock());
    worker_.forget(*this);
    worker_.ses().close_endpoint(worker_.now(), id_);
  }
  leave_shared();
  if (av_ != nullptr) av_->users().remove();
  for (Cq* cq : {tx_cq_, rx_cq_}) {
    if (cq != nullptr) cq->users().remove();
  }
  for (Cntr* cntr : counters_) {
    if (cntr != nullptr) cntr->users().remove();
  }
  delete this;
  return 0;
}

}  // namespace uet::provider
