/// What the machine does without any fabric: kernel TCP between two processes, and copying within one.
#pragma once

#include "apps/perf/fabric_bench.h"

namespace uet::perf {

/// Tests of `uet-perf tcp`: a stream of messages, and one message to and fro. Both sides spin, as they do over a fabric.
inline constexpr std::string_view kTcpTests[] = {"send", "send-latency"};

/// Both take the options of `uet-perf fabric` that have a meaning for them, and print the same columns. They return the exit
/// code.
int run_tcp(const FabricOptions& options);
int run_copy(const FabricOptions& options);

}  // namespace uet::perf
