/// The viewer: a story as one page that needs nothing but itself.
#pragma once

#include <string>
#include <vector>

#include "apps/dump/viewer/story.h"

namespace uet::dump {

/// Only where page::can_draw().
std::string to_html(Story& story, const std::string& title);

/// Whether a file begins as an event log does, not as a capture.
bool is_event_log(const std::string& path);
/// Why no page may be written to `out`: it is one of the `inputs`, or begins as a capture or an event log does, which a command line without its
/// OUT would destroy. Empty: it may.
std::string why_no_place(const std::string& out, const std::vector<std::string>& inputs);
/// Writes beside `out` and renames, so that a failure leaves what was there. False when it cannot be written: errno says why.
bool write_page(const std::string& out, const std::string& page);

/// Reads an event log into the story. False when it cannot be opened: errno says why.
bool read_event_log(const std::string& path, Story& story);

}  // namespace uet::dump
