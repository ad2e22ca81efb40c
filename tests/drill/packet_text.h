/// Packets as scripts write them: headers by name, fields by name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/drill/endpoint.h"

namespace uet::drill {

/// The bytes of `words`: `HEADER FIELD=VALUE... / HEADER ... / payload BYTES`. On error `why_not`
/// says why.
std::vector<std::uint8_t> build_packet(Words words, const Variables& variables,
                                       std::string& why_not);

/// Empty when `packet` is what `words` describe; else the first difference. Fields that are not
/// named may be anything; `?NAME` remembers what is found. Before the first header `to=`, `dscp=`
/// and `entropy=` may stand.
std::string match_packet(Words words, const net::TxPacket& packet, Variables& variables);

/// For messages: the outermost header with all its fields.
std::string show_packet(std::span<const std::uint8_t> bytes);

}  // namespace uet::drill
