/// One libFuzzer program; UET_FUZZ_TARGET names the function.
#include "tests/fuzz/targets.h"

extern "C" __attribute__((visibility("default"))) int LLVMFuzzerTestOneInput(
    const std::uint8_t* data, std::size_t size) {
  uet::fuzz::UET_FUZZ_TARGET({data, size});
  return 0;
}
