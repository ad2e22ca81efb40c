#include "apps/page/page.h"

namespace uet::page {

/// Made by embed.py.
extern const Pieces kPlotLibrary;

namespace {

/// Within a script element.
std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

/// Within a title or a heading.
std::string as_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else
      out += c;
  }
  return out;
}

void append(std::string& to, Pieces pieces) {
  for (const std::string_view piece : pieces) to += piece;
}

}  // namespace

bool can_draw() {
  return !kPlotLibrary.front().empty();
}

std::string drawing_missing(std::string_view program) {
  return "this " + std::string(program) +
         " was built without the library that draws: install the package libjs-d3, run "
         "`meson setup --reconfigure` in the build folder and build again";
}

std::string to_html(const Parts& parts) {
  const std::string title = as_text(parts.title);
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" +
                     title + "</title>\n<style>\n";
  append(page, parts.style);
  page += "</style></head><body>\n<h1>" + title + "</h1>\n";
  page += parts.body;
  page += "<script type=\"application/json\" id=\"data\">";
  page += escaped(parts.data);
  page += "</script>\n<script>\n// d3: Copyright Mike Bostock, BSD-3-Clause, https://d3js.org\n";
  append(page, kPlotLibrary);
  page += "\n</script>\n<script>\n";
  append(page, parts.script);
  page += "</script></body></html>\n";
  return page;
}

}  // namespace uet::page
