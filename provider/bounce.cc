#include "provider/bounce.h"

#include <algorithm>
#include <cstring>

namespace uet::provider {

Bounce::Bounce(DeviceCopier& copier, std::uint8_t* pool) : copier_(copier) {
  for (Reader& reader : readers_) {
    reader.bytes = pool;
    pool += kBytes;
  }
  for (std::uint8_t*& writer : writers_) {
    writer = pool;
    pool += kBytes;
  }
}

Bounce::Reader* Bounce::reader_with(std::uint64_t at, std::size_t n) {
  const auto has_it = [&](const Reader& r) {
    return at >= r.begin && at < r.end && n <= r.end - at;
  };
  const auto found = std::ranges::find_if(readers_, has_it);
  return found == readers_.end() ? nullptr : &*found;
}

/// The one that goes on at `at`, or the one that was idle longest.
Bounce::Reader& Bounce::reader_for(std::uint64_t at) {
  const auto next = std::ranges::find(readers_, at, &Reader::next);
  if (next != readers_.end() && at != 0) return *next;
  Reader& idle = *std::ranges::min_element(readers_, {}, &Reader::used);
  idle.next = 0;
  return idle;
}

bool Bounce::read(const Piece& piece, std::uint8_t* out) {
  if (is_dirty_ && !submit()) return false;  // the copy below comes after it
  Reader* reader = piece.is_steady ? reader_with(piece.at, piece.n) : nullptr;
  if (reader == nullptr) {
    reader = &reader_for(piece.at);
    const bool goes_on = piece.is_steady && reader->next == piece.at;
    const std::size_t n = goes_on ? std::min(kBytes, piece.room) : piece.n;
    reader->begin = reader->end = 0;
    if (!copier_.start_from_device(reader->bytes, piece.at, n) || !copier_.finish()) return false;
    writers_used_ = gathered_ = 0;
    is_dirty_ = false;
    reader->begin = piece.at;
    reader->end = piece.is_steady ? piece.at + n : piece.at;
  }
  std::memcpy(out, reader->bytes + (piece.at - reader->begin), piece.n);
  reader->next = piece.is_steady ? piece.at + piece.n : 0;
  reader->used = ++clock_;
  return true;
}

bool Bounce::write(std::uint64_t to, const std::uint8_t* in, std::size_t n) {
  forget(to, to + n);
  while (n > 0) {
    const bool goes_on = gathered_ > 0 && gathered_ < kBytes && to == gathered_at_ + gathered_;
    if (!goes_on) {
      if (!submit()) return false;
      if (writers_used_ == kWriters && !drain()) return false;
      ++writers_used_;
      gathered_at_ = to;
    }
    const std::size_t part = std::min(n, kBytes - gathered_);
    std::memcpy(writers_[writers_used_ - 1] + gathered_, in, part);
    gathered_ += part;
    is_dirty_ = true;
    to += part;
    in += part;
    n -= part;
  }
  return true;
}

/// Begins the copy of what was gathered.
bool Bounce::submit() {
  if (gathered_ == 0) return true;
  const std::size_t n = gathered_;
  gathered_ = 0;
  return copier_.start_to_device(gathered_at_, writers_[writers_used_ - 1], n);
}

bool Bounce::drain() {
  if (!is_dirty_) return true;
  is_dirty_ = false;
  const bool submitted = submit();
  writers_used_ = 0;
  return copier_.finish() && submitted;
}

void Bounce::forget(std::uint64_t begin, std::uint64_t end) {
  for (Reader& r : readers_)
    if (r.begin < end && begin < r.end) r.begin = r.end = 0;
}

}  // namespace uet::provider
