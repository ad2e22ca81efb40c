/// What an application asks for, checked against what there is. [FI 3.1 to 3.4]
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <optional>
#include <string>

#include "fep/settings/settings.h"
#include "provider/offer.h"

namespace uet::provider {

/// The field of some hints that cannot be had; null: all can.
using Unmet = const char*;

/// What stands against answering these hints with `offer`. `domain_name` is the only one there is.
Unmet unmet_of(const fi_info& hints, std::uint32_t version, const fep::Settings& settings,
               const std::string& domain_name, const Offer& offer);

/// The capabilities of the answer: exactly those asked for, with the directions they imply.
std::uint64_t answer_caps(std::uint64_t asked, const Offer& offer);
/// Which of them belong to the transmit and to the receive side.
std::uint64_t tx_caps(std::uint64_t caps);
std::uint64_t rx_caps(std::uint64_t caps);

/// The mr_mode of the answer; `asked` is empty without hints.
int answer_mr_mode(std::optional<int> asked, std::uint32_t version, std::uint64_t caps,
                   bool report_endpoint);
/// Bytes of a key under it: user keys have 48 bits.
std::size_t mr_key_size(int mr_mode);

}  // namespace uet::provider
