#include "tss/source_table.h"

#include <algorithm>
#include <bit>

namespace uet::tss {

SourceTable::SourceTable(std::uint32_t capacity, std::uint32_t window_bits, bool has_one_ssi_each,
                         const base::HashKey& hash_key)
    : hash_key_(hash_key),
      capacity_(capacity),
      words_(window_bits / 64),
      has_one_ssi_each_(has_one_ssi_each),
      buckets_(std::bit_ceil(std::size_t{capacity} * 2), kNone),
      windows_(std::max<std::size_t>(std::size_t{capacity} * 2 * words_, 1)) {
  sources_.reserve(capacity);
  free_.reserve(capacity);
}

Source* SourceTable::find(const net::FabricAddress& address, std::uint32_t ssi) {
  const std::size_t mask = buckets_.size() - 1;
  for (std::size_t at = first_bucket(address, ssi); buckets_[at] != kNone; at = (at + 1) & mask) {
    Source& source = sources_[buckets_[at] - 1];
    if (source.ssi == ssi && source.address == address) return &source;
  }
  return nullptr;
}

Source* SourceTable::find_member(const net::FabricAddress& address, std::uint64_t members_version) {
  const std::size_t mask = buckets_.size() - 1;
  for (std::size_t at = first_bucket(address, 0); buckets_[at] != kNone; at = (at + 1) & mask) {
    Source& source = sources_[buckets_[at] - 1];
    if (source.address == address && source.members_version == members_version) return &source;
  }
  return nullptr;
}

Source* SourceTable::insert(const net::FabricAddress& address, std::uint32_t ssi) {
  std::uint32_t place;
  if (free_.empty()) {
    place = static_cast<std::uint32_t>(sources_.size());
    sources_.emplace_back();
  } else {
    place = free_.back();
    free_.pop_back();
    sources_[place] = Source{};
  }
  Source& source = sources_[place];
  source.address = address;
  source.ssi = ssi;
  index(place);
  return &source;
}

void SourceTable::index(std::uint32_t place) {
  const std::size_t mask = buckets_.size() - 1;
  std::size_t at = first_bucket(sources_[place].address, sources_[place].ssi);
  while (buckets_[at] != kNone) at = (at + 1) & mask;
  buckets_[at] = place + 1;
}

void SourceTable::rebuild() {
  std::fill(buckets_.begin(), buckets_.end(), kNone);
  for (std::uint32_t i = 0; i < sources_.size(); ++i)
    if (!std::binary_search(free_.begin(), free_.end(), i)) index(i);  // found in rising order
}

std::size_t SourceTable::longest_chain() const {
  std::size_t longest = 0, run = 0;
  for (const std::uint32_t place : buckets_)
    longest = std::max(longest, run = place == kNone ? 0 : run + 1);
  return longest;
}

std::span<std::uint64_t> SourceTable::window(const Source& source, bool an) {
  if (words_ == 0) return {};
  return {&windows_[(std::size_t{place_of(source)} * 2 + (an ? 1 : 0)) * words_], words_};
}

void SourceTable::reset_window(const Source& source, bool an) {
  const auto bits = window(source, an);
  std::fill(bits.begin(), bits.end(), 0);
}

}  // namespace uet::tss
