/// Replies of the control socket for people.
#pragma once

#include <string>

#include "apps/fabric/report.h"

namespace uet::fabric {

/// A table for lists of objects with plain values, a line for each member of a single object, indented JSON for everything else.
std::string to_text(const Json& reply);

}  // namespace uet::fabric
