/// The parameters of packet delivery by the names of the specification, where it has them, with their units and ranges.
/// [PDS 2]
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "pds/pds_config.h"

namespace uet::pds {

struct Parameter {
  enum class Unit : std::uint8_t { kCount, kFlag, kBytes, kPackets, kTime };

  std::string_view name;  ///< as in the specification, or in that style
  Unit unit{};
  std::int64_t min = 0, max = 0;  ///< times in nanoseconds
  std::int64_t step = 1;          ///< values are multiples of this
  std::string_view help;          ///< for the manual page
  std::int64_t (*get)(const PdsConfig&) = nullptr;
  void (*set)(PdsConfig&, std::int64_t) = nullptr;
};

std::span<const Parameter> parameters();
/// As users write it: times in the largest unit of which they are whole numbers.
std::string value_text(Parameter::Unit unit, std::int64_t value);
/// Null when there is none of this name.
const Parameter* find_parameter(std::string_view name);

/// Empty, or why the value is refused; then nothing has changed.
std::string set_parameter(PdsConfig& config, const Parameter& parameter, std::int64_t value);
/// "Name=value,Name=value": times with their unit (ns, us, ms, s). Empty, or what is wrong with the
/// first entry that is; those before it are in force then.
std::string set_parameters(PdsConfig& config, std::string_view list);
/// Empty when every value is in its range and they fit together.
std::string check_parameters(const PdsConfig& config);

}  // namespace uet::pds
