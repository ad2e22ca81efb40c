/// Packets as scripts write them: headers by name, fields by name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/drill/values.h"
#include "lib/net/port.h"

namespace uet::drill {

using Words = std::span<const std::string>;

/// A packet that the endpoint sent: from the first byte behind UDP to the last of the payload.
struct SeenPacket {
  std::vector<std::uint8_t> bytes;
  std::uint64_t to = 2;  ///< number of the host it went to; 2 is the script
  std::uint16_t entropy = 0;
  net::TosByte tos;
};

struct Difference {
  std::string field, expected, got;
};

struct Match {
  std::string error;                    ///< what is wrong with the script
  std::vector<Difference> differences;  ///< empty, without error: it is the packet
  bool is_kind = true;                  ///< the headers at least are those of the script

  bool is_exact() const { return error.empty() && differences.empty(); }
};

/// The bytes of `words`: `HEADER FIELD=VALUE... / HEADER ... / payload BYTES [fill=VALUE]`. On error `why_not`
/// says why.
std::vector<std::uint8_t> build_packet(Words words, const Variables& variables,
                                       std::string& why_not);

/// What is wrong with `words` as an expected packet, whatever packet comes: a header, field, variable or value that does not
/// exist. Empty: nothing is.
std::string check_expected(Words words, const Variables& variables);

/// Compares `packet` with what `words` describe. Fields that are not named may be anything; `?NAME` remembers what is
/// found; in an any_message that has no such field, 0. `sacked=PSN` asks what the SACK bitmap says. Before the first header `to=`, `dscp=` and `entropy=` may stand.
Match match_packet(Words words, const SeenPacket& packet, Variables& variables);

/// "psn is 7, not 8"
std::string text_of(const Match& match);

/// For messages: every header that can be told, with all its fields.
std::string show_packet(std::span<const std::uint8_t> bytes);

}  // namespace uet::drill
