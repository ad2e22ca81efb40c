#include "pds/nack_limiter.h"

#include <algorithm>

#include "lib/base/fixed_pool.h"

namespace uet::pds {

namespace {
constexpr std::int64_t kOneNack = 1'000'000'000;
}

NackLimiter::NackLimiter(std::uint32_t sources, std::uint32_t per_second, std::uint32_t burst,
                         const base::HashKey& key)
    : key_(key),
      sets_(std::max<std::uint32_t>(sources / kWays, 1)),
      per_second_(per_second),
      full_(std::max<std::int64_t>(burst, 1) * kOneNack),
      buckets_(new Bucket[static_cast<std::size_t>(sets_) * kWays]) {}

bool NackLimiter::allow(base::Instant now, const net::FabricAddress& source) {
  Bucket* const set = buckets_.get() + (source.hash(key_) % sets_) * kWays;
  Bucket* bucket = set;
  for (std::uint32_t i = 0; i < kWays; ++i) {
    if (set[i].is_used && set[i].source == source) {
      bucket = &set[i];
      break;
    }
    if (!set[i].is_used || (bucket->is_used && set[i].at < bucket->at)) bucket = &set[i];
  }
  if (!bucket->is_used || bucket->source != source) {
    *bucket = Bucket{source, now, full_, true};
  } else if (now > bucket->at) {
    // A full bucket takes burst / rate; longer pauses add no more, and cannot overflow.
    const std::int64_t elapsed = std::min<std::int64_t>(
        (now - bucket->at).ns(), full_ / std::max<std::int64_t>(per_second_, 1) + 1);
    bucket->tokens = std::min(full_, bucket->tokens + elapsed * per_second_);
    bucket->at = now;
  }
  if (bucket->tokens < kOneNack) return false;
  bucket->tokens -= kOneNack;
  return true;
}

}  // namespace uet::pds
