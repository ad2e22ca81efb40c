/// The names that peers know messages of ours by.
#pragma once

#include <cstdint>
#include <vector>

namespace uet::ses {

/// All message ids of a FEP, 1 to 0xffff, and what each names. They are given in turn, so that one is used again as late as possible:
/// copies of what was said of its last message may be on their way. [SES 4.1]
class MessageIds {
 public:
  MessageIds() : owners_(kIds) {}

  /// One that names nothing, for what has the number `owner`, 1 to 0xffff. One must be free.
  std::uint16_t take(std::uint32_t owner) {
    do ++last_;
    while (last_ == 0 || owners_[last_] != 0);
    owners_[last_] = static_cast<std::uint16_t>(owner);
    return last_;
  }
  /// 0: there was none.
  void give_back(std::uint16_t id) { owners_[id] = 0; }
  /// 0: none.
  std::uint32_t owner_of(std::uint16_t id) const { return owners_[id]; }

 private:
  static constexpr std::size_t kIds = 0x1'0000;

  std::vector<std::uint16_t> owners_;
  std::uint16_t last_ = 0;
};

}  // namespace uet::ses
