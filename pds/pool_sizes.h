/// The sizes of all pools and tables of one endpoint, added up in one place. [design: every table
/// has a bound]
#pragma once

#include <algorithm>
#include <cstdint>

#include "pds/pds_config.h"

namespace uet::pds {

/// Largest window the 16-bit offsets and the 8-bit mpr allow. [PDS 1.2]
inline constexpr std::uint32_t kMaxWindow = 255 * 128;
/// A SYN carries the distance to Start_PSN in 12 bits. [PDS 6.1]
inline constexpr std::uint32_t kMaxSynOffset = 4095;

struct Limits {
  std::uint32_t max_pdc;
  std::uint32_t max_ccc;
  std::uint32_t window;  ///< PSNs we grant and PSNs we track as a source
  std::uint32_t tx_blocks;
  std::uint32_t tx_blocks_further;  ///< of them, beyond the first one of each PDC
  std::uint32_t rx_trackers;
  std::uint32_t tombstones;  ///< a place for every PDC that is open too
  std::uint32_t openings;    ///< of unproven PDCs that made place for others

  explicit constexpr Limits(const PdsConfig& c)
      : max_pdc(std::clamp<std::uint32_t>(c.max_pdc, 2, 65535)),
        max_ccc(c.max_ccc != 0 ? c.max_ccc : max_pdc),
        window(std::clamp<std::uint32_t>(c.local_mp_range / 128 * 128, 128, kMaxWindow)),
        // One for every PDC to have something outstanding, and 2048 blocks for those that send much: they cost address space (1.75 KiB
        // each) until they are used.
        tx_blocks(c.max_tx_chunks != 0 ? c.max_tx_chunks
                                       : std::min<std::uint32_t>(max_pdc + 2048, 65534)),
        tx_blocks_further(tx_blocks > max_pdc ? tx_blocks - max_pdc : tx_blocks / 2),
        rx_trackers(c.max_rx_trackers != 0 ? c.max_rx_trackers : max_pdc),
        tombstones(c.max_tombstones != 0 ? c.max_tombstones + max_pdc : 0),
        openings(c.max_tombstones != 0 ? c.max_openings_remembered : 0) {}
};

}  // namespace uet::pds
