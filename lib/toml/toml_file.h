/// TOML as lists of texts with line numbers: the settings of an endpoint, the scenario of a
/// switch. What a key means and which values it takes is its reader's business.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace uet::toml_file {

struct Entry {
  std::string key;
  std::string text;  ///< numbers and booleans as an environment variable would give them (1 and 0);
                     ///< the elements of a list joined by '|'
  unsigned line = 0;
};

/// What stands before the first heading (`name` empty), under one [name], or under one [[name]].
struct Section {
  std::string name;
  bool is_repeated = false;  ///< [[name]]
  unsigned line = 0;
  std::vector<Entry> entries;  ///< in the order of the file
};

/// All sections in the order of the file; the first one is the one without a name. Fails with
/// "path:line: what is wrong" for what is no TOML, for tables inside tables and for dates.
base::Result<std::vector<Section>, std::string> parse(std::string_view content,
                                                      const std::string& path);
/// The same of a file; "cannot read ..." when there is none.
base::Result<std::vector<Section>, std::string> read(const std::string& path);

}  // namespace uet::toml_file
