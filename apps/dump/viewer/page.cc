#include "apps/dump/viewer/page.h"

#include <filesystem>
#include <fstream>
#include <span>

namespace uet::dump {

/// Made by embed.py.
extern const std::span<const std::string_view> kPlotLibrary, kViewerScript, kViewerStyle;

namespace {

/// Within a script element, and within a title.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

std::string title_text(const std::string& text) {
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

void append(std::string& to, std::span<const std::string_view> pieces) {
  for (const std::string_view piece : pieces) to += piece;
}

constexpr std::string_view kControls = R"~(<div id="top"><b>Time</b> <span id="span"></span>
<button id="all">all</button><button id="in">closer</button><button id="out">wider</button><button id="back">earlier</button><button id="on">later</button>
<span class="note">drag in a view to look closer, double-click for all</span></div>
<div id="files"></div><div id="views"></div>
)~";

}  // namespace

bool has_viewer() {
  return !kPlotLibrary.front().empty();
}

std::string viewer_missing() {
  return "this uet-dump was built without the library that draws: install the package libjs-d3, "
         "run "
         "`meson setup --reconfigure` in the build folder and build again";
}

std::string to_html(Story& story, const std::string& title) {
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" +
                     title_text(title) + "</title>\n<style>\n";
  append(page, kViewerStyle);
  page += "</style></head><body>\n<h1>" + title_text(title) + "</h1>\n";
  page += kControls;
  page += "<script type=\"application/json\" id=\"data\">";
  page += escaped(story.to_json().dump(-1, ' ', false, Json::error_handler_t::replace));
  page += "</script>\n<script>\n// d3: Copyright Mike Bostock, BSD-3-Clause, https://d3js.org\n";
  append(page, kPlotLibrary);
  page += "\n</script>\n<script>\n";
  append(page, kViewerScript);
  page += "</script></body></html>\n";
  return page;
}

bool is_event_log(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return in.peek() == '{';
}

bool read_event_log(const std::string& path, Story& story) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  story.begin_file(std::filesystem::path(path).filename().string(), "event log");
  for (std::string line; std::getline(in, line);) story.add_line(line);
  return true;
}

}  // namespace uet::dump
