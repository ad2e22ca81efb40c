// Which sanitizers a test runs under: they take memory, calls and instructions of their own.
#pragma once

#if defined(__has_feature)
#define UET_TEST_HAS_FEATURE(x) __has_feature(x)
#else
#define UET_TEST_HAS_FEATURE(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || UET_TEST_HAS_FEATURE(address_sanitizer)
#define UET_ADDRESS_SANITIZER 1
#else
#define UET_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__) || UET_TEST_HAS_FEATURE(thread_sanitizer)
#define UET_THREAD_SANITIZER 1
#else
#define UET_THREAD_SANITIZER 0
#endif

#define UET_SANITIZED (UET_ADDRESS_SANITIZER || UET_THREAD_SANITIZER)
