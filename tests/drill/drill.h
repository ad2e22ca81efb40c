/// Packet scripts: timed packets in by field name, calls of the endpoint's user, packets expected
/// out, on virtual time. The language is in README.md.
#pragma once

#include <iosfwd>
#include <string>

namespace uet::drill {

/// Runs one script. Empty when it passes; else the line and what happened instead.
std::string run_script(std::istream& script);

}  // namespace uet::drill
