/// Node and service texts to endpoint addresses. [FI 3.1]
#pragma once

#include <optional>
#include <string>

#include "fep/settings/settings.h"
#include "provider/address.h"

namespace uet::provider {

/// Numeric addresses directly, names through the system's resolver unless `numeric_only`. The
/// host's own loopback address (127.0.0.1, ::1, localhost) means `own`.
std::optional<net::FabricAddress> resolve_node(const char* node, net::FabricAddress own,
                                               bool numeric_only);

/// The address of the endpoint that a peer with the same settings has opened for `service`; a null
/// service leaves the RI open ("any").
std::optional<ses::Address> resolve(const char* node, const char* service,
                                    const fep::Settings& settings, net::FabricAddress own,
                                    bool numeric_only = false);

/// `text` with the number at its end raised by `n` ("node7" and 2: "node9"); the width of leading
/// zeros is kept.
std::string counted_up(const std::string& text, std::size_t n);

}  // namespace uet::provider
