/// "Do X to PSN n of PDC m": rules that single packets out as they enter the fabric.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/fabric/frame_view.h"
#include "lib/base/result.h"
#include "lib/base/units.h"
#include "lib/wire/enums.h"

namespace uet::fabric {

enum class MatchAction : std::uint8_t { kDrop, kTrim, kCorrupt, kDuplicate, kDelay, kMark };

/// What of a packet rules look at; read from the first bytes of the PDS header. Packets that TSS
/// has sealed have a type and nothing else.
struct PacketFacts {
  std::size_t from = 0, to = 0;  ///< legs; `to` is unknown for what is flooded
  bool is_uet = false;
  std::optional<wire::PdsType> type;
  std::optional<std::uint32_t> psn;
  std::optional<std::uint16_t> spdcid, dpdcid;
  std::uint16_t entropy = 0;
};
PacketFacts facts_of(std::span<const std::uint8_t> uet_packet);

/// All that is given must agree.
struct MatchRule {
  std::optional<std::size_t> from, to;
  std::optional<wire::PdsType> type;
  std::optional<std::uint32_t> psn;
  std::optional<std::uint16_t> pdc;  ///< at either end
  std::optional<std::uint16_t> entropy;
  std::uint64_t skip = 0;   ///< so many packets that agree pass first
  std::uint64_t count = 1;  ///< then so many are meant; 0: all
  MatchAction action = MatchAction::kDrop;
  base::Duration delay;

  std::uint32_t id = 0;
  std::uint64_t agreed = 0, applied = 0;
  std::string text;

  bool agrees(const PacketFacts& packet) const;
  bool is_spent() const { return count != 0 && applied >= count; }
};

class MatchRules {
 public:
  static constexpr std::size_t kMax = 64;

  /// Reads "psn=5 pdc=7 do=drop ..."; the legs' names are those of `legs`.
  static base::Result<MatchRule, std::string> parse(std::string_view text,
                                                    const std::vector<std::string>& legs);
  /// The new rule's number, or nothing when there are kMax already and none is spent.
  std::optional<std::uint32_t> add(MatchRule rule);
  /// False when there is no such rule.
  bool remove(std::uint32_t id);
  void clear() { rules_.clear(); }

  bool is_empty() const { return rules_.empty(); }
  const std::vector<MatchRule>& rules() const { return rules_; }
  /// The first rule that means this packet; it counts as applied.
  const MatchRule* find(const PacketFacts& packet);

 private:
  std::vector<MatchRule> rules_;
  std::uint32_t next_id_ = 1;
};

}  // namespace uet::fabric
