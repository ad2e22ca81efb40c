/// One HTML file that needs nothing but itself: data, style and script around d3, which is taken from its package when this is built.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace uet::page {

/// A text in pieces, as embed.py makes it of a file.
using Pieces = std::span<const std::string_view>;

struct Parts {
  std::string title;           ///< any text
  Pieces style = {};           ///< CSS
  std::string_view body = {};  ///< HTML under the heading
  std::string data = {};       ///< JSON; the script finds it in the element "data"
  Pieces script = {};          ///< runs behind d3
};

/// False where the plotting library was not there when this was built.
bool can_draw();
/// What to do about that, for a user of `program`.
std::string drawing_missing(std::string_view program);

std::string to_html(const Parts& parts);

}  // namespace uet::page
