/// What a PSN is to the receiving half of a PDC. [PDS 7.5, 9.2]
#pragma once

#include "pds/pdc.h"

namespace uet::pds {

enum class PsnClass : std::uint8_t {
  kBelowStart,
  kTooOld,
  kFinished,  ///< at or below CACK
  kKnown,     ///< received above CACK
  kNew,
  kBeyond,  ///< outside the window that was granted
};

PsnClass classify(const Pdc& pdc, Psn psn);

}  // namespace uet::pds
