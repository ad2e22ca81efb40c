/// The only file that knows TOML.

#include "lib/toml/toml_file.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace uet::toml_file {
namespace {

using Sections = std::vector<Section>;

std::string text_of_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  // The shortest form that reads back as the same number.
  for (int digits = 1; digits < 17; ++digits) {
    char shorter[32];
    std::snprintf(shorter, sizeof shorter, "%.*g", digits, value);
    if (std::strtod(shorter, nullptr) == value) return shorter;
  }
  return text;
}

/// The text that the same value has in an environment variable; nothing for tables and dates.
std::optional<std::string> text_of(const toml::node& node) {
  if (const auto* s = node.as_string()) return s->get();
  if (const auto* i = node.as_integer()) return std::to_string(i->get());
  if (const auto* f = node.as_floating_point()) return text_of_number(f->get());
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

std::string at(const std::string& path, const toml::node& node) {
  return path + ":" + std::to_string(node.source().begin.line) + ": ";
}

/// Tables of the root become sections of their own; anything below them is too deep.
class Collector {
 public:
  explicit Collector(const std::string& path) : path_(path) {}

  bool add_section(const std::string& name, bool is_repeated, const toml::table& table) {
    Section section{name, is_repeated, table.source().begin.line, {}};
    for (const auto& [key, node] : table) {
      const std::string key_text(key.str());
      if (name.empty() && add_tables(key_text, node)) continue;
      if (!error_.empty()) return false;
      const auto text = text_of(node);
      if (!text) {
        error_ = at(path_, node) + "\"" + key_text +
                 "\" must be a text, a number, true, false or a list of these";
        return false;
      }
      section.entries.push_back({key_text, *text, key.source().begin.line});
    }
    std::ranges::sort(section.entries, {}, &Entry::line);
    sections_.push_back(std::move(section));
    return error_.empty();
  }

  base::Result<Sections, std::string> finish() {
    if (!error_.empty()) return error_;
    std::ranges::stable_sort(sections_, {}, [](const Section& s) {
      return s.name.empty() ? 0u : s.line;  // the one without a name is first
    });
    return std::move(sections_);
  }

 private:
  /// True when `node` was one table or a list of tables.
  bool add_tables(const std::string& name, const toml::node& node) {
    if (const auto* table = node.as_table()) return add_section(name, false, *table);
    const auto* array = node.as_array();
    if (array == nullptr || array->empty() || !array->is_homogeneous<toml::table>()) return false;
    for (const toml::node& element : *array)
      if (!add_section(name, true, *element.as_table())) return false;
    return true;
  }

  const std::string& path_;
  Sections sections_;
  std::string error_;
};

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

base::Result<Sections, std::string> parse(std::string_view content, const std::string& path) {
  const toml::parse_result parsed = toml::parse(content);
  if (!parsed)
    return path + ":" + std::to_string(parsed.error().source().begin.line) + ": " +
           std::string(parsed.error().description());
  Collector collector(path);
  collector.add_section("", false, parsed.table());
  return collector.finish();
}

base::Result<Sections, std::string> read(const std::string& path) {
  const auto content = content_of(path);
  if (!content) return "cannot read \"" + path + "\"; name a TOML file that this user can read";
  return parse(*content, path);
}

}  // namespace uet::toml_file
