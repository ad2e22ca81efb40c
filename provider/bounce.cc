#include "provider/bounce.h"

#include <algorithm>
#include <cstring>

namespace uet::provider {

Bounce::Bounce(DeviceCopier& copier, std::uint8_t* pool) : copier_(copier) {
  for (Reader& reader : readers_) {
    reader.bytes = pool;
    pool += kBytes;
  }
  for (Writer& writer : writers_) {
    writer.bytes = pool;
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
  if (is_dirty_ && !begin_all()) return false;  // the copy below comes after these
  Reader* reader = piece.is_steady ? reader_with(piece.at, piece.n) : nullptr;
  if (reader == nullptr) {
    reader = &reader_for(piece.at);
    const bool goes_on = piece.is_steady && reader->next == piece.at;
    const std::size_t n = goes_on ? std::min(kBytes, piece.room) : piece.n;
    reader->begin = reader->end = 0;
    if (!copier_.start_from_device(reader->bytes, piece.at, n) || !finish()) return false;
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
    Writer* const writer = writer_for(to, n);
    if (writer == nullptr) return false;
    const std::size_t part = std::min(n, kBytes - writer->n);
    std::memcpy(writer->bytes + writer->n, in, part);
    writer->n += part;
    is_dirty_ = true;
    if (writer->n == kBytes && !begin(*writer)) return false;
    to += part;
    in += part;
    n -= part;
  }
  return true;
}

/// The one that goes on at `to`, or a free one. Null when the device refused a copy. Of bytes that are written twice the later ones
/// count, so what was gathered for the same place leaves first.
Bounce::Writer* Bounce::writer_for(std::uint64_t to, std::size_t n) {
  const auto overlaps = [=](const Writer& w) {
    return w.gathers() && w.at < to + n && to < w.at + w.n;
  };
  if (std::ranges::any_of(writers_, overlaps) && !begin_all()) return nullptr;
  const auto goes_on = [=](const Writer& w) { return w.gathers() && w.at + w.n == to; };
  auto found = std::ranges::find_if(writers_, goes_on);
  if (found != writers_.end()) return &*found;
  found = std::ranges::find(writers_, 0u, &Writer::n);
  if (found == writers_.end()) {
    if (!drain()) return nullptr;
    found = writers_.begin();
  }
  found->at = to;
  return &*found;
}

bool Bounce::begin(Writer& writer) {
  writer.is_under_way = true;
  return copier_.start_to_device(writer.at, writer.bytes, writer.n);
}

bool Bounce::begin_all() {
  bool is_well = true;
  for (Writer& writer : writers_)
    if (writer.gathers()) is_well &= begin(writer);
  return is_well;
}

bool Bounce::finish() {
  for (Writer& writer : writers_) {
    writer.n = 0;
    writer.is_under_way = false;
  }
  is_dirty_ = false;
  return copier_.finish();
}

bool Bounce::drain() {
  if (!is_dirty_) return true;
  const bool has_begun = begin_all();
  return finish() && has_begun;
}

void Bounce::forget(std::uint64_t begin, std::uint64_t end) {
  for (Reader& r : readers_)
    if (r.begin < end && begin < r.end) r.begin = r.end = 0;
}

}  // namespace uet::provider
