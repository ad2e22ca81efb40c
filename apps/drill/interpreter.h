/// Runs the steps of a script in a testbed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/drill/packet_text.h"
#include "apps/drill/script.h"

namespace uet::drill {

class Testbed;

enum class Verdict : std::uint8_t { kPass, kFail, kSkip };

struct Outcome {
  Verdict verdict = Verdict::kPass;
  std::string why;       ///< in one sentence: why it failed or was skipped
  unsigned line = 0;     ///< of the step that failed
  std::string step;      ///< that step as written
  std::string expected;  ///< the packet in question, with its variables as numbers
  std::vector<Difference> differences;
  std::vector<std::string> got;  ///< packets that came instead
};

/// Skips the script where the testbed lacks something.
Outcome run_script(const Script& script, Testbed& testbed);

}  // namespace uet::drill
