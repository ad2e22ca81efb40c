/// A process that can open no descriptor, for tests of what needs one.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace uet::net {

/// While it lives this process can open no descriptor. UBSan then cannot look at objects of a class with virtual functions: it finds out their type
/// through a pipe.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    // Of those that are open poll() takes as many.
    const rlimit none{.rlim_cur = 3, .rlim_max = before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace uet::net
