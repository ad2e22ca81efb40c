#include "apps/dump/viewer/page.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>

#include "apps/dump/ring.h"
#include "apps/output_path.h"
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

/// In both byte orders: pcap of microseconds and of nanoseconds, pcapng.
constexpr std::array<std::string_view, 5> kCaptureStarts = {"\xa1\xb2\xc3\xd4", "\xd4\xc3\xb2\xa1",
                                                            "\xa1\xb2\x3c\x4d", "\x4d\x3c\xb2\xa1",
                                                            "\x0a\x0d\x0d\x0a"};

bool is_capture(const std::string& path) {
  std::array<char, 4> start{};
  std::ifstream in(path, std::ios::binary);
  in.read(start.data(), start.size());
  const std::string_view read(start.data(), static_cast<std::size_t>(in.gcount()));
  return std::ranges::find(kCaptureStarts, read) != kCaptureStarts.end();
}

bool write_all(std::FILE* out, const std::string& page) {
  return std::fwrite(page.data(), 1, page.size(), out) == page.size() && std::fflush(out) == 0;
}

/// The permissions of a file that is there, else those of one that a program makes.
mode_t mode_for(const std::filesystem::file_status& status) {
  if (std::filesystem::exists(status)) return static_cast<mode_t>(status.permissions()) & 0777;
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

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

std::string why_no_place(const std::string& out, const std::vector<std::string>& inputs) {
  if (apps::is_input(out, inputs))
    return "is one of the files to read; name the page first, and then these";
  std::error_code none;
  // Of devices and pipes nothing is read here.
  if (!std::filesystem::is_regular_file(out, none)) return {};
  if (is_capture(out))
    return "is a capture, and no page; name the page first, and then what to read";
  if (is_event_log(out))
    return "is an event log, and no page; name the page first, and then what to read";
  return {};
}

bool write_page(const std::string& out, const std::string& page) {
  std::error_code none;
  const auto status = std::filesystem::status(out, none);
  const auto write_in_place = [&] {
    const File file(std::fopen(out.c_str(), "w"));
    return file != nullptr && write_all(file.get(), page);
  };
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return write_in_place();
  // The file that a link leads to, not the link.
  const std::string target =
      std::filesystem::exists(status) ? std::filesystem::canonical(out, none).string() : out;
  std::string beside = target + ".XXXXXX";
  const int descriptor = mkstemp(beside.data());
  if (descriptor < 0)
    return std::filesystem::exists(status) && (errno == EACCES || errno == EROFS) &&
           write_in_place();
  const File file(fdopen(descriptor, "w"));
  const bool is_done = file != nullptr && write_all(file.get(), page) &&
                       fchmod(descriptor, mode_for(status)) == 0 &&
                       std::rename(beside.c_str(), target.c_str()) == 0;
  if (is_done) return true;
  const int why = errno;
  std::filesystem::remove(beside, none);
  errno = why;
  return false;
}

bool read_event_log(const std::string& path, Story& story) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  story.begin_file(std::filesystem::path(path).filename().string(), "event log");
  for (std::string line; std::getline(in, line);) story.add_line(line);
  return true;
}

}  // namespace uet::dump
