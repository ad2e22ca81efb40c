/// The viewer: a story as one page that needs nothing but itself.
#pragma once

#include <string>

#include "apps/dump/viewer/story.h"

namespace uet::dump {

/// Only where page::can_draw().
std::string to_html(Story& story, const std::string& title);

/// Whether a file begins as an event log does, not as a capture.
bool is_event_log(const std::string& path);
/// Reads an event log into the story. False when it cannot be opened: errno says why.
bool read_event_log(const std::string& path, Story& story);

}  // namespace uet::dump
