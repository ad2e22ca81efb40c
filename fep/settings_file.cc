/// The file that FI_UET_CONFIG names.

#include "fep/settings.h"
#include "lib/toml/toml_file.h"

namespace uet::fep {

using Entries = std::vector<std::pair<std::string, std::string>>;

base::Result<Entries, std::string> read_settings_file(const std::string& path) {
  const auto sections = toml_file::read(path);
  if (!sections) return "FI_UET_CONFIG: " + sections.error();
  Entries entries;
  for (const toml_file::Section& section : *sections) {
    if (!section.name.empty()) {
      return "FI_UET_CONFIG: " + path + ":" + std::to_string(section.line) + ": \"" + section.name +
             "\" must be a text, a number, true, false or a list of these";
    }
    for (const toml_file::Entry& entry : section.entries)
      entries.emplace_back(entry.key, entry.text);
  }
  return entries;
}

}  // namespace uet::fep
