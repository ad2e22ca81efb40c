/// What stands in the place of a command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/near_name.h"

namespace uet::apps {

/// Empty, or what is wrong with the first word of a command line where that must be a command of `app`.
inline std::string wrong_command(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  const std::string_view word = argv[1];
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  const std::vector<std::string_view> known(names.begin(), names.end());
  std::string all;
  for (const std::string_view name : known) {
    if (name == word) return {};
    all += (all.empty() ? "" : ", ") + std::string(name);
  }
  const std::string_view near = base::near_name(word, known);
  return "no command '" + std::string(word) + "'; " +
         (near.empty() ? "" : "did you mean " + std::string(near) + "? ") + "Commands: " + all;
}

}  // namespace uet::apps
