/// The names that filters know: a misspelt one must not look like "no such packet".
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace uet::dump {

std::span<const std::string_view> known_layers();
/// Headers and enumerated values: PDS types, control types, NACK codes, SES forms, opcodes, return codes.
std::span<const std::string_view> known_types();

/// Empty when `name` is one of `known`, in any case; else a sentence with the nearest of them.
std::string why_unknown(std::string_view what, std::string_view name,
                        std::span<const std::string_view> known);

}  // namespace uet::dump
