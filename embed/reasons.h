/// Sentences for people about what the semantic sublayer says with a code.
#pragma once

#include "ses/ses.h"
#include "uet/endpoint.h"

namespace uet {

/// Why an operation ended so; empty for one that went well.
const char* reason_of(Operation operation, ses::ReturnCode code);
/// Why one did not begin, but for a lack of room.
const char* reason_of(ses::PostError error);

}  // namespace uet
