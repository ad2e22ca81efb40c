/// Where scripts are.
#pragma once

#include <string>
#include <vector>

#include "apps/drill/script.h"

namespace uet::drill {

/// The scripts that `names` stand for, in the order of their names: files, folders, or how the names of those that came with the
/// tool begin; all of these when there is no name. Empty, with a sentence in `error`, when one stands for nothing.
std::vector<Script> find_scripts(const std::vector<std::string>& names, std::string& error);

}  // namespace uet::drill
