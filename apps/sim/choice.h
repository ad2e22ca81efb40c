/// Options of a command line that take one of several words.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace uet::sim {

/// The words of `map`, for a help text.
template <typename T>
std::string words_of(const std::map<std::string, T>& map) {
  std::string words;
  for (const auto& [word, meaning] : map) words += (words.empty() ? "" : ", ") + word;
  return words;
}

/// For CLI::Option::transform: takes the words of `map`, in any case.
template <typename T>
CLI::Validator one_of(const std::map<std::string, T>& map) {
  const auto complaint = [&map](std::string& text) {
    const std::string word = CLI::detail::to_lower(text);
    if (!map.contains(word)) return fmt::format("'{}' is none of {}", text, words_of(map));
    text = word;
    return std::string();
  };
  return {complaint, ""};
}

}  // namespace uet::sim
