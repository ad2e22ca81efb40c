/// Under which name a field is known to Wireshark.
#pragma once

#include <string>
#include <string_view>

namespace uet::gen {

/// The filter name of `field` of the header declared as `form` (its kName). Upstream Wireshark's
/// dissector for UET has names of its own for most fields; those are used, so that filters survive
/// an upgrade. The rest follow its pattern.
std::string wireshark_name(std::string_view form, std::string_view field);

}  // namespace uet::gen
