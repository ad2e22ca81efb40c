/// FI_RMA.
#include <rdma/fi_rma.h>

#include "provider/endpoint.h"
#include "provider/errors.h"
#include "provider/structures.h"

namespace uet::provider {
namespace {

struct Remote {
  std::uint64_t address;
  std::uint64_t key;
};

ssize_t post(fid_ep* f, bool read, std::span<const iovec> iov, fi_addr_t peer, Remote remote,
             void* context, std::uint64_t flags, std::uint64_t data = 0) {
  return guarded_fast([&] {
    return Endpoint::of(f).post_rma({.read = read,
                                     .iov = iov,
                                     .peer = peer,
                                     .remote_address = remote.address,
                                     .key = remote.key,
                                     .data = data,
                                     .flags = flags,
                                     .context = context});
  });
}

ssize_t post_msg(fid_ep* f, bool read, const fi_msg_rma* m, std::uint64_t flags) {
  return guarded_fast([&]() -> ssize_t {
    const auto op = rma_of(*m, read, flags | Endpoint::of(f).tx_msg_flags());
    return op ? Endpoint::of(f).post_rma(*op) : -FI_EINVAL;
  });
}

ssize_t rma_read(fid_ep* f, void* buffer, std::size_t length, void*, fi_addr_t peer,
                 std::uint64_t address, std::uint64_t key, void* context) {
  const iovec iov = vec(buffer, length);
  return post(f, true, {&iov, 1}, peer, {address, key}, context,
              EndpointFid::of(f).tx_flags() & ~FI_INJECT);
}

ssize_t rma_readv(fid_ep* f, const iovec* iov, void**, std::size_t count, fi_addr_t peer,
                  std::uint64_t address, std::uint64_t key, void* context) {
  return post(f, true, {iov, count}, peer, {address, key}, context,
              EndpointFid::of(f).tx_flags() & ~FI_INJECT);
}

ssize_t rma_readmsg(fid_ep* f, const fi_msg_rma* m, std::uint64_t flags) {
  return post_msg(f, true, m, flags);
}

ssize_t rma_write(fid_ep* f, const void* buffer, std::size_t length, void*, fi_addr_t peer,
                  std::uint64_t address, std::uint64_t key, void* context) {
  const iovec iov = vec(buffer, length);
  return post(f, false, {&iov, 1}, peer, {address, key}, context, EndpointFid::of(f).tx_flags());
}

ssize_t rma_writev(fid_ep* f, const iovec* iov, void**, std::size_t count, fi_addr_t peer,
                   std::uint64_t address, std::uint64_t key, void* context) {
  return post(f, false, {iov, count}, peer, {address, key}, context, EndpointFid::of(f).tx_flags());
}

ssize_t rma_writemsg(fid_ep* f, const fi_msg_rma* m, std::uint64_t flags) {
  return post_msg(f, false, m, flags);
}

ssize_t rma_inject(fid_ep* f, const void* buffer, std::size_t length, fi_addr_t peer,
                   std::uint64_t address, std::uint64_t key) {
  const iovec iov = vec(buffer, length);
  return post(f, false, {&iov, 1}, peer, {address, key}, nullptr, FI_INJECT);
}

ssize_t rma_writedata(fid_ep* f, const void* buffer, std::size_t length, void*, std::uint64_t data,
                      fi_addr_t peer, std::uint64_t address, std::uint64_t key, void* context) {
  const iovec iov = vec(buffer, length);
  return post(f, false, {&iov, 1}, peer, {address, key}, context,
              FI_REMOTE_CQ_DATA | EndpointFid::of(f).tx_flags(), data);
}

ssize_t rma_injectdata(fid_ep* f, const void* buffer, std::size_t length, std::uint64_t data,
                       fi_addr_t peer, std::uint64_t address, std::uint64_t key) {
  const iovec iov = vec(buffer, length);
  return post(f, false, {&iov, 1}, peer, {address, key}, nullptr, FI_INJECT | FI_REMOTE_CQ_DATA,
              data);
}

}  // namespace

fi_ops_rma rma_ops = {.size = sizeof(fi_ops_rma),
                      .read = rma_read,
                      .readv = rma_readv,
                      .readmsg = rma_readmsg,
                      .write = rma_write,
                      .writev = rma_writev,
                      .writemsg = rma_writemsg,
                      .inject = rma_inject,
                      .writedata = rma_writedata,
                      .injectdata = rma_injectdata};

}  // namespace uet::provider
