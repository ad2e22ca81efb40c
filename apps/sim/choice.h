/// Options of a command line that take one of several words.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace uet::sim {

/// An option whose value is one of the words of `map`, in any case.
template <typename T>
void add_choice(CLI::App& command, const char* name, T& value, const std::map<std::string, T>& map,
                const std::string& help) {
  std::string words;
  for (const auto& [word, meaning] : map) words += (words.empty() ? "" : ", ") + word;
  const auto find = [&map, words](const std::string& text) -> const T* {
    const auto found = map.find(CLI::detail::to_lower(text));
    return found == map.end() ? nullptr : &found->second;
  };
  command
      .add_option_function<std::string>(
          name, [&value, find](const std::string& text) { value = *find(text); },
          help + ": " + words)
      ->check([find, words](const std::string& text) {
        return find(text) != nullptr ? std::string()
                                     : fmt::format("'{}' is none of {}", text, words);
      });
}

}  // namespace uet::sim
