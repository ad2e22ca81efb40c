#include "apps/dump/viewer/page.h"

#include <filesystem>
#include <fstream>
#include <span>

#include "apps/page/page.h"

namespace uet::dump {

/// Made by apps/page/embed.py.
extern const page::Pieces kViewerScript, kViewerStyle;

namespace {

constexpr std::string_view kControls = R"~(<div id="top"><b>Time</b> <span id="span"></span>
<button id="all">all</button><button id="in">closer</button><button id="out">wider</button><button id="back">earlier</button><button id="on">later</button>
<span class="note">drag in a view to look closer, double-click for all</span></div>
<div id="files"></div><div id="views"></div>
)~";

}  // namespace

std::string to_html(Story& story, const std::string& title) {
  return page::to_html(
      {.title = title,
       .style = kViewerStyle,
       .body = kControls,
       .data = story.to_json().dump(-1, ' ', false, Json::error_handler_t::replace),
       .script = kViewerScript});
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
