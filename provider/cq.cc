#include "provider/cq.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "provider/domain.h"
#include "provider/errors.h"

namespace uet::provider {
namespace {

/// Writes one entry of the application's format; each format is a prefix of the next.
void* write_entry(fi_cq_format format, void* at, const CqEntry& e) {
  switch (format) {
    case FI_CQ_FORMAT_MSG: {
      auto* out = static_cast<fi_cq_msg_entry*>(at);
      *out = {.op_context = e.op_context, .flags = e.flags, .len = e.length};
      return out + 1;
    }
    case FI_CQ_FORMAT_DATA: {
      auto* out = static_cast<fi_cq_data_entry*>(at);
      *out = {.op_context = e.op_context,
              .flags = e.flags,
              .len = e.length,
              .buf = e.buffer,
              .data = e.data};
      return out + 1;
    }
    case FI_CQ_FORMAT_TAGGED: {
      auto* out = static_cast<fi_cq_tagged_entry*>(at);
      *out = {.op_context = e.op_context,
              .flags = e.flags,
              .len = e.length,
              .buf = e.buffer,
              .data = e.data,
              .tag = e.tag};
      return out + 1;
    }
    case FI_CQ_FORMAT_UNSPEC:
    case FI_CQ_FORMAT_CONTEXT:
      break;
  }
  auto* out = static_cast<fi_cq_entry*>(at);
  out->op_context = e.op_context;
  return out + 1;
}

ssize_t cq_readfrom(fid_cq* f, void* buffer, std::size_t count, fi_addr_t* sources) {
  return guarded_fast([&] {
    Cq& cq = Cq::of(f);
    if (cq.is_empty() || count == 0) cq.worker().poll();  // a count of 0 asks for progress alone
    return cq.take(buffer, count, sources);
  });
}

ssize_t cq_read(fid_cq* f, void* buffer, std::size_t count) {
  return cq_readfrom(f, buffer, count, nullptr);
}

ssize_t cq_readerr(fid_cq* f, fi_cq_err_entry* out, std::uint64_t) {
  return guarded([&] {
    Cq& cq = Cq::of(f);
    if (cq.is_empty()) cq.worker().poll();
    return cq.take_error(out);
  });
}

ssize_t cq_sreadfrom(fid_cq* f, void* buffer, std::size_t count, fi_addr_t* sources,
                     const void* condition, int timeout) {
  return guarded_wait([&] { return Cq::of(f).sread(buffer, count, sources, condition, timeout); });
}

ssize_t cq_sread(fid_cq* f, void* buffer, std::size_t count, const void* condition, int timeout) {
  return cq_sreadfrom(f, buffer, count, nullptr, condition, timeout);
}

int cq_signal(fid_cq* f) {
  return guarded([&] { return Cq::of(f).signal(); });
}

const char* cq_strerror(fid_cq*, int prov_errno, const void*, char* buffer, std::size_t length) {
  const char* text = describe_prov_errno(prov_errno);
  if (buffer != nullptr && length > 0) {
    std::strncpy(buffer, text, length - 1);
    buffer[length - 1] = '\0';
    return buffer;
  }
  return text;
}

int cq_close(fid* f) {
  return guarded([&] { return Cq::of(f).close(); });
}

int cq_control(fid* f, int command, void* arg) {
  return guarded([&] { return Cq::of(f).control(command, arg); });
}

fi_ops cq_fid_ops = make_ops({.close = cq_close, .control = cq_control});
fi_ops_cq cq_ops = {.size = sizeof(fi_ops_cq),
                    .read = cq_read,
                    .readfrom = cq_readfrom,
                    .readerr = cq_readerr,
                    .sread = cq_sread,
                    .sreadfrom = cq_sreadfrom,
                    .signal = cq_signal,
                    .strerror = cq_strerror};

}  // namespace

Cq::Cq(Domain& domain, const fi_cq_attr& attr, void* context)
    : domain_(domain),
      worker_(domain.worker()),
      format_(attr.format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT : attr.format),
      condition_(attr.wait_cond),
      size_(attr.size != 0 ? attr.size : domain.default_cq_size()),
      wait_(attr.wait_obj),
      domain_use_(domain.users()) {
  fid = {.fclass = FI_CLASS_CQ, .context = context, .ops = &cq_fid_ops};
  ops = &cq_ops;
}

int Cq::open(Domain& domain, const fi_cq_attr& attr, fid_cq** out, void* context) {
  if (attr.format > FI_CQ_FORMAT_TAGGED || attr.size > CqRing::kMostEntries) return -FI_EINVAL;
  if (!WaitObject::is_supported(attr.wait_obj)) return -FI_ENOSYS;
  if (WaitObject::needs_progress_thread(attr.wait_obj) && !domain.start_progress_thread()) {
    return -FI_ENOSYS;
  }
  *out = new Cq(domain, attr, context);
  return 0;
}

int Cq::close() {
  if (users_.any()) return -FI_EBUSY;
  delete this;
  return 0;
}

void Cq::push(const CqEntry& entry) {
  add([&](CqEntry& place) { place = entry; });
}

void Cq::announce() {
  wait_.signal();
  worker_.note_completion();
}

/// What was lost is not known: the application hears of it when it has taken what is there.
bool Cq::is_error_next() {
  if (ring_.size() == 0) return overrun_.load(std::memory_order_relaxed);
  return ring_.front().error != 0;
}

ssize_t Cq::take(void* buffer, std::size_t count, fi_addr_t* sources) {
  if (!has_entries()) return -FI_EAGAIN;
  const std::lock_guard guard(ring_.readers());
  return take_entries(buffer, count, sources);
}

ssize_t Cq::take_entries(void* buffer, std::size_t count, fi_addr_t* sources) {
  std::size_t taken = 0;
  for (const std::size_t there = ring_.size(); taken < std::min(count, there); ++taken) {
    const CqEntry& e = ring_.front();
    if (e.error != 0) break;
    buffer = write_entry(format_, buffer, e);
    if (sources != nullptr) sources[taken] = e.source;
    ring_.pop();
  }
  if (taken > 0 || (count == 0 && has_entries())) return static_cast<ssize_t>(taken);
  return is_error_next() ? -FI_EAVAIL : -FI_EAGAIN;
}

ssize_t Cq::take_error(fi_cq_err_entry* out) {
  if (!has_entries()) return -FI_EAGAIN;
  const std::lock_guard guard(ring_.readers());
  if (!is_error_next()) return -FI_EAGAIN;
  const bool is_overrun = ring_.size() == 0;
  const CqEntry e =
      is_overrun ? CqEntry{.error = FI_EOVERRUN, .prov_errno = prov_errno_of_own(FI_EOVERRUN)}
                 : ring_.front();
  // Named fields only: the application's structure may be smaller or larger than ours.
  // [FI 2.5.2]
  out->op_context = e.op_context;
  out->flags = e.flags;
  out->len = e.length;
  out->buf = e.buffer;
  out->data = e.data;
  out->tag = e.tag;
  out->olen = e.overflow_length;
  out->err = e.error;
  out->prov_errno = e.prov_errno;
  if (domain_.api_version() >= FI_VERSION(1, 5)) {
    out->err_data_size = 0;
  } else {
    out->err_data = nullptr;
  }
  if (is_overrun) {
    overrun_.store(false, std::memory_order_relaxed);
  } else {
    ring_.pop();
  }
  return 1;
}

int Cq::try_wait() {
  if (has_entries()) return -FI_EAGAIN;
  wait_.arm();
  return 0;
}

ssize_t Cq::sread(void* buffer, std::size_t count, fi_addr_t* sources, const void* condition,
                  int timeout_ms) {
  std::size_t threshold = 1;
  if (condition_ == FI_CQ_COND_THRESHOLD) {
    // The number itself, as fi_cq(3) says and other providers take it: whatever it is, it is no pointer to be followed.
    const auto number = reinterpret_cast<std::uintptr_t>(condition);
    threshold = std::clamp<std::size_t>(number, 1, std::max<std::size_t>(count, 1));
  }
  // Taken where it is seen: between two locks another thread could take it away.
  ssize_t result = -FI_EAGAIN;
  const auto ready = [&] {
    const std::lock_guard guard(ring_.readers());
    const bool is_due = ring_.size() >= threshold || signalled_ || is_error_next();
    if (is_due) result = take_entries(buffer, count, sources);
    if (is_due) signalled_ = false;
    return is_due;
  };
  if (worker_.wait_until(wait_, timeout_ms, Worker::OnSignal::kReturn, ready)) return result;
  return take(buffer, count, sources);
}

int Cq::signal() {
  const std::lock_guard guard(worker_.lock());
  signalled_ = true;
  wait_.signal();
  return 0;
}

}  // namespace uet::provider
