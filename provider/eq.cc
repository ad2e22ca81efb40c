#include "provider/eq.h"

#include <algorithm>
#include <cstring>

#include "provider/clock.h"
#include "provider/errors.h"
#include "provider/fabric.h"

namespace uet::provider {
namespace {

constexpr std::size_t kDefaultSize = 256;
constexpr base::Duration kLongestSleep = base::Duration::from_seconds(1);
/// A written event larger than this is refused: entries are some dozens of bytes.
constexpr std::size_t kLargestEvent = 4096;

ssize_t eq_read(fid_eq* f, std::uint32_t* event, void* buffer, std::size_t length,
                std::uint64_t flags) {
  return guarded([&] { return Eq::of(f).read(event, buffer, length, flags); });
}

ssize_t eq_readerr(fid_eq* f, fi_eq_err_entry* out, std::uint64_t flags) {
  return guarded([&] { return Eq::of(f).read_error(out, flags); });
}

ssize_t eq_write(fid_eq* f, std::uint32_t event, const void* buffer, std::size_t length,
                 std::uint64_t) {
  return guarded([&] { return Eq::of(f).write(event, buffer, length); });
}

ssize_t eq_sread(fid_eq* f, std::uint32_t* event, void* buffer, std::size_t length, int timeout,
                 std::uint64_t flags) {
  return guarded_wait([&] { return Eq::of(f).sread(event, buffer, length, timeout, flags); });
}

const char* eq_strerror(fid_eq*, int prov_errno, const void*, char* buffer, std::size_t length) {
  const char* text = fi_strerror(prov_errno);
  if (buffer != nullptr && length > 0) {
    std::strncpy(buffer, text, length - 1);
    buffer[length - 1] = '\0';
    return buffer;
  }
  return text;
}

int eq_close(fid* f) {
  return guarded([&] { return Eq::of(f).close(); });
}

int eq_control(fid* f, int command, void* arg) {
  return guarded([&] { return Eq::of(f).control(command, arg); });
}

fi_ops eq_fid_ops = make_ops({.close = eq_close, .control = eq_control});
fi_ops_eq eq_ops = {.size = sizeof(fi_ops_eq),
                    .read = eq_read,
                    .readerr = eq_readerr,
                    .write = eq_write,
                    .sread = eq_sread,
                    .strerror = eq_strerror};

}  // namespace

Eq::Eq(Fabric& fabric, const fi_eq_attr& attr, void* context)
    : api_version_(fabric.api_version),
      size_(attr.size != 0 ? attr.size : kDefaultSize),
      writable_((attr.flags & FI_WRITE) != 0),
      wait_(attr.wait_obj),
      fabric_use_(fabric.users()) {
  fid = {.fclass = FI_CLASS_EQ, .context = context, .ops = &eq_fid_ops};
  ops = &eq_ops;
}

int Eq::open(Fabric& fabric, const fi_eq_attr& attr, fid_eq** out, void* context) {
  if (!WaitObject::is_supported(attr.wait_obj)) return -FI_ENOSYS;
  *out = new Eq(fabric, attr, context);
  return 0;
}

int Eq::close() {
  if (users_.any()) return -FI_EBUSY;
  delete this;
  return 0;
}

int Eq::control(int command, void* arg) {
  const std::lock_guard guard(mutex_);
  return wait_.control(command, arg);
}

void Eq::append(Item item) {
  items_.push_back(std::move(item));
  wait_.signal();
}

void Eq::report(std::uint32_t event, const fi_eq_entry& entry) {
  Item item{.event = event, .is_error = false, .bytes = {}, .error = {}};
  item.bytes.resize(sizeof entry);
  std::memcpy(item.bytes.data(), &entry, sizeof entry);
  const std::lock_guard guard(mutex_);
  append(std::move(item));
}

void Eq::report_error(const fi_eq_err_entry& entry) {
  const std::lock_guard guard(mutex_);
  append(Item{.event = 0, .is_error = true, .bytes = {}, .error = entry});
}

ssize_t Eq::write(std::uint32_t event, const void* buffer, std::size_t length) {
  if (!writable_ || length > kLargestEvent) return -FI_EINVAL;
  Item item{.event = event, .is_error = false, .bytes = {}, .error = {}};
  item.bytes.resize(length);
  if (length > 0) std::memcpy(item.bytes.data(), buffer, length);
  const std::lock_guard guard(mutex_);
  if (items_.size() >= size_) return -FI_EAGAIN;
  append(std::move(item));
  return static_cast<ssize_t>(length);
}

ssize_t Eq::take(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
  if (items_.empty()) return -FI_EAGAIN;
  const Item& item = items_.front();
  if (item.is_error) return -FI_EAVAIL;
  if (length < item.bytes.size()) return -FI_ETOOSMALL;
  if (event != nullptr) *event = item.event;
  if (!item.bytes.empty()) std::memcpy(buffer, item.bytes.data(), item.bytes.size());
  const auto copied = static_cast<ssize_t>(item.bytes.size());
  if ((flags & FI_PEEK) == 0) items_.pop_front();
  return copied;
}

ssize_t Eq::read(std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
  const std::lock_guard guard(mutex_);
  return take(event, buffer, length, flags);
}

ssize_t Eq::read_error(fi_eq_err_entry* out, std::uint64_t flags) {
  const std::lock_guard guard(mutex_);
  if (items_.empty() || !items_.front().is_error) return -FI_EAGAIN;
  const fi_eq_err_entry& e = items_.front().error;
  out->fid = e.fid;
  out->context = e.context;
  out->data = e.data;
  out->err = e.err;
  out->prov_errno = e.prov_errno;
  // From 1.5 on an application may bring a buffer of its own: its pointer stays.
  const bool owns_buffer = api_version_ >= FI_VERSION(1, 5) && out->err_data_size != 0;
  if (!owns_buffer) out->err_data = nullptr;
  out->err_data_size = 0;
  if ((flags & FI_PEEK) == 0) items_.pop_front();
  return sizeof *out;
}

int Eq::try_wait() {
  const std::lock_guard guard(mutex_);
  if (!items_.empty()) return -FI_EAGAIN;
  wait_.arm();
  return 0;
}

ssize_t Eq::sread(std::uint32_t* event, void* buffer, std::size_t length, int timeout_ms,
                  std::uint64_t flags) {
  const base::Instant end = wait_end(clock_now(), timeout_ms);
  bool was_signalled = false;
  std::unique_lock held(mutex_);
  while (true) {
    const ssize_t n = take(event, buffer, length, flags);
    if (n != -FI_EAGAIN) return n;
    const base::Instant now = clock_now();
    if (now >= end || was_signalled) return -FI_EAGAIN;
    Sleeper me(end);
    wait_.add(me);
    held.unlock();
    struct Back {  // also when the thread is cancelled in its sleep
      ~Back() { held.lock(); }
      std::unique_lock<std::mutex>& held;
    } const back{held};
    was_signalled =
        !me.sleep(-1, end.is_never() ? kLongestSleep : std::min(end - now, kLongestSleep));
  }
}

}  // namespace uet::provider
