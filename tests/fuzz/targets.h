/// What the fuzzers call, and what the corpus test calls with every committed input. Each stops the
/// process when an invariant breaks; returning is success.
#pragma once

#include <cstdint>
#include <span>

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

}  // namespace uet::fuzz
