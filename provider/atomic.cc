/// FI_ATOMIC.
#include <rdma/fi_atomic.h>

#include "provider/domain.h"
#include "provider/endpoint.h"
#include "provider/errors.h"
#include "provider/structures.h"

namespace uet::provider {
namespace {

fi_ioc elements(const void* buffer, std::size_t count) {
  return {const_cast<void*>(buffer), count};
}

struct Remote {
  fi_addr_t peer;
  std::uint64_t address;
  std::uint64_t key;
};

struct What {
  AtomicForm form;
  int type;
  int op;
};

struct Buffers {
  std::span<const fi_ioc> operand, compare, result;
};

ssize_t post(fid_ep* f, const What& what, const Buffers& buffers, const Remote& remote,
             void* context, std::uint64_t flags, std::uint64_t data = 0) {
  return guarded_fast([&] {
    return Endpoint::of(f).post_atomic({.form = what.form,
                                        .type = what.type,
                                        .op = what.op,
                                        .operand = buffers.operand,
                                        .compare = buffers.compare,
                                        .result = buffers.result,
                                        .peer = remote.peer,
                                        .remote_address = remote.address,
                                        .key = remote.key,
                                        .data = data,
                                        .flags = flags,
                                        .context = context});
  });
}

std::uint64_t flags_of(fid_ep* f) {
  return EndpointFid::of(f).tx_flags();
}

ssize_t post_msg(fid_ep* f, AtomicForm form, const fi_msg_atomic* m, AtomicPieces pieces,
                 std::uint64_t flags) {
  return guarded_fast([&]() -> ssize_t {
    const auto op = atomic_of(*m, form, pieces, flags | Endpoint::of(f).tx_msg_flags());
    return op ? Endpoint::of(f).post_atomic(*op) : -FI_EINVAL;
  });
}

ssize_t atomic_write(fid_ep* f, const void* buffer, std::size_t count, void*, fi_addr_t peer,
                     std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                     void* context) {
  const fi_ioc operand = elements(buffer, count);
  return post(f, {AtomicForm::kPlain, number_of(type), number_of(op)}, {.operand = {&operand, 1}},
              {peer, address, key}, context, flags_of(f));
}

ssize_t atomic_writev(fid_ep* f, const fi_ioc* iov, void**, std::size_t count, fi_addr_t peer,
                      std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                      void* context) {
  return post(f, {AtomicForm::kPlain, number_of(type), number_of(op)}, {.operand = {iov, count}},
              {peer, address, key}, context, flags_of(f));
}

ssize_t atomic_writemsg(fid_ep* f, const fi_msg_atomic* m, std::uint64_t flags) {
  return post_msg(f, AtomicForm::kPlain, m, {}, flags);
}

ssize_t atomic_inject(fid_ep* f, const void* buffer, std::size_t count, fi_addr_t peer,
                      std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op) {
  const fi_ioc operand = elements(buffer, count);
  return post(f, {AtomicForm::kPlain, number_of(type), number_of(op)}, {.operand = {&operand, 1}},
              {peer, address, key}, nullptr, FI_INJECT);
}

ssize_t atomic_readwrite(fid_ep* f, const void* buffer, std::size_t count, void*, void* result,
                         void*, fi_addr_t peer, std::uint64_t address, std::uint64_t key,
                         fi_datatype type, fi_op op, void* context) {
  const fi_ioc operand = elements(buffer, count), into = elements(result, count);
  return post(f, {AtomicForm::kFetch, number_of(type), number_of(op)},
              {.operand = {&operand, 1}, .result = {&into, 1}}, {peer, address, key}, context,
              flags_of(f));
}

ssize_t atomic_readwritev(fid_ep* f, const fi_ioc* iov, void**, std::size_t count, fi_ioc* result,
                          void**, std::size_t result_count, fi_addr_t peer, std::uint64_t address,
                          std::uint64_t key, fi_datatype type, fi_op op, void* context) {
  return post(f, {AtomicForm::kFetch, number_of(type), number_of(op)},
              {.operand = {iov, count}, .result = {result, result_count}}, {peer, address, key},
              context, flags_of(f));
}

ssize_t atomic_readwritemsg(fid_ep* f, const fi_msg_atomic* m, fi_ioc* result, void**,
                            std::size_t result_count, std::uint64_t flags) {
  return post_msg(f, AtomicForm::kFetch, m, {.result = {result, result_count}}, flags);
}

ssize_t atomic_compwrite(fid_ep* f, const void* buffer, std::size_t count, void*,
                         const void* compare, void*, void* result, void*, fi_addr_t peer,
                         std::uint64_t address, std::uint64_t key, fi_datatype type, fi_op op,
                         void* context) {
  const fi_ioc operand = elements(buffer, count), with = elements(compare, count),
               into = elements(result, count);
  return post(f, {AtomicForm::kCompare, number_of(type), number_of(op)},
              {{&operand, 1}, {&with, 1}, {&into, 1}}, {peer, address, key}, context, flags_of(f));
}

ssize_t atomic_compwritev(fid_ep* f, const fi_ioc* iov, void**, std::size_t count,
                          const fi_ioc* compare, void**, std::size_t compare_count, fi_ioc* result,
                          void**, std::size_t result_count, fi_addr_t peer, std::uint64_t address,
                          std::uint64_t key, fi_datatype type, fi_op op, void* context) {
  return post(f, {AtomicForm::kCompare, number_of(type), number_of(op)},
              {{iov, count}, {compare, compare_count}, {result, result_count}},
              {peer, address, key}, context, flags_of(f));
}

ssize_t atomic_compwritemsg(fid_ep* f, const fi_msg_atomic* m, const fi_ioc* compare, void**,
                            std::size_t compare_count, fi_ioc* result, void**,
                            std::size_t result_count, std::uint64_t flags) {
  return post_msg(f, AtomicForm::kCompare, m,
                  {.compare = {compare, compare_count}, .result = {result, result_count}}, flags);
}

template <AtomicForm kForm>
int atomic_valid(fid_ep* f, fi_datatype type, fi_op op, std::size_t* count) {
  return guarded_fast([&] {
    const auto kind = find_amo(number_of(op), number_of(type), kForm);
    if (!kind) return -FI_EOPNOTSUPP;
    if (count != nullptr) *count = max_elements(*kind, kForm, Endpoint::of(f).payload_mtu());
    return 0;
  });
}

}  // namespace

fi_ops_atomic atomic_ops = {.size = sizeof(fi_ops_atomic),
                            .write = atomic_write,
                            .writev = atomic_writev,
                            .writemsg = atomic_writemsg,
                            .inject = atomic_inject,
                            .readwrite = atomic_readwrite,
                            .readwritev = atomic_readwritev,
                            .readwritemsg = atomic_readwritemsg,
                            .compwrite = atomic_compwrite,
                            .compwritev = atomic_compwritev,
                            .compwritemsg = atomic_compwritemsg,
                            .writevalid = atomic_valid<AtomicForm::kPlain>,
                            .readwritevalid = atomic_valid<AtomicForm::kFetch>,
                            .compwritevalid = atomic_valid<AtomicForm::kCompare>};

int query_atomic(const Domain& domain, int type, int op, fi_atomic_attr& out, std::uint64_t flags) {
  constexpr std::uint64_t kForms = FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC;
  if ((flags & ~(kForms | FI_TAGGED)) != 0) return -FI_EBADFLAGS;
  if ((flags & kForms) == kForms) return -FI_EINVAL;
  const auto form = (flags & FI_FETCH_ATOMIC) != 0     ? AtomicForm::kFetch
                    : (flags & FI_COMPARE_ATOMIC) != 0 ? AtomicForm::kCompare
                                                       : AtomicForm::kPlain;
  const auto kind = find_amo(op, type, form);
  if (!kind) return -FI_EOPNOTSUPP;
  out.size = kind->element;
  out.count = max_elements(*kind, form, domain.payload_mtu());
  return 0;
}

}  // namespace uet::provider
