#include "provider/fabric.h"

#include <rdma/fi_endpoint.h>

#include <cstring>
#include <mutex>
#include <new>

#include "provider/cntr.h"
#include "provider/cq.h"
#include "provider/domain.h"
#include "provider/eq.h"
#include "provider/errors.h"

namespace uet::provider {
namespace {

int fabric_domain2(fid_fabric* f, fi_info* info, fid_domain** out, std::uint64_t flags,
                   void* context) {
  if (flags != 0) return -FI_ENOSYS;
  return guarded([&] {
    try {
      return Domain::open(Fabric::of(f), *info, out, context);
    } catch (const std::bad_alloc&) {
      tell_user(
          "no memory for an endpoint: a process with one needs about 150 MB of address space; see "
          "\"ulimit -v\" and the limit of its container");
      return -FI_ENOMEM;
    }
  });
}

int fabric_domain(fid_fabric* f, fi_info* info, fid_domain** out, void* context) {
  return fabric_domain2(f, info, out, 0, context);
}

int fabric_passive_ep(fid_fabric*, fi_info*, fid_pep**, void*) {
  return -FI_ENOSYS;
}

int fabric_eq_open(fid_fabric* f, fi_eq_attr* attr, fid_eq** out, void* context) {
  return guarded([&] { return Eq::open(Fabric::of(f), *attr, out, context); });
}

int fabric_wait_open(fid_fabric*, fi_wait_attr*, fid_wait**) {
  return -FI_ENOSYS;
}

/// Arms a queue or counter; -FI_EAGAIN when there is something to read now.
int try_wait_one(fid* f) {
  switch (f->fclass) {
    case FI_CLASS_CQ: {
      Cq& cq = Cq::of(f);
      const std::lock_guard guard(cq.worker().lock());
      cq.worker().turn();
      return cq.try_wait();
    }
    case FI_CLASS_CNTR: {
      Cntr& cntr = Cntr::of(f);
      const std::lock_guard guard(cntr.worker().lock());
      cntr.worker().turn();
      return cntr.try_wait();
    }
    case FI_CLASS_EQ:
      return Eq::of(f).try_wait();
    default:
      return -FI_EINVAL;
  }
}

int fabric_trywait(fid_fabric*, fid** fids, int count) {
  return guarded([&] {
    for (int i = 0; i < count; ++i) {
      if (const int ret = try_wait_one(fids[i]); ret != 0) return ret;
    }
    for (int i = 0; i < count; ++i) {
      if (fids[i]->fclass == FI_CLASS_CQ) Cq::of(fids[i]).worker().application_sleeps();
      if (fids[i]->fclass == FI_CLASS_CNTR) Cntr::of(fids[i]).worker().application_sleeps();
    }
    return 0;
  });
}

int fabric_close(fid* f) {
  return guarded([&] { return Fabric::of(f).close(); });
}

fi_ops fabric_fid_ops = make_ops({.close = fabric_close});
fi_ops_fabric fabric_ops = {.size = sizeof(fi_ops_fabric),
                            .domain = fabric_domain,
                            .passive_ep = fabric_passive_ep,
                            .eq_open = fabric_eq_open,
                            .wait_open = fabric_wait_open,
                            .trywait = fabric_trywait,
                            .domain2 = fabric_domain2};

}  // namespace

Fabric::Fabric(const fi_fabric_attr& attr, void* context) {
  fid = {.fclass = FI_CLASS_FABRIC, .context = context, .ops = &fabric_fid_ops};
  ops = &fabric_ops;
  api_version = attr.api_version;
}

bool Fabric::is_ours(const fid_fabric& f) {
  return f.fid.ops == &fabric_fid_ops;
}

int Fabric::close() {
  if (users_.any()) return -FI_EBUSY;
  delete this;
  return 0;
}

int open_fabric(fi_fabric_attr* attr, fid_fabric** out, void* context) {
  if (is_forked_child()) return -FI_EBUSY;
  if (attr->name != nullptr && std::strcmp(attr->name, kFabricName) != 0) return -FI_EINVAL;
  *out = new Fabric(*attr, context);
  return 0;
}

}  // namespace uet::provider
