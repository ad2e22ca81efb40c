/// What the tests of real DPDK devices share: a process that has EAL and devices as guests. Drivers that sit on an interface get one in
/// a network namespace of the process's own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>

#include "lib/dpdk/dpdk_device.h"
#include "lib/dpdk/eal.h"

namespace uet::dpdk {

/// The process has a network namespace of its own with a veth pair, uetveth0 and uetveth1; false where that is not allowed.
bool has_veth();

/// The long tests were asked for.
bool is_long();

/// Files and folders directly in `folder`.
std::size_t entries_of(const std::string& folder);

/// Whether frames get from one end of a memif, or of vhost and virtio_user, to the other. A minute at most.
bool passes(DpdkDevice& from, DpdkDevice& to);

/// Whether a thread that is to be cancelled gets through `call`. What it was unwound from is left as it was.
bool is_finished_when_cancelled(const std::function<void()>& call);

class DpdkGuestTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(ensure_eal({.memory_bytes = 64 << 20}, error_)) << error_; }

  std::unique_ptr<DpdkDevice> open(const std::string& spec, std::size_t mtu = 0);

  /// Runs `child` in a forked process; its exit status, or -1 when it had to be killed.
  template <typename F>
  int status_of_child(F child) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(20);
      child();
      _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  /// A path of this process's own.
  static std::string path(const std::string& name) {
    return "/tmp/uet-guest-" + std::to_string(getpid()) + "-" + name;
  }

  base::Trace trace_;
  std::string error_;
};

/// The other end of virtio_user devices as a process of its own: what it must do at last is to die.
class VhostPeer {
 public:
  explicit VhostPeer(std::string socket);
  ~VhostPeer();
  void end();

 private:
  const std::string socket_;
  pid_t process_ = 0;
};

}  // namespace uet::dpdk
