/// FI_TAGGED.
#include <rdma/fi_tagged.h>

#include "provider/endpoint.h"
#include "provider/errors.h"
#include "provider/structures.h"

namespace uet::provider {
namespace {

ssize_t post_send(fid_ep* f, std::span<const iovec> iov, fi_addr_t destination, std::uint64_t tag,
                  void* context, std::uint64_t flags, std::uint64_t data = 0) {
  return guarded_fast([&] {
    return Endpoint::of(f).post_send({.tagged = true,
                                      .tag = tag,
                                      .iov = iov,
                                      .destination = destination,
                                      .data = data,
                                      .flags = flags,
                                      .context = context});
  });
}

ssize_t post_receive(fid_ep* f, std::span<const iovec> iov, fi_addr_t source, std::uint64_t tag,
                     std::uint64_t ignore, void* context, std::uint64_t flags) {
  return guarded_fast([&] {
    return Endpoint::of(f).post_receive({.tagged = true,
                                         .tag = tag,
                                         .ignore = ignore,
                                         .iov = iov,
                                         .source = source,
                                         .flags = flags,
                                         .context = context});
  });
}

ssize_t tagged_recv(fid_ep* f, void* buffer, std::size_t length, void*, fi_addr_t source,
                    std::uint64_t tag, std::uint64_t ignore, void* context) {
  const iovec iov = vec(buffer, length);
  return post_receive(f, {&iov, 1}, source, tag, ignore, context,
                      EndpointFid::of(f).tagged_rx_flags());
}

ssize_t tagged_recvv(fid_ep* f, const iovec* iov, void**, std::size_t count, fi_addr_t source,
                     std::uint64_t tag, std::uint64_t ignore, void* context) {
  return post_receive(f, {iov, count}, source, tag, ignore, context,
                      EndpointFid::of(f).tagged_rx_flags());
}

ssize_t tagged_recvmsg(fid_ep* f, const fi_msg_tagged* m, std::uint64_t flags) {
  return guarded_fast([&] {
    return Endpoint::of(f).post_receive(receive_of(*m, flags | Endpoint::of(f).rx_msg_flags()));
  });
}

ssize_t tagged_send(fid_ep* f, const void* buffer, std::size_t length, void*, fi_addr_t destination,
                    std::uint64_t tag, void* context) {
  const iovec iov = vec(buffer, length);
  return post_send(f, {&iov, 1}, destination, tag, context, EndpointFid::of(f).tx_flags());
}

ssize_t tagged_sendv(fid_ep* f, const iovec* iov, void**, std::size_t count, fi_addr_t destination,
                     std::uint64_t tag, void* context) {
  return post_send(f, {iov, count}, destination, tag, context, EndpointFid::of(f).tx_flags());
}

ssize_t tagged_sendmsg(fid_ep* f, const fi_msg_tagged* m, std::uint64_t flags) {
  return guarded_fast([&] {
    return Endpoint::of(f).post_send(send_of(*m, flags | Endpoint::of(f).tx_msg_flags()));
  });
}

ssize_t tagged_inject(fid_ep* f, const void* buffer, std::size_t length, fi_addr_t destination,
                      std::uint64_t tag) {
  const iovec iov = vec(buffer, length);
  return post_send(f, {&iov, 1}, destination, tag, nullptr, FI_INJECT);
}

ssize_t tagged_senddata(fid_ep* f, const void* buffer, std::size_t length, void*,
                        std::uint64_t data, fi_addr_t destination, std::uint64_t tag,
                        void* context) {
  const iovec iov = vec(buffer, length);
  return post_send(f, {&iov, 1}, destination, tag, context,
                   FI_REMOTE_CQ_DATA | EndpointFid::of(f).tx_flags(), data);
}

ssize_t tagged_injectdata(fid_ep* f, const void* buffer, std::size_t length, std::uint64_t data,
                          fi_addr_t destination, std::uint64_t tag) {
  const iovec iov = vec(buffer, length);
  return post_send(f, {&iov, 1}, destination, tag, nullptr, FI_INJECT | FI_REMOTE_CQ_DATA, data);
}

}  // namespace

fi_ops_tagged tagged_ops = {.size = sizeof(fi_ops_tagged),
                            .recv = tagged_recv,
                            .recvv = tagged_recvv,
                            .recvmsg = tagged_recvmsg,
                            .send = tagged_send,
                            .sendv = tagged_sendv,
                            .sendmsg = tagged_sendmsg,
                            .inject = tagged_inject,
                            .senddata = tagged_senddata,
                            .injectdata = tagged_injectdata};

}  // namespace uet::provider
