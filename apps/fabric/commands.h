/// The commands of the control socket, of [[link]] and of [[at]]: one line in, one JSON object out.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/fabric/report.h"

namespace uet::fabric {

/// What commands reach outside of the fabric.
struct CommandHooks {
  std::function<Json()> clock;
  /// Starts a capture in the file, or ends it when the path is empty. A sentence when it cannot.
  std::function<std::string(const std::string& path)> capture;
  std::function<void()> quit;
};

class Commands {
 public:
  Commands(Emulator& emulator, CommandHooks hooks)
      : emulator_(emulator), hooks_(std::move(hooks)) {}

  /// {"ok":true,...} or {"ok":false,"error":"..."}.
  Json run(std::string_view line);

  struct Help {
    std::string_view usage, meaning;
  };
  static std::vector<Help> help();

 private:
  using Words = std::vector<std::string_view>;
  struct Entry;
  static const std::vector<Entry>& entries();

  Json change_links(const Words& words);
  // All of one shape, for the table: the words, and the line behind the first.
  Json stats(const Words& words, std::string_view rest);
  Json clock(const Words& words, std::string_view rest);
  Json match(const Words& words, std::string_view rest);
  Json unmatch(const Words& words, std::string_view rest);
  Json switch_on_off(const Words& words, std::string_view rest);
  Json route(const Words& words, std::string_view rest);
  Json capture(const Words& words, std::string_view rest);
  Json list(const Words& words, std::string_view rest);
  Json quit(const Words& words, std::string_view rest);

  Emulator& emulator_;
  CommandHooks hooks_;
};

}  // namespace uet::fabric
