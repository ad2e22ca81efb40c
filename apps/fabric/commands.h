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
  using Links = std::vector<sim::Link*>;

  Json change_links(const Words& words);
  Json change_fault(std::string_view what, const Links& links, const Words& words);
  Json match(std::string_view rest);
  Json unmatch(const Words& words);
  Json switch_on_off(const Words& words);
  Json capture(const Words& words);

  Emulator& emulator_;
  CommandHooks hooks_;
};

}  // namespace uet::fabric
