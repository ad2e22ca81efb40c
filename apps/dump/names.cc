#include "apps/dump/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "lib/base/near_name.h"
#include "lib/wire/header_type.h"

namespace uet::dump {

namespace {

/// Given by the decision tree, not by an enumeration.
constexpr std::string_view kHeaders[] = {
    "ATOMIC",    "COMPARE_AND_SWAP", "ENTROPY", "ETHERNET",   "EXPECTED_PSN", "IPV4",
    "IPV6",      "RENDEZVOUS",       "SLL",     "SLL2",       "TSS",          "UDP",
    "VLAN",      "UET_CRC",          "TSS_ICV", "TSS_CIPHER", "OPTIONS",      "EXTENSION",
    "UNDECODED", "PADDING"};

std::vector<std::string_view> collect_types() {
  std::vector<std::string_view> names(std::begin(kHeaders), std::end(kHeaders));
  for (const wire::HeaderType& type : wire::header_types())
    for (const wire::FieldInfo& info : type.fields)
      for (const wire::EnumEntry& entry : info.entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string_view> collect_layers() {
  std::vector<std::string_view> names = {"crc", "icv", "cipher", "ipext", "undecoded", "padding"};
  for (const wire::HeaderType& type : wire::header_types()) names.push_back(type.layer);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

std::span<const std::string_view> known_layers() {
  static const std::vector<std::string_view> names = collect_layers();
  return names;
}

std::span<const std::string_view> known_types() {
  static const std::vector<std::string_view> names = collect_types();
  return names;
}

std::string why_unknown(std::string_view what, std::string_view name,
                        std::span<const std::string_view> known) {
  const bool is_known = std::any_of(known.begin(), known.end(), [&](std::string_view k) {
    return base::edit_distance(k, name) == 0;
  });
  if (name.empty() || is_known) return {};
  if (const std::string_view near = base::near_name(name, known); !near.empty())
    return fmt::format("no {} is called '{}'; did you mean {}?", what, name, near);
  return fmt::format("no {} is called '{}'; known are: {}", what, name, fmt::join(known, ", "));
}

}  // namespace uet::dump
