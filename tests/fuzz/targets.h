/// What the fuzzers call, and what the corpus test calls with every committed input. Each stops the
/// process when an invariant breaks; returning is success.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/wire/link_type.h"

namespace uet::fuzz {

using Bytes = std::span<const std::uint8_t>;

/// The whole decision tree: byte 0 chooses link type and options, bytes 1-2 the wire length, the
/// rest is the frame.
void frame(Bytes input);
/// The tree from the first UET byte on.
void uet(Bytes input);
/// One declared header: byte 0 chooses which.
void headers(Bytes input);
/// A pcap or pcapng file, and every packet in it.
void capture(Bytes input);

/// A whole endpoint and an enemy: bytes choose packets, which learn the endpoint's identifiers, time, and operations.
void endpoint(Bytes input);
/// A program on two whole endpoints: bytes choose libfabric calls in any order and with odd arguments.
void calls(Bytes input);
/// Transport security: byte 0 chooses the domain; byte 1 and triples behind it say what is changed in the sealed packet whose
/// text is the rest. What was changed must be refused, and nothing else.
void sealed(Bytes input);
/// A key file.
void key_file(Bytes input);

/// Walks one frame: no byte may be passed over and none given away twice. The choice picks the options, 0 the default.
void check_frame(wire::LinkType link, Bytes bytes, std::size_t wire_length, unsigned choice = 0);

}  // namespace uet::fuzz
