/// What the run-time libraries allocate for a thread at first use, and end the process over where memory is missing.
#pragma once

namespace uet::provider {

/// Whether glibc finds the few hundred bytes that it needs for a thread-local object of this thread, or for its destructor. False: the
/// first use would end the process.
bool has_memory_for_thread_data() noexcept;

/// After it exceptions can be thrown in the calling thread however short of memory the process is; false: there is no memory for that,
/// and the thread must not throw. A program in C gets libstdc++ by dlopen(), with the provider: what libstdc++ keeps of a thread's exceptions
/// is then allocated by the first of them. Where that one is std::bad_alloc, glibc ends the process in place of the handler. Cheap but for
/// the first time in a thread.
bool prepare_thread_for_exceptions() noexcept;

}  // namespace uet::provider
