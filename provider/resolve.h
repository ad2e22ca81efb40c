/// Node and service texts to endpoint addresses. [FI 3.1]
#pragma once

#include <optional>
#include <string>

#include "fep/settings/settings.h"
#include "provider/address.h"

namespace uet::provider {

/// Whose address node and service are. The host's own loopback address (127.0.0.1, ::1, and every loopback address that a name has)
/// is `own` of a source; of a destination it is the address of the process that came first on this host. [decision 60]
enum class End { kSource, kDestination };

/// The address of the endpoint that a peer with the same settings has opened for `service`; a null
/// service leaves the RI open ("any"). Numeric nodes are read directly, names by the system's resolver unless `numeric_only`: the first
/// address of the family of `own`, or of the other one where a name has none. Nothing where the texts name no endpoint.
std::optional<ses::Address> resolve(const char* node, const char* service, End end,
                                    const fep::Settings& settings, net::FabricAddress own,
                                    bool numeric_only = false);

/// `text` with the number at its end raised by `n` ("node7" and 2: "node9"); the width of leading
/// zeros is kept.
std::string counted_up(const std::string& text, std::size_t n);

}  // namespace uet::provider
