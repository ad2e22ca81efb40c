/// The attributes that fi_getinfo answers with. [FI 3.2]
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>
#include <string>

#include "fep/settings/settings.h"
#include "provider/offer.h"

namespace uet::provider {

using Info = std::unique_ptr<fi_info, void (*)(fi_info*)>;

/// Everything but addresses and NIC. `hints` were checked before, so a value that is given can be returned.
Info make_info(std::uint32_t version, const fi_info* hints, const fep::Settings& settings,
               const std::string& domain_name, const Offer& offer);

/// A copy of the kind that libfabric frees.
void* copy_bytes(const void* from, std::size_t n);

}  // namespace uet::provider
