#include "apps/drill/script_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace uet::drill {

namespace {

namespace fs = std::filesystem;

/// In the build tree next to the program, else where it was installed.
fs::path own_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& folder :
       {program / "scripts", program.parent_path() / "share" / "uet" / "drill"})
    if (fs::is_directory(folder, error)) return folder;
  return UET_DRILL_SCRIPTS;
}

std::vector<fs::path> scripts_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".drill") files.push_back(entry.path());
  return files;
}

/// "PDS-12" begins "PDS-012-opening" as well.
bool begins(const Script& script, const std::string& name) {
  return script.name.starts_with(name) ||
         std::find(script.items.begin(), script.items.end(), name) != script.items.end();
}

Script load(const fs::path& path, std::string& error) {
  std::ifstream in(path);
  if (!in) error = fmt::format("{}: cannot be opened", path.string());
  return read_script(in, path.string());
}

void add(std::vector<Script>& to, const std::string& name, std::string& error) {
  std::error_code ignored;
  if (fs::is_directory(name, ignored)) {
    const auto paths = scripts_in(name);
    if (paths.empty()) error = fmt::format("no scripts (*.drill) in {}", name);
    for (const fs::path& path : paths) to.push_back(load(path, error));
  } else if (fs::exists(name, ignored)) {
    to.push_back(load(name, error));
  } else {
    const std::size_t before = to.size();
    for (const fs::path& path : scripts_in(own_folder())) {
      Script script = load(path, error);
      if (begins(script, name)) to.push_back(std::move(script));
    }
    if (to.size() == before)
      error =
          fmt::format("'{}' is no file and begins no script in {}", name, own_folder().string());
  }
}

}  // namespace

std::vector<Script> find_scripts(const std::vector<std::string>& names, std::string& error) {
  std::vector<Script> scripts;
  for (const std::string& name : names) add(scripts, name, error);
  if (names.empty()) add(scripts, own_folder().string(), error);
  if (!error.empty()) return {};
  const auto by_name = [](const Script& a, const Script& b) { return a.name < b.name; };
  std::stable_sort(scripts.begin(), scripts.end(), by_name);
  return scripts;
}

}  // namespace uet::drill
