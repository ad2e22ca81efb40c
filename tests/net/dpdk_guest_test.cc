/// DPDK as a guest in a process with a life of its own: nothing of the process may be lost or taken.

#include <rte_dev.h>
#include <rte_eal.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/net/dpdk_guest.h"

namespace uet::dpdk {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

TEST_F(DpdkGuestTest, runtime_folder__is_gone) {
  EXPECT_FALSE(fs::exists(rte_eal_get_runtime_dir())) << rte_eal_get_runtime_dir();
}

std::string field_of(const fs::path& file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.rfind(name + ":", 0) == 0)
      return line.substr(line.find_first_not_of(" \t", name.size() + 1));
  return "";
}

// vhost makes a thread of its own, memif uses EAL's.
TEST_F(DpdkGuestTest, threads_of_dpdk__take_no_signals_and_may_run_everywhere) {
  auto vhost = open("net_vhost40,iface=" + path("vhost"));
  ASSERT_TRUE(vhost) << error_;
  constexpr unsigned long long kTerm = 1ULL << (SIGTERM - 1);
  constexpr unsigned long long kPipe = 1ULL << (SIGPIPE - 1);
  constexpr unsigned long long kSegv = 1ULL << (SIGSEGV - 1);
  const std::string ours = field_of("/proc/self/status", "Cpus_allowed");
  int others = 0;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(getpid())) continue;
    const std::string mask = field_of(task.path() / "status", "SigBlk");
    const std::string name = field_of(task.path() / "status", "Name");
    // Ended meanwhile, or about to: without a name of its own it is one that worked for the caller.
    if (mask.empty() || name == field_of("/proc/self/status", "Name")) continue;
    const auto blocked = std::stoull(mask, nullptr, 16);
    EXPECT_TRUE((blocked & kTerm) != 0 && (blocked & kPipe) != 0) << name;
    EXPECT_EQ(blocked & kSegv, 0u) << name;
    EXPECT_EQ(field_of(task.path() / "status", "Cpus_allowed"), ours) << name;
    ++others;
  }
  EXPECT_GE(others, 2);
}

// The driver writes to a peer that is gone while it is closed.
TEST_F(DpdkGuestTest, virtio_user__whose_peer_vanished_closes_without_a_signal) {
  VhostPeer peer(path("peer"));
  auto device = open("net_virtio_user50,path=" + path("peer") + ",queues=1");
  EXPECT_TRUE(device) << error_;
  peer.end();
  signal(SIGPIPE, SIG_DFL);
  device.reset();
}

// Processes of one job open their ports at once. A vhost makes its socket before it listens on it.
class LateVhostTest : public DpdkGuestTest {
 protected:
  /// Opens both ends; `begin` runs in the thread of the late one, before it opens its own.
  template <typename Begin>
  void meet(const std::string& number, Begin&& begin) {
    DpdkDeviceConfig config{.packets = 256};
    const std::string spec = "dpdk:net_vhost" + number + ",iface=" + path("later");
    ASSERT_TRUE(parse_device_spec(spec, config.spec, error_));
    base::Trace trace;
    std::string why;
    std::unique_ptr<DpdkDevice> vhost;
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      begin();
      vhost = DpdkDevice::open(config, trace, why);
    });
    auto device = open("net_virtio_user" + number + ",path=" + path("later") + ",queues=1");
    later.join();
    ASSERT_TRUE(vhost) << why;
    ASSERT_TRUE(device) << error_;
    EXPECT_TRUE(passes(*device, *vhost));
    EXPECT_TRUE(vhost->has_link()) << "its iface= is no interface";
  }
};

TEST_F(LateVhostTest, virtio_user__waits_for_its_socket) {
  meet("51", [] {});
}

TEST_F(LateVhostTest, virtio_user__waits_for_it_to_listen) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path("later").copy(address.sun_path, sizeof address.sun_path - 1);
  const int bound = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(bound, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  meet("54", [&] {
    close(bound);
    unlink(address.sun_path);
  });
}

TEST_F(DpdkGuestTest, application_s_pending_signals__are_still_its_own) {
  sigset_t pipe_only, pending;
  sigemptyset(&pipe_only);
  sigaddset(&pipe_only, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_only, nullptr);
  pthread_kill(pthread_self(), SIGPIPE);
  open("net_null41");
  sigpending(&pending);
  EXPECT_TRUE(sigismember(&pending, SIGPIPE));
  const timespec at_once{};
  sigtimedwait(&pipe_only, nullptr, &at_once);
  pthread_sigmask(SIG_UNBLOCK, &pipe_only, nullptr);
}

// Drivers over the kernel make system calls that are cancellation points.
TEST_F(DpdkGuestTest, thread_that_is_cancelled__gets_through_the_calls_of_a_driver) {
  if (!has_veth()) GTEST_SKIP() << "needs root, network namespaces and veth";
  for (const char* spec : {"net_af_packet57,iface=uetveth0", "net_tap57,iface=uettap57",
                           "net_pcap57,iface=uetveth0"}) {
    SCOPED_TRACE(spec);
    auto device = open(spec);
    ASSERT_TRUE(device) << error_;
    EXPECT_TRUE(is_finished_when_cancelled([&] {
      net::Packet frame = device->pool().allocate();
      std::memset(frame.append(60), 0xff, 60);
      device->send_frames({&frame, 1});
    }));
    std::array<net::Packet, 8> burst;
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(is_finished_when_cancelled([&] { device->arm_wakeup(); }));
      EXPECT_TRUE(is_finished_when_cancelled([&] { device->receive_frames(burst); }));
    }
    EXPECT_TRUE(is_finished_when_cancelled([&] { device->has_link(); }));
    for (net::Packet& packet : burst) packet.reset();
  }
}

TEST_F(DpdkGuestTest, forked_child__closes_at_once_and_the_parent_goes_on) {
  auto memif = open("net_memif42,role=server,socket=/uet/fork");
  auto null = open("net_null42");
  ASSERT_TRUE(memif && null) << error_;
  std::vector<net::Packet> held;
  for (int i = 0; i < 200; ++i) held.push_back(null->pool().allocate());
  const std::size_t available = null->pool().available();
  std::array<net::Packet, 1> burst;
  ASSERT_EQ(null->receive_frames(burst), 1u) << "it always has frames";
  burst[0].reset();
  const int status = status_of_child([&] {
    // The rings are shared with the parent.
    if (null->receive_frames(burst) != 0) _exit(4);
    if (null->send_frames({held.data(), 1}) != 0) _exit(5);
    for (net::Packet& packet : held) packet.reset();
    memif.reset();
    null.reset();
    if (ensure_eal({}, error_)) _exit(3);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(null->pool().available(), available);
  held.clear();
  EXPECT_EQ(null->pool().available(), null->pool().capacity());
  memif.reset();
  EXPECT_TRUE(open("net_memif42,role=server,socket=/uet/fork")) << error_;
}

// As NICs are, which EAL finds when it starts, and what FI_UET_DPDK_ARGS=--vdev made.
TEST_F(DpdkGuestTest, device_that_was_there_before__is_opened_again) {
  ASSERT_EQ(rte_eal_hotplug_add("vdev", "net_null41", "size=77"), 0);
  ASSERT_EQ(rte_eal_hotplug_add("vdev", "net_null42", ""), 0);
  ASSERT_EQ(rte_eal_hotplug_add("vdev", "net_bonding43", "mode=1,slave=net_null42"), 0);
  for (const char* device : {"net_null41", "net_bonding43"}) {
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(open(device)) << device << ", time " << i << ": " << error_;
  }
  // With the arguments that it had.
  auto null = open("net_null41");
  ASSERT_TRUE(null) << error_;
  std::array<net::Packet, 1> burst;
  ASSERT_EQ(null->receive_frames(burst), 1u);
  EXPECT_EQ(burst[0].size(), 77u);
  burst[0].reset();
}

TEST_F(DpdkGuestTest, arguments_of_the_user__come_too_late_for_a_running_dpdk) {
  EXPECT_FALSE(ensure_eal({.user_arguments = "--log-level=debug"}, error_));
  EXPECT_THAT(error_, HasSubstr("cannot be started again"));
}

}  // namespace
}  // namespace uet::dpdk
