/// The largest operations that an endpoint takes, by kind: what fi_getopt answers, and what fi_setopt may lower.
#pragma once

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace uet::provider {

class SizeLimits {
 public:
  enum Kind { kMessage, kTagged, kRma, kAtomic, kKinds };
  struct Limit {
    std::size_t whole = 0;   ///< bytes of one operation
    std::size_t inject = 0;  ///< of one whose buffer may change when the call returns
  };

  void set(Kind kind, Limit most) { now_[kind] = most_[kind] = most; }
  /// Whether the endpoint has operations of this kind.
  bool has(Kind kind) const { return most_[kind].whole != 0; }
  const Limit& of(Kind kind) const { return now_[kind]; }

  /// Null for options that are no size.
  const std::size_t* get(int option) const { return find(now_, option); }
  /// Sizes are lowered, or raised again up to what fi_getinfo said.
  int lower(int option, std::size_t bytes) {
    const std::size_t* most = find(most_, option);
    if (most == nullptr) return -FI_ENOPROTOOPT;
    if (bytes > *most) return -FI_EINVAL;
    *find(now_, option) = bytes;
    return 0;
  }

 private:
  /// FI_OPT_MAX_MSG_SIZE and what follows it, newer than our headers: the four kinds, and then what each injects. [FI 2.5.5]
  static constexpr int kFirstMax = 12, kFirstInject = kFirstMax + kKinds;
  template <typename Limits>
  static auto find(Limits& limits, int option) -> decltype(&limits[0].whole) {
    if (option < kFirstMax || option >= kFirstInject + kKinds) return nullptr;
    if (option < kFirstInject) return &limits[option - kFirstMax].whole;
    return &limits[option - kFirstInject].inject;
  }

  std::array<Limit, kKinds> most_{}, now_{};
};

}  // namespace uet::provider
