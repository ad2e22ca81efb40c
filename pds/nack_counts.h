/// How many NACKs of each code came and went: of the endpoint, and of each of its PDCs.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>

#include "lib/base/zeroed_array.h"
#include "lib/wire/enums.h"
#include "pds/pds.h"

namespace uet::pds {

/// Rows are found by PDC identifier. Memory of a row is touched with the first NACK only, so it costs nothing where all is well. A PDC
/// counts kKinds kinds; what comes beyond that is in the sums of the endpoint alone.
class NackCounts {
 public:
  static constexpr std::size_t kKinds = 7;

  NackCounts() : rows_(kIds) {}

  /// `pdc`: null for a NACK that belongs to none.
  void add(NackWay way, wire::NackCode code, PdcRef pdc) {
    ++sums_[static_cast<std::size_t>(way)][static_cast<std::uint8_t>(code)];
    if (!pdc) return;
    Row& row = rows_[pdc.value & 0xffff];
    if (row.pdc != pdc) row = Row{.kinds = {}, .pdc = pdc, .used = 0};
    const auto end = row.kinds.begin() + row.used;
    auto it = std::find_if(row.kinds.begin(), end, [&](const NackCount& k) {
      return k.code == static_cast<std::uint8_t>(code) && k.way == way;
    });
    if (it == end) {
      if (row.used == kKinds) return;
      *it = {.count = 0, .code = static_cast<std::uint8_t>(code), .way = way};
      ++row.used;
    }
    if (it->count < std::numeric_limits<std::uint16_t>::max()) ++it->count;
  }

  /// In the order in which they first came.
  std::span<const NackCount> of(PdcRef pdc) const {
    const Row& row = rows_[pdc.value & 0xffff];
    return {row.kinds.data(), row.pdc == pdc ? row.used : std::size_t{0}};
  }
  std::uint64_t sum(NackWay way, std::uint8_t code) const {
    return sums_[static_cast<std::size_t>(way)][code];
  }

 private:
  static constexpr std::size_t kIds = 65536;
  struct Row {
    std::array<NackCount, kKinds> kinds;
    PdcRef pdc;
    std::uint32_t used;
  };

  std::array<std::array<std::uint64_t, 256>, 2> sums_{};
  base::ZeroedArray<Row> rows_;
};

}  // namespace uet::pds
