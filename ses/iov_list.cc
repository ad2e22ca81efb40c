#include "ses/iov_list.h"

#include <algorithm>
#include <cstring>

namespace uet::ses {
namespace {

/// By number, since a piece that means all memory begins at address 0.
std::uint8_t* place_in(const iovec& piece, std::size_t offset) {
  return reinterpret_cast<std::uint8_t*>(reinterpret_cast<std::uintptr_t>(piece.iov_base) + offset);
}

/// Calls visit(piece address, position in the range, bytes) for each part of [offset, offset + n).
template <typename Visit>
void walk(const iovec* pieces, std::uint32_t count, std::size_t offset, std::size_t n,
          Visit visit) {
  std::size_t done = 0;
  for (std::uint32_t i = 0; i < count && done < n; ++i) {
    const std::size_t length = pieces[i].iov_len;
    if (offset >= length) {
      offset -= length;
      continue;
    }
    const std::size_t part = std::min(length - offset, n - done);
    visit(place_in(pieces[i], offset), done, part);
    done += part;
    offset = 0;
  }
}

}  // namespace

bool IovList::assign_pieces(std::span<const iovec> pieces, IovPool& pool, DeviceMemory* device) {
  *this = IovList();
  if (pieces.size() > kMaxIov) return false;
  std::size_t total = 0;
  for (const iovec& piece : pieces)
    if (__builtin_add_overflow(total, piece.iov_len, &total)) return false;
  if (!pieces.empty()) {
    block_ = pool.acquire();
    if (block_ == nullptr) return false;
    std::copy(pieces.begin(), pieces.end(), block_->pieces.begin());
  }
  count_ = static_cast<std::uint32_t>(pieces.size());
  size_ = total;
  device_ = device;
  return true;
}

bool IovList::assign_part(const IovList& whole, std::size_t offset, std::size_t n, IovPool& pool) {
  std::array<iovec, kMaxIov> parts;
  std::size_t count = 0;
  walk(whole.pieces(), whole.count_, offset, n,
       [&](std::uint8_t* part, std::size_t, std::size_t bytes) {
         parts[count++] = {part, bytes};
       });
  return assign({parts.data(), count}, pool, whole.device_);
}

std::uint8_t* IovList::find(std::size_t offset, std::size_t n) const {
  for (const iovec* p = pieces(); p != pieces() + count_; ++p) {
    if (offset < p->iov_len) return n <= p->iov_len - offset ? place_in(*p, offset) : nullptr;
    offset -= p->iov_len;
  }
  return nullptr;
}

bool IovList::append_to(net::Packet& packet, std::size_t offset, std::size_t n) const {
  constexpr std::size_t kWorthBorrowing =
      1024;  // below, a copy costs less than one more vector for the port
  const std::uint8_t* const memory =
      packet.can_borrow() && n >= kWorthBorrowing && device_ == nullptr ? find(offset, n) : nullptr;
  if (memory == nullptr) return gather(offset, packet.append(n), n);
  packet.borrow(memory, n);
  fetch_ahead(offset + n, n);
  return true;
}

bool IovList::device_has(std::size_t offset, std::size_t n) const {
  bool has_all = true;
  walk(pieces(), count_, offset, n, [&](const std::uint8_t* begin, std::size_t, std::size_t part) {
    has_all = has_all && device_->has(begin, part);
  });
  return has_all;
}

bool IovList::gather_pieces(std::size_t offset, std::uint8_t* out, std::size_t n) const {
  bool is_well = true;
  walk(pieces(), count_, offset, n,
       [&](const std::uint8_t* from, std::size_t at, std::size_t part) {
         if (device_ != nullptr) [[unlikely]]
           is_well &= device_->read(from, out + at, part);
         else
           std::memcpy(out + at, from, part);
       });
  return is_well;
}

bool IovList::scatter_pieces(std::size_t offset, const std::uint8_t* in, std::size_t n) const {
  bool is_well = true;
  walk(pieces(), count_, offset, n, [&](std::uint8_t* to, std::size_t at, std::size_t part) {
    if (device_ != nullptr) [[unlikely]]
      is_well &= device_->write(to, in + at, part);
    else
      std::memcpy(to, in + at, part);
  });
  return is_well;
}

}  // namespace uet::ses
