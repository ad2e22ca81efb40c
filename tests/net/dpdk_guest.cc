#include "tests/net/dpdk_guest.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "lib/base/cancellation.h"

namespace uet::dpdk {

namespace {

constexpr const char* kVhostPeer = "--uet-vhost-peer";

bool is_veth_made = false;

/// Threads have a namespace each, and those of DPDK one that their maker had: before there is any.
void make_veth() {
  is_veth_made = unshare(CLONE_NEWNET) == 0 &&
                 std::system(
                     "ip link set lo up && ip link add uetveth0 type veth peer name uetveth1 && "
                     "ip link set uetveth0 up && ip link set uetveth1 up") == 0;
}

/// The peer of a virtio_user device: opens a vhost device, says so, and waits for its end.
int be_vhost_peer(const std::string& socket, int ready) {
  base::Trace trace;
  std::string error;
  DpdkDeviceConfig config{.packets = 256};
  if (!parse_device_spec("dpdk:net_vhost0,iface=" + socket, config.spec, error)) return 1;
  if (!ensure_eal({.memory_bytes = 64 << 20}, error)) return 2;
  const auto device = DpdkDevice::open(config, trace, error);
  if (device == nullptr || write(ready, "!", 1) != 1) return 3;
  pause();
  return 0;
}

/// For the message of a test that waited in vain.
std::string state_of(DpdkDevice& device) {
  return device.facts().name + " (" + (device.has_link() ? "link up " : "no link, was up ") +
         std::to_string(device.link_generation()) + " times, " +
         std::to_string(device.pool().available()) + " of " +
         std::to_string(device.pool().capacity()) + " packets free)";
}

}  // namespace

bool has_veth() {
  return is_veth_made;
}

bool is_long() {
  const char* const depth = std::getenv("UET_TEST_DEPTH");
  return depth != nullptr && std::string(depth) == "long";
}

std::size_t entries_of(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

bool passes(DpdkDevice& from, DpdkDevice& to) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::array<net::Packet, 8> burst;
  while (std::chrono::steady_clock::now() < deadline) {
    net::Packet frame = from.pool().allocate();
    if (frame) std::memset(frame.append(4096), 0x5a, 4096);
    if (frame) from.send_frames({&frame, 1});
    for (std::size_t i = from.receive_frames(burst); i-- > 0;) burst[i].reset();
    const std::size_t n = to.receive_frames(burst);
    const bool is_whole = n != 0 && burst[0].size() == 4096 && burst[0].data()[4095] == 0x5a;
    for (std::size_t i = 0; i < n; ++i) burst[i].reset();
    if (n != 0) return is_whole;
  }
  ADD_FAILURE() << "nothing passes from " << state_of(from) << " to " << state_of(to);
  return false;
}

bool is_finished_when_cancelled(const std::function<void()>& call) {
  struct Run {
    static void* begin(void* self) {
      auto& run = *static_cast<Run*>(self);
      {
        const base::WithoutCancellation not_yet;
        pthread_cancel(pthread_self());
      }
      run.call();
      run.is_finished = true;
      return nullptr;
    }
    const std::function<void()>& call;
    bool is_finished = false;
  } run{call};
  pthread_t thread{};
  EXPECT_EQ(pthread_create(&thread, nullptr, Run::begin, &run), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  return run.is_finished;
}

std::unique_ptr<DpdkDevice> DpdkGuestTest::open(const std::string& spec, std::size_t mtu) {
  DpdkDeviceConfig config{.packets = 256, .ip_mtu = mtu, .sends_own_pool_only = true};
  error_.clear();
  if (!parse_device_spec("dpdk:" + spec, config.spec, error_)) return nullptr;
  const std::size_t sized = mtu != 0 ? mtu : default_ip_mtu(config.spec);
  if (sized != 0) add_default_arguments(sized, config.spec);
  return DpdkDevice::open(config, trace_, error_);
}

VhostPeer::VhostPeer(std::string socket) : socket_(std::move(socket)) {
  int ready[2];
  EXPECT_EQ(pipe(ready), 0);
  process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl("/proc/self/exe", "dpdk_guest_test", kVhostPeer, socket_.c_str(),
          std::to_string(ready[1]).c_str(), nullptr);
    _exit(9);
  }
  close(ready[1]);
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
}

VhostPeer::~VhostPeer() {
  end();
  unlink(socket_.c_str());
}

void VhostPeer::end() {
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  waitpid(std::exchange(process_, 0), nullptr, 0);
}

}  // namespace uet::dpdk

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == uet::dpdk::kVhostPeer)
    return uet::dpdk::be_vhost_peer(argv[2], std::atoi(argv[3]));
  uet::dpdk::make_veth();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
