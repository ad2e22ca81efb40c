/// A file system that does not answer for a while, as a network's whose server is away.
#pragma once

namespace uet::keys::test {

/// While it lives, lstat() of this process does not return.
class StalledLooks {
 public:
  StalledLooks();
  ~StalledLooks();
  StalledLooks(const StalledLooks&) = delete;
  StalledLooks& operator=(const StalledLooks&) = delete;

  /// Waits until a thread is stuck.
  void await_one() const;
};

}  // namespace uet::keys::test
