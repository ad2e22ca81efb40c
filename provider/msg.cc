/// FI_MSG.
#include "provider/endpoint.h"
#include "provider/errors.h"
#include "provider/structures.h"

namespace uet::provider {
namespace {

ssize_t post_send(fid_ep* f, std::span<const iovec> iov, fi_addr_t destination, void* context,
                  std::uint64_t flags, std::uint64_t data = 0) {
  return guarded_fast([&] {
    return Endpoint::of(f).post_send({.tagged = false,
                                      .tag = 0,
                                      .iov = iov,
                                      .destination = destination,
                                      .data = data,
                                      .flags = flags,
                                      .context = context});
  });
}

ssize_t post_receive(fid_ep* f, std::span<const iovec> iov, fi_addr_t source, void* context,
                     std::uint64_t flags) {
  return guarded_fast([&] {
    return Endpoint::of(f).post_receive({.tagged = false,
                                         .tag = 0,
                                         .ignore = 0,
                                         .iov = iov,
                                         .source = source,
                                         .flags = flags,
                                         .context = context});
  });
}

ssize_t msg_recv(fid_ep* f, void* buffer, std::size_t length, void*, fi_addr_t source,
                 void* context) {
  const iovec iov = vec(buffer, length);
  return post_receive(f, {&iov, 1}, source, context, EndpointFid::of(f).rx_flags());
}

ssize_t msg_recvv(fid_ep* f, const iovec* iov, void**, std::size_t count, fi_addr_t source,
                  void* context) {
  return post_receive(f, {iov, count}, source, context, EndpointFid::of(f).rx_flags());
}

ssize_t msg_recvmsg(fid_ep* f, const fi_msg* m, std::uint64_t flags) {
  return guarded_fast([&] {
    return Endpoint::of(f).post_receive(receive_of(*m, flags | Endpoint::of(f).rx_msg_flags()));
  });
}

ssize_t msg_send(fid_ep* f, const void* buffer, std::size_t length, void*, fi_addr_t destination,
                 void* context) {
  const iovec iov = vec(buffer, length);
  return post_send(f, {&iov, 1}, destination, context, EndpointFid::of(f).tx_flags());
}

ssize_t msg_sendv(fid_ep* f, const iovec* iov, void**, std::size_t count, fi_addr_t destination,
                  void* context) {
  return post_send(f, {iov, count}, destination, context, EndpointFid::of(f).tx_flags());
}

ssize_t msg_sendmsg(fid_ep* f, const fi_msg* m, std::uint64_t flags) {
  return guarded_fast([&] {
    return Endpoint::of(f).post_send(send_of(*m, flags | Endpoint::of(f).tx_msg_flags()));
  });
}

ssize_t msg_inject(fid_ep* f, const void* buffer, std::size_t length, fi_addr_t destination) {
  const iovec iov = vec(buffer, length);
  return post_send(f, {&iov, 1}, destination, nullptr, FI_INJECT);
}

ssize_t msg_senddata(fid_ep* f, const void* buffer, std::size_t length, void*, std::uint64_t data,
                     fi_addr_t destination, void* context) {
  const iovec iov = vec(buffer, length);
  return post_send(f, {&iov, 1}, destination, context,
                   FI_REMOTE_CQ_DATA | EndpointFid::of(f).tx_flags(), data);
}

ssize_t msg_injectdata(fid_ep* f, const void* buffer, std::size_t length, std::uint64_t data,
                       fi_addr_t destination) {
  const iovec iov = vec(buffer, length);
  return post_send(f, {&iov, 1}, destination, nullptr, FI_INJECT | FI_REMOTE_CQ_DATA, data);
}

}  // namespace

fi_ops_msg msg_ops = {.size = sizeof(fi_ops_msg),
                      .recv = msg_recv,
                      .recvv = msg_recvv,
                      .recvmsg = msg_recvmsg,
                      .send = msg_send,
                      .sendv = msg_sendv,
                      .sendmsg = msg_sendmsg,
                      .inject = msg_inject,
                      .senddata = msg_senddata,
                      .injectdata = msg_injectdata};

}  // namespace uet::provider
