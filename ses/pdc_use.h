/// What each PDC has taken of the pools that its source shares among all its PDCs: one of them gets no more than leaves the others of
/// the same source some.
#pragma once

#include "lib/base/zeroed_array.h"
#include "pds/pds.h"

namespace uet::ses {

class PdcUse {
 public:
  /// The low half of a reference is the PDCID. What a PDC held is released when it goes, before its identifier comes back.
  std::uint32_t& of(pds::PdcRef pdc) { return held_[pdc.value & 0xffff]; }

  /// May this PDC take another place? `room` is how much its source could still take. A source with one PDC gets three sevenths
  /// of a pool, and each further PDC three quarters of what is left of its half.
  bool has_share(pds::PdcRef pdc, std::uint64_t room) { return of(pdc) <= kFactor * room; }

 private:
  static constexpr std::uint64_t kFactor = 3;
  base::ZeroedArray<std::uint32_t> held_{std::size_t{1} << 16};
};

}  // namespace uet::ses
