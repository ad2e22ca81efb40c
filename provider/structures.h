/// Operations as libfabric's structures describe them: those of fi_sendmsg and its like, and of deferred work.
#pragma once

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "provider/endpoint.h"

namespace uet::provider {

/// Of an enumeration that an application passed: its bytes may be a number that the enumeration does not have, which may not be read as one.
template <typename Enum>
int number_of(const Enum& value) {
  int number = 0;
  static_assert(sizeof number == sizeof value);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

inline iovec vec(const void* buffer, std::size_t length) {
  return {const_cast<void*>(buffer), length};
}

inline Endpoint::Send send_of(const fi_msg& m, std::uint64_t flags) {
  return {.iov = {m.msg_iov, m.iov_count},
          .destination = m.addr,
          .data = m.data,
          .flags = flags,
          .context = m.context};
}
inline Endpoint::Send send_of(const fi_msg_tagged& m, std::uint64_t flags) {
  return {.tagged = true,
          .tag = m.tag,
          .iov = {m.msg_iov, m.iov_count},
          .destination = m.addr,
          .data = m.data,
          .flags = flags,
          .context = m.context};
}

inline Endpoint::Receive receive_of(const fi_msg& m, std::uint64_t flags) {
  return {.iov = {m.msg_iov, m.iov_count}, .source = m.addr, .flags = flags, .context = m.context};
}
inline Endpoint::Receive receive_of(const fi_msg_tagged& m, std::uint64_t flags) {
  return {.tagged = true,
          .tag = m.tag,
          .ignore = m.ignore,
          .iov = {m.msg_iov, m.iov_count},
          .source = m.addr,
          .flags = flags,
          .context = m.context};
}

/// Nothing unless there is one remote range, as long as the local one. [FI 3.2, rma_iov_limit]
inline std::optional<Endpoint::Rma> rma_of(const fi_msg_rma& m, bool read, std::uint64_t flags) {
  const std::span iov(m.msg_iov, m.iov_count);
  if (m.rma_iov_count != 1 || m.rma_iov[0].len != total_bytes(iov)) return std::nullopt;
  return Endpoint::Rma{.read = read,
                       .iov = iov,
                       .peer = m.addr,
                       .remote_address = m.rma_iov[0].addr,
                       .key = m.rma_iov[0].key,
                       .data = m.data,
                       .flags = flags,
                       .context = m.context};
}

/// What the structure of an atomic does not have.
struct AtomicPieces {
  std::span<const fi_ioc> compare, result;
};

/// The same.
inline std::optional<Endpoint::Atomic> atomic_of(const fi_msg_atomic& m, AtomicForm form,
                                                 const AtomicPieces& pieces, std::uint64_t flags) {
  const std::span operand(m.msg_iov, m.iov_count);
  std::size_t local = 0;
  for (const fi_ioc& v : number_of(m.op) == FI_ATOMIC_READ ? pieces.result : operand)
    local += v.count;
  if (m.rma_iov_count != 1 || m.rma_iov[0].count != local) return std::nullopt;
  return Endpoint::Atomic{.form = form,
                          .type = number_of(m.datatype),
                          .op = number_of(m.op),
                          .operand = operand,
                          .compare = pieces.compare,
                          .result = pieces.result,
                          .peer = m.addr,
                          .remote_address = m.rma_iov[0].addr,
                          .key = m.rma_iov[0].key,
                          .data = m.data,
                          .flags = flags,
                          .context = m.context};
}

}  // namespace uet::provider
