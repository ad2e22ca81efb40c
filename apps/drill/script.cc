#include "apps/drill/script.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <istream>
#include <sstream>

#include "apps/drill/values.h"
#include "lib/base/quantity.h"

namespace uet::drill {

namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string w; in >> w;) words.push_back(w);
  return words;
}

/// Without comment and surrounding space.
std::string trimmed(const std::string& line) {
  const std::string text = line.substr(0, line.find('#'));
  const std::size_t from = text.find_first_not_of(" \t\r");
  if (from == std::string::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r") + 1 - from);
}

void append(std::string& to, const std::string& text) {
  if (!to.empty()) to += ' ';
  to += text;
}

/// "PDS-042-original-syn" is about PDS-42.
std::string item_in(const std::string& name) {
  const std::size_t dash = name.find('-');
  if (dash == 0 || dash == std::string::npos) return {};
  std::size_t from = dash + 1, to = from;
  for (const char c : name.substr(0, dash))
    if (std::isupper(static_cast<unsigned char>(c)) == 0) return {};
  while (to < name.size() && std::isdigit(static_cast<unsigned char>(name[to])) != 0) ++to;
  while (from + 1 < to && name[from] == '0') ++from;
  return to == from ? "" : name.substr(0, dash + 1) + name.substr(from, to - from);
}

/// True when the line belongs to the head.
bool read_head(Script& script, const std::vector<std::string>& words, const std::string& text) {
  const std::string& what = words[0];
  const std::string rest = trimmed(text.substr(what.size()));
  if (what == "live") {
    script.is_live = true;
  } else if (what == "reference") {
    script.is_reference = true;
  } else if (what == "contact") {
    script.is_contact = true;
  } else if (what == "title") {
    append(script.title, rest);
  } else if (what == "says") {
    append(script.says, rest);
  } else if (what == "item") {
    script.items.insert(script.items.end(), words.begin() + 1, words.end());
  } else if (what == "needs") {
    script.needs.insert(script.needs.end(), words.begin() + 1, words.end());
  } else if (what == "patience") {
    const auto time = base::parse_duration(rest);
    if (!time) script.wrong = fmt::format("in its head, '{}': patience needs a time, as 5s", text);
    script.patience = time.value_or(base::Duration{});
  } else {
    return false;
  }
  return true;
}

}  // namespace

Script read_script(std::istream& in, const std::string& path) {
  Script script;
  script.name = std::filesystem::path(path).stem().string();
  std::string line;
  bool in_head = true;
  for (unsigned at = 1; std::getline(in, line); ++at) {
    const std::string text = trimmed(line);
    auto words = words_of(text);
    if (words.empty()) continue;
    if (in_head && (words[0] == "set" || words[0] == "layer")) {
      script.settings.push_back({at, text, std::move(words)});
      continue;
    }
    in_head = in_head && read_head(script, words, text);
    if (!in_head) script.steps.push_back({at, text, std::move(words)});
  }
  if (script.items.empty()) {
    const std::string item = item_in(script.name);
    if (!item.empty()) script.items.push_back(item);
  }
  return script;
}

}  // namespace uet::drill
