#include "apps/fabric/mac_table.h"

#include <algorithm>
#include <utility>

namespace uet::fabric {

std::size_t MacTable::bucket_of(const net::MacAddress& mac) const {
  std::uint64_t bits = 0;
  for (const std::uint8_t b : mac) bits = bits << 8 | b;
  return static_cast<std::size_t>((bits * 0x9e3779b97f4a7c15ULL >> 32) % buckets_.size());
}

void MacTable::learn(const net::MacAddress& mac, std::uint32_t leg, sim::SimTime now) {
  Bucket& bucket = buckets_[bucket_of(mac)];
  Entry* place = nullptr;
  for (Entry& e : bucket) {
    if (e.is_used && e.mac == mac) {
      moved_ += e.leg != leg;
      e.leg = leg;
      e.seen = now;
      return;
    }
    const bool is_better =
        place == nullptr || (place->is_used && (!e.is_used || e.seen < place->seen));
    if (is_better) place = &e;
  }
  displaced_ += place->is_used;
  *place = Entry{mac, leg, now, true};
}

std::optional<std::uint32_t> MacTable::find(const net::MacAddress& mac, sim::SimTime now) const {
  for (const Entry& e : buckets_[bucket_of(mac)])
    if (e.is_used && e.mac == mac && now - e.seen <= sim::SimSpan::from(kAge)) return e.leg;
  return std::nullopt;
}

void MacTable::forget_leg(std::uint32_t leg) {
  for (Bucket& bucket : buckets_)
    for (Entry& e : bucket)
      if (e.leg == leg) e.is_used = false;
}

std::vector<MacTable::Entry> MacTable::entries() const {
  std::vector<Entry> all;
  for (const Bucket& bucket : buckets_)
    std::ranges::copy_if(bucket, std::back_inserter(all), &Entry::is_used);
  return all;
}

std::size_t MacTable::size() const {
  return entries().size();
}

}  // namespace uet::fabric
