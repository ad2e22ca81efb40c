/// The only file that knows TOML.

#include <cstdio>
#include <memory>

#include "fep/settings.h"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace uet::fep {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

/// The text that the same value has in an environment variable; nothing for tables and dates.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* s = node.as_string()) return s->get();
  if (const auto* i = node.as_integer()) return std::to_string(i->get());
  if (const auto* b = node.as_boolean()) return b->get() ? "1" : "0";
  const auto* array = node.as_array();
  if (array == nullptr) return std::nullopt;
  std::string joined;
  for (const toml::node& element : *array) {
    const auto text = element.is_array() ? std::nullopt : text_of(element);
    if (!text) return std::nullopt;
    if (!joined.empty()) joined += '|';
    joined += *text;
  }
  return joined;
}

/// The whole file, or nothing when it cannot be read. C streams, because a C++ stream throws on a
/// directory.
std::optional<std::string> content_of(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             std::fclose);
  if (!file) return std::nullopt;
  std::string content;
  char block[4096];
  while (const std::size_t n = std::fread(block, 1, sizeof block, file.get()))
    content.append(block, n);
  if (std::ferror(file.get()) != 0) return std::nullopt;
  return content;
}

}  // namespace

base::Result<Entries, std::string> read_settings_file(const std::string& path) {
  const auto content = content_of(path);
  if (!content)
    return "FI_UET_CONFIG: cannot read \"" + path + "\"; name a TOML file that this user can read";

  const toml::parse_result parsed = toml::parse(*content);
  if (!parsed) {
    return "FI_UET_CONFIG: " + path + ":" + std::to_string(parsed.error().source().begin.line) +
           ": " + std::string(parsed.error().description());
  }
  Entries entries;
  for (const auto& [key, node] : parsed.table()) {
    const auto text = text_of(node);
    if (!text) {
      return "FI_UET_CONFIG: " + path + ": \"" + std::string(key.str()) +
             "\" must be a text, a whole number, true, false or a list of these";
    }
    entries.emplace_back(std::string(key.str()), *text);
  }
  return entries;
}

}  // namespace uet::fep
