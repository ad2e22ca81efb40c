/// The file, or the profile, that FI_UET_CONFIG names.

#include "fep/settings/profiles.h"
#include "fep/settings/settings.h"
#include "lib/toml/toml_file.h"

namespace uet::fep {

using Entries = std::vector<std::pair<std::string, std::string>>;

namespace {

base::Result<Entries, std::string> read_profile(std::string_view name) {
  std::string known;
  for (const Profile& profile : profiles()) {
    known += (known.empty() ? "" : ", ") + std::string(profile.name);
    if (profile.name != name) continue;
    Entries entries;
    for (const Profile::Entry& entry : profile.entries) entries.emplace_back(entry.key, entry.text);
    return entries;
  }
  return "FI_UET_CONFIG: there is no profile \"" + std::string(name) + "\"; profiles are " + known;
}

}  // namespace

base::Result<Entries, std::string> read_settings_file(const std::string& path) {
  constexpr std::string_view kProfile = "profile:";
  if (path.starts_with(kProfile)) return read_profile(path.substr(kProfile.size()));
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
