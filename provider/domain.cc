#include "provider/domain.h"

#include <rdma/fi_endpoint.h>

#include <algorithm>
#include <cstring>

#include "provider/address.h"
#include "provider/av.h"
#include "provider/cntr.h"
#include "provider/cq.h"
#include "provider/endpoint.h"
#include "provider/eq.h"
#include "provider/errors.h"
#include "provider/fabric.h"
#include "provider/getinfo.h"
#include "provider/mr.h"
#include "provider/poll_set.h"
#include "provider/shared_context.h"
#include "provider/structures.h"
#include "provider/triggered.h"
#include "provider/workers.h"

namespace uet::provider {
namespace {

int domain_av_open(fid_domain* f, fi_av_attr* attr, fid_av** out, void* context) {
  return guarded([&] {
    const int ret = Av::open(Domain::of(f), *attr, out, context);
    if (ret == 0 && attr->type == FI_AV_UNSPEC) attr->type = FI_AV_TABLE;
    return ret;
  });
}

int domain_cq_open(fid_domain* f, fi_cq_attr* attr, fid_cq** out, void* context) {
  return guarded([&] { return Cq::open(Domain::of(f), *attr, out, context); });
}

int domain_endpoint2(fid_domain* f, fi_info* info, fid_ep** out, std::uint64_t flags,
                     void* context) {
  if (flags != 0) return -FI_ENOSYS;
  return guarded([&] { return Endpoint::open(Domain::of(f), *info, out, context); });
}

int domain_endpoint(fid_domain* f, fi_info* info, fid_ep** out, void* context) {
  return domain_endpoint2(f, info, out, 0, context);
}

int domain_scalable_ep(fid_domain*, fi_info*, fid_ep**, void*) {
  return -FI_ENOSYS;
}

int domain_cntr_open(fid_domain* f, fi_cntr_attr* attr, fid_cntr** out, void* context) {
  const fi_cntr_attr defaults{};
  return guarded(
      [&] { return Cntr::open(Domain::of(f), attr != nullptr ? *attr : defaults, out, context); });
}

int domain_poll_open(fid_domain*, fi_poll_attr* attr, fid_poll** out) {
  return guarded([&] { return PollSet::open(attr, out); });
}

int domain_stx_ctx(fid_domain* f, fi_tx_attr* attr, fid_stx** out, void* context) {
  return guarded([&] { return SharedTransmit::open(Domain::of(f), attr, out, context); });
}

int domain_srx_ctx(fid_domain* f, fi_rx_attr* attr, fid_ep** out, void* context) {
  return guarded([&] { return SharedReceive::open(Domain::of(f), attr, out, context); });
}

int domain_query_atomic(fid_domain* f, fi_datatype type, fi_op op, fi_atomic_attr* attr,
                        std::uint64_t flags) {
  return guarded(
      [&] { return query_atomic(Domain::of(f), number_of(type), number_of(op), *attr, flags); });
}

int domain_query_collective(fid_domain*, fi_collective_op, fi_collective_attr*, std::uint64_t) {
  return -FI_EOPNOTSUPP;
}

int domain_bind(fid* f, fid* other, std::uint64_t flags) {
  return guarded([&] { return Domain::of(f).bind(other, flags); });
}

int domain_control(fid* f, int command, void* arg) {
  return guarded([&] { return Domain::of(f).control(command, arg); });
}

int domain_close(fid* f) {
  return guarded([&] { return Domain::of(f).close(); });
}

fi_ops domain_fid_ops =
    make_ops({.close = domain_close, .bind = domain_bind, .control = domain_control});
fi_ops_domain domain_ops = {.size = sizeof(fi_ops_domain),
                            .av_open = domain_av_open,
                            .cq_open = domain_cq_open,
                            .endpoint = domain_endpoint,
                            .scalable_ep = domain_scalable_ep,
                            .cntr_open = domain_cntr_open,
                            .poll_open = domain_poll_open,
                            .stx_ctx = domain_stx_ctx,
                            .srx_ctx = domain_srx_ctx,
                            .query_atomic = domain_query_atomic,
                            .query_collective = domain_query_collective,
                            .endpoint2 = domain_endpoint2};

/// Whether `info` came with this address, or with none. [decision 110]
bool has_source(const fi_info& info, const PortChoice& choice) {
  if (info.src_addr == nullptr || info.src_addrlen < kAddressBytes) return true;
  const auto source =
      unpack_address({static_cast<const std::uint8_t*>(info.src_addr), kAddressBytes});
  return source && source->fabric_address == choice.address;
}

struct Place {
  net::FabricAddress address;
  std::shared_ptr<Worker> worker;
};

/// A worker on the port that `info` is for. A program without our locks may bind that port between our look at it and its opening: the
/// address is then exchanged as one that was taken before, each once. [decision 110]
int open_place(const fep::Settings& settings, const fi_info& info, std::uint32_t job, Place& out) {
  const char* const name = info.domain_attr->name;
  std::vector<net::FabricAddress> lost;
  for (;;) {
    const auto choice = take_port(settings, info);
    if (!choice) {
      tell_user(choice.error());
      return -FI_ENODEV;
    }
    if (!has_source(info, *choice)) {
      log_warning("another process took the address that fi_getinfo proposed: this one is " +
                  choice->address.to_string());
    } else if (name != nullptr && choice->domain_name() != name) {
      return -FI_EINVAL;
    }
    auto worker = Workers::open(settings, *choice, job);
    if (worker) {
      out = {choice->address, std::move(worker).value()};
      return 0;
    }
    const WorkerRefusal& refusal = worker.error();
    if (refusal.is_port_taken) lose_port(choice->address);
    if (!refusal.is_port_taken || std::ranges::count(lost, choice->address) != 0) {
      tell_user(refusal.why);
      return -FI_ENODEV;
    }
    lost.push_back(choice->address);
  }
}

}  // namespace

std::optional<std::uint32_t> job_of(const std::uint8_t* auth_key, std::size_t size) {
  if (size != sizeof(std::uint32_t)) return std::nullopt;
  std::uint32_t job;
  std::memcpy(&job, auth_key, sizeof job);
  if (job > 0xff'ffff) return std::nullopt;
  return job;
}

Domain::Domain(Fabric& fabric, const fi_info& info, std::shared_ptr<Worker> worker,
               net::FabricAddress address, void* context)
    : worker_(std::move(worker)),
      fabric_address_(address),
      api_version_(fabric.api_version),
      memory_space_(worker_->new_memory_space()),
      memory_mode_(info.caps, info.domain_attr->mr_mode),
      fabric_use_(fabric.users()) {
  fid = {.fclass = FI_CLASS_DOMAIN, .context = context, .ops = &domain_fid_ops};
  ops = &domain_ops;
  mr = &mr_ops;
  const std::size_t tx = info.tx_attr != nullptr ? info.tx_attr->size : settings().tx_size;
  const std::size_t rx = info.rx_attr != nullptr ? info.rx_attr->size : settings().rx_size;
  default_cq_size_ = std::max<std::size_t>(2 * (tx + rx), 16);
  job_id_ = static_cast<std::uint32_t>(settings().job);
}

bool Domain::is_ours(const fid_domain& f) {
  return f.fid.ops == &domain_fid_ops;
}

MemoryMode::MemoryMode(std::uint64_t caps, int mr_mode)
    : is_rma_target((caps & (FI_RMA | FI_ATOMIC)) != 0),
      has_device_memory((caps & FI_HMEM) != 0),
      has_provider_keys((mr_mode & (FI_MR_PROV_KEY | FI_MR_BASIC)) != 0),
      has_virtual_addresses((mr_mode & (FI_MR_VIRT_ADDR | FI_MR_BASIC)) != 0),
      binds_to_endpoints((mr_mode & FI_MR_ENDPOINT) != 0) {}

MemoryMode Domain::memory_mode() const {
  const std::lock_guard guard(worker_->lock());
  return memory_mode_;
}

void Domain::take_over(const fi_info& info) {
  const bool had_device_memory = memory_mode_.has_device_memory;
  const MemoryMode wanted(info.caps, info.domain_attr != nullptr ? info.domain_attr->mr_mode : 0);
  if (!memory_mode_.is_rma_target && wanted.is_rma_target) memory_mode_ = wanted;
  memory_mode_.has_device_memory = had_device_memory || wanted.has_device_memory;
}

bool Domain::registers_as(std::uint64_t caps, int mr_mode) const {
  const MemoryMode wanted(caps, mr_mode), ours = memory_mode();
  if (!ours.is_rma_target || !wanted.is_rma_target) return true;
  return ours.has_provider_keys == wanted.has_provider_keys &&
         ours.has_virtual_addresses == wanted.has_virtual_addresses &&
         ours.binds_to_endpoints == wanted.binds_to_endpoints;
}

int Domain::open(Fabric& fabric, const fi_info& info, fid_domain** out, void* context) {
  if (is_forked_child()) return -FI_EBUSY;
  if (info.domain_attr == nullptr) return -FI_EINVAL;
  const fi_domain_attr& attr = *info.domain_attr;
  const auto settings = load_settings();
  if (!settings) {
    tell_user(settings.error());
    return -FI_EINVAL;
  }
  if (attr.data_progress == FI_PROGRESS_AUTO && settings->progress == fep::Progress::kManual) {
    return -FI_ENOSYS;
  }
  std::optional<std::uint32_t> job = static_cast<std::uint32_t>(settings->job);
  if (attr.auth_key != nullptr && attr.auth_key_size != 0) {
    job = job_of(attr.auth_key, attr.auth_key_size);
    if (!job) return -FI_EINVAL;
  }
  Place place;
  note_use();
  if (const int ret = open_place(*settings, info, *job, place); ret != 0) return ret;
  auto* domain = new Domain(fabric, info, std::move(place.worker), place.address, context);
  domain->job_id_ = *job;
  if (attr.data_progress == FI_PROGRESS_AUTO) domain->start_progress_thread();
  *out = domain;
  return 0;
}

bool Domain::start_progress_thread() {
  if (settings().progress == fep::Progress::kManual) return false;
  worker_->require_progress_thread();
  return true;
}

void Domain::forget_counter(const Cntr& cntr) {
  for (const auto& [key, region] : watched_) region->forget(cntr);
  std::erase(triggering_, &cntr);
}

void Domain::add_triggering(Cntr& cntr) {
  if (std::ranges::find(triggering_, &cntr) == triggering_.end()) triggering_.push_back(&cntr);
}

std::list<TriggeredOp> Domain::take_triggered(const IsMeant& is_meant) {
  std::list<TriggeredOp> taken;
  for (Cntr* cntr : triggering_) cntr->take_waiting(is_meant, taken);
  return taken;
}

int Domain::control(int command, void* arg) {
  switch (command) {
    case FI_QUEUE_WORK:
      return arg == nullptr ? -FI_EINVAL : queue_work(*this, *static_cast<fi_deferred_work*>(arg));
    case FI_CANCEL_WORK:
      return arg == nullptr ? -FI_EINVAL : cancel_work(*this, *static_cast<fi_deferred_work*>(arg));
    case FI_FLUSH_WORK:
      return arg == nullptr ? flush_work(*this) : -FI_EINVAL;
    case FI_MAP_RAW_MR: {
      if (arg == nullptr) return -FI_EINVAL;
      const auto& raw = *static_cast<const struct fi_mr_map_raw*>(arg);
      if (raw.key_size != sizeof *raw.key) return -FI_EINVAL;
      std::memcpy(raw.key, raw.raw_key, sizeof *raw.key);
      return 0;
    }
    case FI_UNMAP_KEY:
      return 0;
    default:
      return -FI_ENOSYS;
  }
}

int Domain::bind(fid_t other, std::uint64_t flags) {
  if (other->fclass != FI_CLASS_EQ || (flags & ~FI_REG_MR) != 0) return -FI_EINVAL;
  if (event_queue_ != nullptr) return -FI_EBUSY;
  event_queue_ = &Eq::of(other);
  event_queue_->users().add();
  if ((flags & FI_REG_MR) != 0) mr_events_ = event_queue_;
  return 0;
}

int Domain::close() {
  if (users_.any()) return -FI_EBUSY;
  if (event_queue_ != nullptr) event_queue_->users().remove();
  delete this;
  return 0;
}

}  // namespace uet::provider
