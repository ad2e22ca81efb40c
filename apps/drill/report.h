/// The results for people and for machines.
#pragma once

#include <string>

#include "apps/drill/suite.h"

namespace uet::drill {

std::string_view name_of(Verdict verdict);

/// One result on a terminal. Skipped scripts take one line, failed ones say what the specification asks for.
std::string to_text(const Result& result);
/// The last lines.
std::string summary(const SuiteReport& report);
std::string to_json(const SuiteReport& report);
/// A page that needs nothing but itself, and the captures next to it.
std::string to_html(const SuiteReport& report);

}  // namespace uet::drill
