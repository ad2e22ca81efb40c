/// What packet delivery calls a message of ours by.
#pragma once

#include "pds/pds.h"

namespace uet::ses {

/// A pds::MessageToken: which half of SES, which object, which attempt.
enum class TokenKind : std::uint64_t { kOperation = 1, kReadReturn = 2, kDelivery = 3 };
constexpr pds::MessageToken make_token(TokenKind kind, std::uint32_t index, std::uint32_t attempt) {
  return static_cast<std::uint64_t>(kind) << 62 | std::uint64_t{attempt & 0x3fff'ffff} << 32 |
         index;
}
constexpr TokenKind kind_of(pds::MessageToken token) {
  return static_cast<TokenKind>(token >> 62);
}
constexpr std::uint32_t index_of(pds::MessageToken token) {
  return static_cast<std::uint32_t>(token);
}

}  // namespace uet::ses
