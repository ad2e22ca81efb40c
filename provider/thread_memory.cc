#include "provider/thread_memory.h"

#include <cxxabi.h>

#include <cstddef>
#include <cstdlib>

namespace uet::provider {
namespace {

/// A thread's table of modules and the objects of one module, with room to spare.
constexpr std::size_t kThreadDataBytes = 4096;

[[gnu::tls_model("initial-exec")]] constinit thread_local bool is_prepared = false;

}  // namespace

bool has_memory_for_thread_data() noexcept {
  void* volatile room = std::malloc(kThreadDataBytes);  // volatile: not to be left out
  if (room == nullptr) return false;
  std::free(room);
  return true;
}

bool prepare_thread_for_exceptions() noexcept {
  if (is_prepared) return true;
  if (!has_memory_for_thread_data()) return false;
  // The compiler takes it for a function without effects.
  abi::__cxa_eh_globals* volatile globals = abi::__cxa_get_globals();
  is_prepared = globals != nullptr;
  return is_prepared;
}

}  // namespace uet::provider
