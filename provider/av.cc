#include "provider/av.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <type_traits>

#include "provider/address.h"
#include "provider/domain.h"
#include "provider/errors.h"
#include "provider/offer.h"
#include "provider/provider.h"
#include "provider/resolve.h"

namespace uet::provider {
namespace {

/// More than the table of peers can ever hold.
constexpr std::size_t kLargestAv = std::size_t{1} << 20;

int av_insert(fid_av* f, const void* addresses, std::size_t count, fi_addr_t* out,
              std::uint64_t flags, void* context) {
  return guarded([&] { return Av::of(f).insert(addresses, count, out, flags, context); });
}

int av_insertsvc(fid_av* f, const char* node, const char* service, fi_addr_t* out,
                 std::uint64_t flags, void* context) {
  return guarded([&] { return Av::of(f).insert_service(node, service, out, flags, context); });
}

int av_insertsym(fid_av* f, const char* node, std::size_t nodes, const char* service,
                 std::size_t services, fi_addr_t* out, std::uint64_t flags, void* context) {
  return guarded([&] {
    return Av::of(f).insert_symmetric(node, nodes, service, services, out, flags, context);
  });
}

int av_remove(fid_av* f, fi_addr_t* addresses, std::size_t count, std::uint64_t) {
  return guarded([&] { return Av::of(f).remove(addresses, count); });
}

int av_lookup(fid_av* f, fi_addr_t address, void* out, std::size_t* length) {
  return guarded([&] { return Av::of(f).lookup(address, out, length); });
}

const char* av_straddr(fid_av*, const void* address, char* buffer, std::size_t* length) {
  const int ret = guarded([&] {
    const auto parsed = unpack_address({static_cast<const std::uint8_t*>(address), kAddressBytes});
    const std::string text = parsed ? format_address(*parsed) : "uet://?";
    if (*length > 0) {
      const std::size_t n = std::min(text.size(), *length - 1);
      std::memcpy(buffer, text.data(), n);
      buffer[n] = '\0';
    }
    *length = text.size() + 1;
    return 0;
  });
  return ret == 0 ? buffer : nullptr;
}

int av_set_user_id(fid_av* f, fi_addr_t address, fi_addr_t user_id, std::uint64_t flags) {
  return guarded([&] { return Av::of(f).set_user_id(address, user_id, flags); });
}

int av_set(fid_av*, fi_av_set_attr*, fid_av_set**, void*) {
  return -FI_ENOSYS;
}

int av_bind(fid* f, fid* other, std::uint64_t) {
  return guarded([&] { return Av::of(f).bind(other); });
}

int av_close(fid* f) {
  return guarded([&] { return Av::of(f).close(); });
}

fi_ops av_fid_ops = make_ops({.close = av_close, .bind = av_bind});

/// The table of older headers ends before fi_av_set_user_id, which newer programs may call. [FI 2.5.3]
template <typename Table>
struct WithUserIds : Table {
  int (*insert_auth_key)(fid_av*, const void*, std::size_t, fi_addr_t*, std::uint64_t) = nullptr;
  int (*lookup_auth_key)(fid_av*, fi_addr_t, void*, std::size_t*) = nullptr;
  int (*set_user_id)(fid_av*, fi_addr_t, fi_addr_t, std::uint64_t) = nullptr;
};
template <typename Table>
concept HasUserIds = requires(Table t) {
  t.set_user_id;
};
using AvOps = std::conditional_t<HasUserIds<fi_ops_av>, fi_ops_av, WithUserIds<fi_ops_av>>;

AvOps make_av_ops() {
  AvOps out{};
  out.size = sizeof out;
  out.insert = av_insert;
  out.insertsvc = av_insertsvc;
  out.insertsym = av_insertsym;
  out.remove = av_remove;
  out.lookup = av_lookup;
  out.straddr = av_straddr;
  out.av_set = av_set;
  out.set_user_id = av_set_user_id;
  return out;
}
AvOps av_ops = make_av_ops();

}  // namespace

Av::Av(Domain& domain, const fi_av_attr& attr, void* context)
    : domain_(domain),
      worker_(domain.worker()),
      asynchronous_((attr.flags & FI_EVENT) != 0),
      has_user_ids_((attr.flags & kAvUserId) != 0),
      domain_use_(domain.users()) {
  fid = {.fclass = FI_CLASS_AV, .context = context, .ops = &av_fid_ops};
  ops = &av_ops;
  entries_.reserve(std::min<std::size_t>(attr.count, 4096));
}

int Av::open(Domain& domain, const fi_av_attr& attr, fid_av** out, void* context) {
  if (attr.name != nullptr || (attr.flags & FI_READ) != 0) return -FI_ENOSYS;
  if (attr.type > FI_AV_TABLE || attr.rx_ctx_bits < 0 || attr.rx_ctx_bits > 12) return -FI_EINVAL;
  if (attr.rx_ctx_bits != 0) return -FI_ENOSYS;
  *out = new Av(domain, attr, context);
  return 0;
}

int Av::close() {
  if (users_.any()) return -FI_EBUSY;
  {
    const std::lock_guard guard(worker_.lock());
    for (const Entry& e : entries_) {
      if (e.peer != 0) worker_.ses().remove_peer(e.peer);
    }
  }
  if (eq_ != nullptr) eq_->users().remove();
  delete this;
  return 0;
}

int Av::bind(fid_t other) {
  if (other->fclass != FI_CLASS_EQ || !asynchronous_) return -FI_EINVAL;
  if (eq_ != nullptr) return -FI_EBUSY;
  eq_ = &Eq::of(other);
  eq_->users().add();
  return 0;
}

fi_addr_t Av::find(const ses::Source& source) const {
  const auto at = by_source_.find(SourceKey{source.fabric_address, source.initiator_id});
  return at == by_source_.end() ? FI_ADDR_NOTAVAIL : entries_[at->second].user_id;
}

/// Memory first: what comes after it cannot fail half-way.
int Av::insert_one(const ses::Address& address, fi_addr_t& out, std::optional<fi_addr_t> user_id) {
  // No packet of ours could ever get there: said at once, not when FI_UET_PEER_TIMEOUT is over.
  const net::FabricAddress own = domain_.fabric_address();
  if (address.fabric_address.is_v4() != own.is_v4()) {
    tell_user(address.fabric_address.to_string() + " is not of the family of our own address " +
              own.to_string() + ": set FI_UET_ADDR to an address of the same family as the peer's");
    return -FI_EADDRNOTAVAIL;
  }
  const std::lock_guard guard(worker_.lock());
  if (free_.empty()) {
    if (entries_.size() >= kLargestAv) return -FI_ENOMEM;
    entries_.reserve(std::bit_ceil(entries_.size() + 1));
    free_.reserve(entries_.capacity());  // so that removing never needs memory
    entries_.emplace_back();
    free_.push_back(entries_.size() - 1);
  }
  const std::size_t index = free_.front();  // the lowest [FI fi_av_insert]
  const SourceKey key{address.fabric_address, address.initiator_id};
  std::size_t first = index;
  if (address.has_initiator_id) first = by_source_.try_emplace(key, index).first->second;
  const auto peer = worker_.ses().add_peer(address);
  if (!peer) {
    if (address.has_initiator_id && first == index) by_source_.erase(key);
    return fi_error_of(peer.error());
  }
  std::ranges::pop_heap(free_, std::ranges::greater());
  free_.pop_back();
  const fi_addr_t first_id = has_user_ids_ ? FI_ADDR_NOTAVAIL : index;
  entries_[index] = Entry{*peer, address, user_id.value_or(first_id)};
  join_ring(index, first);
  out = index;
  return 0;
}

void Av::join_ring(std::size_t index, std::size_t first) {
  Entry& entry = entries_[index];
  const std::size_t last = first == index ? index : entries_[first].previous_twin;
  entry.previous_twin = last;
  entry.next_twin = first;
  entries_[last].next_twin = index;
  entries_[first].previous_twin = index;
}

int Av::insert_all(std::span<const std::optional<ses::Address>> addresses, fi_addr_t* out,
                   std::uint64_t flags, void* context) {
  if (asynchronous_ && eq_ == nullptr) return -FI_ENOEQ;
  const bool brings_ids = (flags & kAvUserId) != 0;
  if (brings_ids && (has_user_ids_ || out == nullptr)) return -FI_EINVAL;
  int* sync_errors = (flags & FI_SYNC_ERR) != 0 ? static_cast<int*>(context) : nullptr;
  int inserted = 0;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    fi_addr_t index = FI_ADDR_NOTAVAIL;
    int error = -FI_EINVAL;
    if (addresses[i])
      error = insert_one(*addresses[i], index, brings_ids ? std::optional(out[i]) : std::nullopt);
    if (out != nullptr) out[i] = error == 0 ? index : FI_ADDR_NOTAVAIL;
    if (sync_errors != nullptr) sync_errors[i] = -error;
    if (error == 0) ++inserted;
    if (error != 0 && asynchronous_) {
      eq_->report_error(fi_eq_err_entry{.fid = &fid, .context = context, .data = i, .err = -error});
    }
  }
  if (!asynchronous_) return inserted;
  eq_->report(
      FI_AV_COMPLETE,
      fi_eq_entry{.fid = &fid, .context = context, .data = static_cast<std::uint64_t>(inserted)});
  return 0;
}

int Av::insert(const void* addresses, std::size_t count, fi_addr_t* out, std::uint64_t flags,
               void* context) {
  if (addresses == nullptr && count > 0) return -FI_EINVAL;
  std::vector<std::optional<ses::Address>> parsed;
  parsed.reserve(count);
  const auto* at = static_cast<const std::uint8_t*>(addresses);
  for (std::size_t i = 0; i < count; ++i, at += kAddressBytes) {
    const std::span<const std::uint8_t> bytes(at, kAddressBytes);
    parsed.push_back(is_complete(bytes) ? unpack_address(bytes) : std::nullopt);
  }
  return insert_all(parsed, out, flags, context);
}

int Av::insert_service(const char* node, const char* service, fi_addr_t* out, std::uint64_t flags,
                       void* context) {
  if (node == nullptr || service == nullptr) return -FI_EINVAL;
  const std::optional<ses::Address> address =
      resolve(node, service, End::kDestination, worker_.settings(), domain_.fabric_address());
  return insert_all({&address, 1}, out, flags, context);
}

int Av::insert_symmetric(const char* node, std::size_t nodes, const char* service,
                         std::size_t services, fi_addr_t* out, std::uint64_t flags, void* context) {
  if (node == nullptr || service == nullptr) return -FI_EINVAL;
  if (nodes != 0 && services > kLargestAv / nodes) return -FI_EINVAL;
  std::vector<std::optional<ses::Address>> addresses;
  for (std::size_t n = 0; n < nodes; ++n) {
    for (std::size_t s = 0; s < services; ++s) {
      addresses.push_back(resolve(counted_up(node, n).c_str(), counted_up(service, s).c_str(),
                                  End::kDestination, worker_.settings(), domain_.fabric_address()));
    }
  }
  return insert_all(addresses, out, flags, context);
}

int Av::set_user_id(fi_addr_t address, fi_addr_t user_id, std::uint64_t flags) {
  if (flags != 0 || !has_user_ids_) return -FI_EINVAL;
  const std::lock_guard guard(worker_.lock());
  if (peer(address) == 0) return -FI_EINVAL;
  entries_[address].user_id = user_id;
  return 0;
}

int Av::remove(const fi_addr_t* addresses, std::size_t count) {
  const std::lock_guard guard(worker_.lock());
  int result = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (peer(addresses[i]) == 0) {
      result = -FI_EINVAL;
    } else {
      remove_one(addresses[i]);
    }
  }
  return result;
}

void Av::remove_one(fi_addr_t index) {
  Entry& entry = entries_[index];
  worker_.ses().remove_peer(entry.peer);
  entry.peer = 0;
  free_.push_back(index);
  std::ranges::push_heap(free_, std::ranges::greater());
  if (!entry.address.has_initiator_id) return;
  const SourceKey key{entry.address.fabric_address, entry.address.initiator_id};
  entries_[entry.previous_twin].next_twin = entry.next_twin;
  entries_[entry.next_twin].previous_twin = entry.previous_twin;
  const auto known = by_source_.find(key);
  if (known->second != index) return;
  if (entry.next_twin == index)
    by_source_.erase(known);
  else
    known->second = entry.next_twin;  // it answers for the sender from now on
}

int Av::lookup(fi_addr_t address, void* out, std::size_t* length) {
  const std::lock_guard guard(worker_.lock());
  if (peer(address) == 0) return -FI_EINVAL;
  const AddressBytes bytes = pack_address(entries_[address].address);
  std::memcpy(out, bytes.data(), std::min(*length, bytes.size()));
  *length = bytes.size();
  return 0;
}

}  // namespace uet::provider
