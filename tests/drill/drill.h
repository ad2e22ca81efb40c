/// Packet scripts: timed packets in by field name, calls of the endpoint's user, packets expected
/// out, on virtual time.
///
/// One line, one step. `#` begins a comment. Steps:
///
///     set KEY VALUE                    before the first step: a setting of the endpoint (see
///     kSettings in drill.cc) write BYTES | send BYTES | read BYTES    the user posts an operation
///     to the peer; numbered from 1 receive BYTES                    the user posts a receive;
///     numbered with the operations wait TIME                        time passes: 10us, 2ms <
///     HEADER FIELD=VALUE... / HEADER ... / payload BYTES     the peer's packet arrives > HEADER
///     FIELD=VALUE... / ...    the endpoint's next packet must be this one; fields not named may be
///     anything > nothing                        the endpoint has sent nothing that was not
///     expected done NUMBER [code=VALUE]         that operation has completed (code 1 is OK) open
///     NUMBER                      it has not count EVENT VALUE                how often an event
///     of lib/base/trace.h has happened drops REASON VALUE               how many packets were
///     dropped for that reason gauge NAME VALUE                 a gauge of the packet delivery
///     sublayer dscp VALUE, ecn VALUE            of the packets that arrive from now on skip
///     forgets what the endpoint has sent
///
/// A value is a number, `$NAME`, `$NAME+N`, `$NAME-N`; on the `>` side also `?NAME`, which
/// remembers what is found.
#pragma once

#include <iosfwd>
#include <string>

namespace uet::drill {

/// Runs one script. Empty when it passes; else the line and what happened instead.
std::string run_script(std::istream& script);

}  // namespace uet::drill
