/// The tables of what an endpoint does not offer: every pointer is there, because libfabric calls
/// some without looking. [FI 2.5.3]
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "provider/endpoint.h"

namespace uet::provider {
namespace {

/// Takes the shape of whatever pointer it is assigned to.
template <typename Result, typename... Arguments>
Result refused(Arguments...) {
  return -FI_EOPNOTSUPP;
}

}  // namespace

fi_ops_msg no_msg_ops = {.size = sizeof(fi_ops_msg),
                         .recv = refused,
                         .recvv = refused,
                         .recvmsg = refused,
                         .send = refused,
                         .sendv = refused,
                         .sendmsg = refused,
                         .inject = refused,
                         .senddata = refused,
                         .injectdata = refused};

fi_ops_tagged no_tagged_ops = {.size = sizeof(fi_ops_tagged),
                               .recv = refused,
                               .recvv = refused,
                               .recvmsg = refused,
                               .send = refused,
                               .sendv = refused,
                               .sendmsg = refused,
                               .inject = refused,
                               .senddata = refused,
                               .injectdata = refused};

fi_ops_rma no_rma_ops = {.size = sizeof(fi_ops_rma),
                         .read = refused,
                         .readv = refused,
                         .readmsg = refused,
                         .write = refused,
                         .writev = refused,
                         .writemsg = refused,
                         .inject = refused,
                         .writedata = refused,
                         .injectdata = refused};

fi_ops_atomic no_atomic_ops = {.size = sizeof(fi_ops_atomic),
                               .write = refused,
                               .writev = refused,
                               .writemsg = refused,
                               .inject = refused,
                               .readwrite = refused,
                               .readwritev = refused,
                               .readwritemsg = refused,
                               .compwrite = refused,
                               .compwritev = refused,
                               .compwritemsg = refused,
                               .writevalid = refused,
                               .readwritevalid = refused,
                               .compwritevalid = refused};

fi_ops_collective no_collective_ops = {.size = sizeof(fi_ops_collective),
                                       .barrier = refused,
                                       .broadcast = refused,
                                       .alltoall = refused,
                                       .allreduce = refused,
                                       .allgather = refused,
                                       .reduce_scatter = refused,
                                       .reduce = refused,
                                       .scatter = refused,
                                       .gather = refused,
                                       .msg = refused,
                                       .barrier2 = refused};

}  // namespace uet::provider
