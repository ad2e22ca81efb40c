#include "sim/ooo_meter.h"

#include <algorithm>

#include "lib/base/serial.h"
#include "lib/wire/codec.h"
#include "lib/wire/pds_headers.h"

namespace uet::sim {

void OooMeter::on_delivered(const Frame& frame) {
  if (frame.traffic_class != TrafficClass::kData) return;
  const auto bytes = std::as_const(frame.rx.packet).bytes();
  if (bytes.size() < wire::PdsRequest::kSize) return;
  const auto type = static_cast<wire::PdsType>(bytes[0] >> 3);
  if (type != wire::PdsType::kRudReq && type != wire::PdsType::kRodReq &&
      type != wire::PdsType::kRudCcReq && type != wire::PdsType::kRodCcReq) {
    return;
  }
  const base::Psn psn(base::load_be<std::uint32_t>(bytes.data() + 4));
  const auto spdcid = base::load_be<std::uint16_t>(bytes.data() + 8);
  // A host's PDCs are unique by their identifier, whatever the peer.
  const std::uint64_t key = std::uint64_t{frame.source} << 16 | spdcid;
  const auto [at, is_new] = highest_.try_emplace(key, psn.value());
  const std::int32_t ahead = psn.distance_from(base::Psn(at->second));
  if (ahead > 0) {
    at->second = psn.value();
  } else if (!is_new) {
    maximum_ = std::max(maximum_, static_cast<std::uint64_t>(-static_cast<std::int64_t>(ahead)));
  }
}

}  // namespace uet::sim
