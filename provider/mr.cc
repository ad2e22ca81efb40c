#include "provider/mr.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "provider/address_space.h"
#include "provider/cntr.h"
#include "provider/domain.h"
#include "provider/endpoint.h"
#include "provider/eq.h"
#include "provider/errors.h"
#include "provider/offer.h"
#include "provider/provider.h"
#include "ses/memory_table.h"

namespace uet::provider {
namespace {

/// A user may say in the key that the region stands repetition. MPICH does, to tell keys that ranks agree on from its others; what it asks of
/// such regions is what it asks of any. [SES 15, decision 165]
constexpr std::uint64_t kUserKeyBits = ses::kKeyUserMask | ses::kKeyIdempotentSafe;
/// The rights, and capabilities besides, which are none: programs name what they will use the memory for (LCI says FI_RMA).
constexpr std::uint64_t kKnownAccess = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |
                                       FI_REMOTE_WRITE | FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC |
                                       FI_COLLECTIVE;
/// Of no consequence: the driver copies in any case.
constexpr std::uint64_t kHmemFlags = FI_HMEM_DEVICE_ONLY | FI_HMEM_HOST_ALLOC;
constexpr std::uint64_t kKnownFlags = FI_RMA_EVENT | kIdempotent | kHmemFlags;
/// FI_MR_DMABUF, newer than our headers: attr.mr_iov is an array of Dmabuf. [FI 2.5.5]
constexpr std::uint64_t kDmabuf = std::uint64_t{1} << 40;
/// fi_mr_dmabuf.
struct Dmabuf {
  int fd;
  std::uint64_t offset;
  std::size_t len;
  std::uint8_t* base_addr;
};

/// The driver copies by address, so a file with an address is as good as the address; one without is of no use to a port that the CPU feeds.
int open_dmabufs(Domain& domain, const fi_mr_attr& attr, std::uint64_t flags, fid_mr** out) {
  if (attr.iface != FI_HMEM_CUDA || !domain.memory_mode().has_device_memory) {
    log_warning("FI_MR_DMABUF is for memory of CUDA devices, in domains with FI_HMEM");
    return -FI_EOPNOTSUPP;
  }
  if (attr.iov_count > kMrIovLimit) return -FI_EINVAL;
  const std::span files(reinterpret_cast<const Dmabuf*>(attr.mr_iov), attr.iov_count);
  std::array<iovec, kMrIovLimit> iov;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i].base_addr == nullptr) {
      log_warning("FI_MR_DMABUF needs base_addr, where the device's memory lies for its driver");
      return -FI_EOPNOTSUPP;
    }
    iov[i] = {files[i].base_addr + files[i].offset, files[i].len};
  }
  fi_mr_attr by_address = attr;
  by_address.mr_iov = iov.data();
  return Mr::open(domain, by_address, flags & ~kDmabuf, out);
}

int mr_regattr(fid* f, const fi_mr_attr* attr, std::uint64_t flags, fid_mr** out) {
  if (f->fclass != FI_CLASS_DOMAIN) return -FI_EINVAL;
  const auto open = (flags & kDmabuf) != 0 ? open_dmabufs : Mr::open;
  return guarded([&] { return open(Domain::of(f), *attr, flags, out); });
}

int mr_regv(fid* f, const iovec* iov, std::size_t count, std::uint64_t access, std::uint64_t offset,
            std::uint64_t requested_key, std::uint64_t flags, fid_mr** out, void* context) {
  const fi_mr_attr attr = {.mr_iov = iov,
                           .iov_count = count,
                           .access = access,
                           .offset = offset,
                           .requested_key = requested_key,
                           .context = context,
                           .auth_key_size = 0,
                           .auth_key = nullptr,
                           .iface = FI_HMEM_SYSTEM,
                           .device = {}};
  return mr_regattr(f, &attr, flags, out);
}

int mr_reg(fid* f, const void* buffer, std::size_t length, std::uint64_t access,
           std::uint64_t offset, std::uint64_t requested_key, std::uint64_t flags, fid_mr** out,
           void* context) {
  const iovec iov{const_cast<void*>(buffer), length};
  return mr_regv(f, &iov, 1, access, offset, requested_key, flags, out, context);
}

int mr_close(fid* f) {
  return guarded([&] { return Mr::of(f).close(); });
}

int mr_bind(fid* f, fid* other, std::uint64_t flags) {
  return guarded([&] { return Mr::of(f).bind(other, flags); });
}

int mr_control(fid* f, int command, void* arg) {
  return guarded([&] { return Mr::of(f).control(command, arg); });
}

fi_ops mr_fid_ops = make_ops({.close = mr_close, .bind = mr_bind, .control = mr_control});

bool covers_everything(const iovec& v) {
  return (v.iov_base == nullptr && v.iov_len > 0) ||
         reinterpret_cast<std::uintptr_t>(v.iov_base) + v.iov_len <
             reinterpret_cast<std::uintptr_t>(v.iov_base);
}

}  // namespace

fi_ops_mr mr_ops = {
    .size = sizeof(fi_ops_mr), .reg = mr_reg, .regv = mr_regv, .regattr = mr_regattr};

Mr::Mr(Domain& domain, void* context) : domain_(domain), domain_use_(domain.users()) {
  fid = {.fclass = FI_CLASS_MR, .context = context, .ops = &mr_fid_ops};
  mem_desc = this;
  key = FI_KEY_NOTAVAIL;
}

int Mr::open(Domain& domain, const fi_mr_attr& attr, std::uint64_t flags, fid_mr** out) {
  const std::span iov(attr.mr_iov, attr.iov_count);
  if (attr.iov_count > kMrIovLimit || attr.offset != 0) return -FI_EINVAL;
  if ((attr.access & ~kKnownAccess) != 0) return -FI_EINVAL;
  if ((flags & ~kKnownFlags) != 0) return -FI_EBADFLAGS;
  const bool is_everything = std::ranges::any_of(iov, covers_everything);
  if (is_everything && !domain.settings().allow_all_mr) return -FI_EINVAL;
  if (is_everything && AddressSpace::get() == nullptr) {
    log_warning(
        "a region that covers the whole address space needs process_vm_writev(2), which is refused "
        "here");
    return -FI_EOPNOTSUPP;
  }
  const MemoryMode mode = domain.memory_mode();
  if (!mode.has_provider_keys && (attr.requested_key & ~kUserKeyBits) != 0) return -FI_EINVAL;

  // A user who chooses the key says so in the key.
  if ((flags & kIdempotent) != 0 && !mode.has_provider_keys) return -FI_EINVAL;
  const std::uint64_t says_idempotent =
      mode.has_provider_keys ? flags & kIdempotent : attr.requested_key & ses::kKeyIdempotentSafe;

  ses::MemoryRequest request{.iov = iov,
                             .remote_read = (attr.access & FI_REMOTE_READ) != 0,
                             .remote_write = (attr.access & FI_REMOTE_WRITE) != 0,
                             .virtual_addressing = mode.has_virtual_addresses,
                             .key = std::nullopt,
                             .check_unique = true,
                             .job_id = std::nullopt,
                             .endpoint = 0,
                             .space = domain.memory_space(),
                             .enabled = !mode.binds_to_endpoints,
                             .idempotent_safe = says_idempotent != 0};
  if (!mode.has_provider_keys) request.key = attr.requested_key & ~ses::kKeyIdempotentSafe;
  if (is_everything) request.device = AddressSpace::get();
  if (attr.auth_key_size != 0) {
    request.job_id = job_of(attr.auth_key, attr.auth_key_size);
    if (!request.job_id) return -FI_EINVAL;
  }
  const auto discard = [](Mr* mr) { mr->close(); };
  std::unique_ptr<Mr, decltype(discard)> mr(new Mr(domain, attr.context), discard);
  mr->key = attr.requested_key;
  {
    const std::lock_guard guard(domain.worker().lock());
    if (const int error = mr->take_memory(attr, mode); error != 0) return error;
    if (Device* device = domain.worker().devices().at(mr->device_))
      request.device = &device->of_regions();
    if (mode.is_rma_target) {
      const auto key = domain.worker().ses().register_memory(request);
      if (!key) return fi_error_of(key.error());
      mr->key = *key;
      mr->registered_ = true;
      mr->enabled_ = request.enabled;
    }
  }
  *out = mr.get();  // before the event can be read
  if (Eq* events = domain.mr_events()) {
    events->report(FI_MR_COMPLETE,
                   fi_eq_entry{.fid = &mr->fid, .context = attr.context, .data = 0});
  }
  (void)mr.release();
  return 0;
}

/// Applications without FI_HMEM leave attr.iface as it is.
int Mr::take_memory(const fi_mr_attr& attr, const MemoryMode& mode) {
  if (!mode.has_device_memory || attr.iface == FI_HMEM_SYSTEM) return 0;
  if (attr.iface != FI_HMEM_CUDA) return -FI_EOPNOTSUPP;
  const std::span iov(attr.mr_iov, attr.iov_count);
  device_iov_.assign(iov.begin(), iov.end());
  if (const int error = domain_.worker().devices().add(iov, attr.device.cuda, device_); error != 0)
    return error;
  domain_.note_device_region();
  return 0;
}

int Mr::bind(fid_t other, std::uint64_t flags) {
  if (other->fclass == FI_CLASS_EP) return bind_endpoint(Endpoint::of(other));
  if (other->fclass != FI_CLASS_CNTR) return -FI_EINVAL;
  if (flags == 0 || (flags & ~(FI_REMOTE_WRITE | FI_REMOTE_READ)) != 0) return -FI_EBADFLAGS;
  // [SES 15] With a key of the user's as with one of ours: what may come twice cannot be counted.
  if ((key & ses::kKeyIdempotentSafe) != 0) {
    log_warning(
        "no counter can be bound to a region whose key says that it stands repetition (bit 63, or "
        "FI_UET_IDEMPOTENT at its registration)");
    return -FI_EINVAL;
  }
  Cntr& cntr = Cntr::of(other);
  if (&cntr.domain() != &domain_) return -FI_EDOMAIN;
  const bool writes = (flags & FI_REMOTE_WRITE) != 0;
  const bool reads = (flags & FI_REMOTE_READ) != 0;
  const std::lock_guard guard(domain_.worker().lock());
  if ((writes && write_counter_ != nullptr) || (reads && read_counter_ != nullptr)) {
    return -FI_EBUSY;
  }
  domain_.watch(key, *this);
  if (writes) write_counter_ = &cntr;
  if (reads) read_counter_ = &cntr;
  return 0;
}

int Mr::bind_endpoint(Endpoint& endpoint) {
  if (&endpoint.worker() != &domain_.worker()) return -FI_EDOMAIN;
  const std::lock_guard guard(domain_.worker().lock());
  if (endpoint_ != nullptr) return -FI_EBUSY;
  endpoint_ = &endpoint;
  endpoint_->users().add();
  return 0;
}

int Mr::enable() {
  const std::lock_guard guard(domain_.worker().lock());
  if (enabled_) return 0;  // live since registration
  if (endpoint_ == nullptr || endpoint_->id() == 0) return -FI_EOPBADSTATE;
  domain_.worker().ses().enable_memory(key, endpoint_->id(), domain_.memory_space());
  enabled_ = true;
  return 0;
}

/// For programs that exchange keys of any length. [fi_mr(3)]
int Mr::raw_key(const struct fi_mr_raw_attr& attr) const {
  const std::size_t room = std::exchange(*attr.key_size, sizeof key);
  if (room < sizeof key) return -FI_ETOOSMALL;
  std::memcpy(attr.raw_key, &key, sizeof key);
  if (attr.base_addr != nullptr) *attr.base_addr = 0;  // the key alone says where it is
  return 0;
}

int Mr::control(int command, void* arg) {
  if (command == FI_GET_RAW_MR && arg != nullptr)
    return raw_key(*static_cast<const struct fi_mr_raw_attr*>(arg));
  return command == FI_ENABLE ? enable() : -FI_ENOSYS;
}

/// The write counter of a region tells of everything that may have changed it, as fi_mr(3) says: also of atomics that fetch,
/// for which that of an endpoint counts a read. One operation counts once.
void Mr::on_remote_access(ses::OpKind kind, bool success) {
  const auto count = [=](Cntr* cntr) {
    if (cntr != nullptr) success ? cntr->add(1) : cntr->add_error(1);
  };
  Cntr* const own = is_write(kind) ? write_counter_ : read_counter_;
  count(own);
  if (kind == ses::OpKind::kRemoteFetchingAtomic && write_counter_ != own) count(write_counter_);
}

void Mr::forget(const Cntr& cntr) {
  if (write_counter_ == &cntr) write_counter_ = nullptr;
  if (read_counter_ == &cntr) read_counter_ = nullptr;
}

int Mr::close() {
  {
    // The layers below copy under the same lock: none of them writes here once we have it.
    const std::lock_guard guard(domain_.worker().lock());
    domain_.unwatch(key, *this);
    if (registered_) domain_.worker().ses().deregister_memory(key, domain_.memory_space());
    domain_.worker().devices().remove(device_iov_, device_);
  }
  if (endpoint_ != nullptr) endpoint_->users().remove();
  delete this;
  return 0;
}

}  // namespace uet::provider
