#include "apps/fabric/show.h"

#include <algorithm>
#include <vector>

namespace uet::fabric {

namespace {

std::string cell(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string table(const Json& rows) {
  std::vector<std::string> names;
  for (const Json& row : rows)
    for (const auto& [name, value] : row.items())
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  std::vector<std::vector<std::string>> lines{names};
  for (const Json& row : rows) {
    auto& line = lines.emplace_back();
    for (const std::string& name : names) line.push_back(row.contains(name) ? cell(row[name]) : "");
  }
  std::string out;
  for (const auto& line : lines) {
    for (std::size_t column = 0; column < names.size(); ++column) {
      std::size_t width = 0;
      for (const auto& other : lines) width = std::max(width, other[column].size());
      const bool is_last = column + 1 == names.size();
      out += line[column] + (is_last ? "\n" : std::string(width - line[column].size() + 2, ' '));
    }
  }
  return out;
}

/// "name  value", a line each; of an object inside: "name  part value  part value".
std::string lines(const Json& object) {
  std::size_t width = 0;
  for (const auto& [name, value] : object.items()) width = std::max(width, name.size());
  std::string out;
  for (const auto& [name, value] : object.items()) {
    out += name + std::string(width - name.size(), ' ');
    if (!value.is_object()) {
      out += "  " + cell(value) + '\n';
      continue;
    }
    for (const auto& [part, inner] : value.items()) out += "  " + part + ' ' + cell(inner);
    out += '\n';
  }
  return out;
}

}  // namespace

std::string to_text(const Json& reply) {
  if (!reply.value("ok", false)) return reply.value("error", std::string("no answer")) + '\n';
  if (reply.size() == 1) return "done\n";
  const Json& first = std::next(reply.begin()).value();
  const bool is_table = reply.size() == 2 && first.is_array() &&
                        std::ranges::all_of(first, [](const Json& row) { return row.is_object(); });
  if (is_table) return table(first);
  return reply.size() == 2 && first.is_object() ? lines(first) : reply.dump(2) + '\n';
}

}  // namespace uet::fabric
