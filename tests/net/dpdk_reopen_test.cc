/// Devices that are opened and closed two hundred times in one process. Nothing may stay: no descriptor, thread, memory, mapping or file.

#include <malloc.h>
#include <net/if.h>
#include <rte_dev.h>
#include <rte_malloc.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <set>
#include <string>
#include <thread>

#include "tests/net/dpdk_guest.h"

namespace uet::dpdk {
namespace {

namespace fs = std::filesystem;

/// What a device may need besides itself.
enum class Beside {
  kNothing,
  kInterface,
  kVhost,     ///< of another process
  kOtherEnd,  ///< `other_end` stays open, and frames pass at each opening
  kReopened,  ///< `other_end` is opened before it and closed after it, and frames pass
  kMember,    ///< `other_end`; both were there before us, as FI_UET_DPDK_ARGS=--vdev makes them
};

struct Reopened {
  const char* name;
  const char* spec;  ///< % is a folder of the test's own
  Beside beside = Beside::kNothing;
  const char* other_end = "";
  unsigned rounds = 200;         ///< unless the long tests are asked for
  std::size_t driver_loses = 0;  ///< bytes of DPDK's memory with every opening, without our doing
  std::size_t driver_loses_heap = 0;  ///< bytes of malloc's memory
};

void PrintTo(const Reopened& device, std::ostream* out) {
  *out << device.name;
}

std::size_t dpdk_bytes() {
  std::size_t total = 0;
  for (int socket = 0; socket < 2; ++socket) {
    rte_malloc_socket_stats stats{};
    if (rte_malloc_get_socket_stats(socket, &stats) == 0) total += stats.heap_allocsz_bytes;
  }
  return total;
}

std::size_t lines_of(const char* file) {
  std::ifstream in(file);
  return static_cast<std::size_t>(
      std::count(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>(), '\n'));
}

/// What the process has open, for a message.
std::string descriptors() {
  std::string all;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd"))
    all += ' ' + fs::read_symlink(entry, ignored).string();
  return all;
}

std::size_t interfaces() {
  struct if_nameindex* const all = if_nameindex();
  std::size_t count = 0;
  while (all != nullptr && all[count].if_index != 0) ++count;
  if_freenameindex(all);
  return count;
}

/// What the process holds.
struct Held {
  std::size_t descriptors = entries_of("/proc/self/fd");
  std::size_t threads = entries_of("/proc/self/task");
  std::size_t mappings = lines_of("/proc/self/maps");
  std::size_t interfaces = dpdk::interfaces();
  std::size_t dpdk = dpdk_bytes();
  std::size_t heap = mallinfo2().uordblks;

  static Held anything() {
    Held all;
    all.descriptors = all.threads = SIZE_MAX;
    return all;
  }
};

class DpdkReopenTest : public DpdkGuestTest, public testing::WithParamInterface<Reopened> {
 protected:
  void SetUp() override {
    DpdkGuestTest::SetUp();
    fs::create_directory(folder_);
  }
  void TearDown() override {
    vhost_.reset();
    other_end_.reset();
    fs::remove_all(folder_);
  }

  /// Empty when what is needed beside the device is there.
  std::string prepare() {
    const Beside beside = GetParam().beside;
    if (beside == Beside::kInterface && !has_veth())
      return "needs root, network namespaces and veth";
    if (beside == Beside::kVhost) vhost_ = std::make_unique<VhostPeer>(folder_ + "/vhost");
    if (beside == Beside::kOtherEnd) other_end_ = open(in_folder(GetParam().other_end));
    if (beside == Beside::kMember) {
      const std::string member = GetParam().other_end;
      const std::string device = std::string(GetParam().spec) + ",mode=1,slave=" + member;
      EXPECT_EQ(rte_dev_probe(member.c_str()), 0);
      EXPECT_EQ(rte_dev_probe(device.c_str()), 0);
    }
    return "";
  }
  bool open_and_close() {
    const Beside beside = GetParam().beside;
    if (beside == Beside::kReopened) other_end_ = open(in_folder(GetParam().other_end));
    auto device = open(in_folder(GetParam().spec));
    const bool has_other_end = beside == Beside::kReopened || beside == Beside::kOtherEnd;
    const bool is_good = device != nullptr && (!has_other_end || (other_end_ && pass(*device)));
    device.reset();
    if (beside == Beside::kReopened) other_end_.reset();
    return is_good;
  }

  /// What is held once the other end and DPDK's threads have done with the device that was closed; `wanted` at best.
  Held what_stays(const Held& wanted) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::array<net::Packet, 8> burst;
    for (;;) {
      // A memif server hears of a client that is gone when its loop turns.
      const bool is_connected =
          other_end_ != nullptr && (other_end_->receive_frames(burst), other_end_->has_link());
      const Held now;
      const bool is_settled =
          !is_connected && now.descriptors <= wanted.descriptors && now.threads <= wanted.threads;
      if (is_settled || std::chrono::steady_clock::now() > end) return now;
      std::this_thread::yield();
    }
  }

  void leaves_nothing();

  const std::string folder_ = path("reopened");
  std::unique_ptr<VhostPeer> vhost_;
  std::unique_ptr<DpdkDevice> other_end_;

 private:
  bool pass(DpdkDevice& device) {
    return passes(device, *other_end_) && passes(*other_end_, device);
  }
  std::string in_folder(std::string spec) const {
    const std::size_t at = spec.find('%');
    return at == std::string::npos ? spec : spec.replace(at, 1, folder_);
  }
};

/// Without hugepages DPDK has to be started for them, so in a process of their own.
class ZeroCopyReopenTest : public DpdkReopenTest {
  void SetUp() override {
    ASSERT_TRUE(ensure_eal({.memory_bytes = 64 << 20, .single_file = true}, error_)) << error_;
    DpdkReopenTest::SetUp();
  }
};

TEST_P(DpdkReopenTest, two_hundred_opens_and_closes__leave_nothing) {
  leaves_nothing();
}
TEST_P(ZeroCopyReopenTest, two_hundred_opens_and_closes__leave_nothing) {
  leaves_nothing();
}

void DpdkReopenTest::leaves_nothing() {
  if (const std::string missing = prepare(); !missing.empty()) GTEST_SKIP() << missing;
  // What drivers set up once per process is there after the first.
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(open_and_close()) << error_;
  std::set<fs::path> files_before(fs::directory_iterator(folder_), {});
  const Held before = what_stays(Held::anything());
  const std::string open_before = descriptors();
  const unsigned rounds = is_long() ? 200 : GetParam().rounds;
  for (unsigned i = 0; i < rounds; ++i)
    ASSERT_TRUE(open_and_close()) << "round " << i << ": " << error_;
  const Held after = what_stays(before);
  EXPECT_LE(after.descriptors, before.descriptors)
      << "before:" << open_before << "\nafter: " << descriptors();
  EXPECT_LE(after.threads, before.threads);
  EXPECT_EQ(after.interfaces, before.interfaces);
  EXPECT_LE(after.mappings, before.mappings + 8);
  EXPECT_LE(after.dpdk, before.dpdk + rounds * GetParam().driver_loses + 4096);
  EXPECT_LE(after.heap, before.heap + rounds * GetParam().driver_loses_heap + 4096);
  EXPECT_EQ(std::set<fs::path>(fs::directory_iterator(folder_), {}), files_before);
}

// The kernel takes a tenth of a second to let go of a packet socket.
INSTANTIATE_TEST_SUITE_P(
    Devices, DpdkReopenTest,
    testing::Values(
        Reopened{.name = "null", .spec = "net_null20", .driver_loses = 384},
        Reopened{.name = "ring", .spec = "net_ring20"},
        Reopened{.name = "memif_abstract_server",
                 .spec = "net_memif20,role=server,socket=/uet/reopen"},
        Reopened{.name = "memif_file_server",
                 .spec = "net_memif21,role=server,socket-abstract=no,socket=%/server"},
        Reopened{.name = "memif_client", .spec = "net_memif22,role=client,socket=/uet/reopen2"},
        Reopened{.name = "memif_server_of_a_client",
                 .spec = "net_memif23,role=server,socket=/uet/reopen3",
                 .beside = Beside::kOtherEnd,
                 .other_end = "net_memif24,role=client,socket=/uet/reopen3",
                 .rounds = 20},
        Reopened{.name = "memif_client_of_a_server",
                 .spec = "net_memif25,role=client,socket=/uet/reopen4",
                 .beside = Beside::kOtherEnd,
                 .other_end = "net_memif26,role=server,socket=/uet/reopen4",
                 .rounds = 20},
        Reopened{.name = "memif_pair",
                 .spec = "net_memif27,role=client,socket-abstract=no,socket=%/pair",
                 .beside = Beside::kReopened,
                 .other_end = "net_memif28,role=server,socket-abstract=no,socket=%/pair",
                 .rounds = 20},
        Reopened{.name = "tap",
                 .spec = "net_tap20,iface=uettap0",
                 .beside = Beside::kInterface,
                 .rounds = 20},
        Reopened{.name = "af_packet",
                 .spec = "net_af_packet20,iface=uetveth0",
                 .beside = Beside::kInterface,
                 .rounds = 20},
        Reopened{.name = "af_xdp",
                 .spec = "net_af_xdp20,iface=uetveth0",
                 .beside = Beside::kInterface,
                 .rounds = 20,
                 .driver_loses = 192,
                 .driver_loses_heap = 96},
        Reopened{.name = "pcap",
                 .spec = "net_pcap20,iface=uetveth0",
                 .beside = Beside::kInterface,
                 .rounds = 20},
        Reopened{.name = "failsafe",
                 .spec = "net_failsafe20,dev(net_af_packet22,iface=uetveth0)",
                 .beside = Beside::kInterface,
                 .rounds = 20},
        Reopened{.name = "bonding",
                 .spec = "net_bonding20",
                 .beside = Beside::kMember,
                 .other_end = "net_null23"},
        Reopened{.name = "vhost", .spec = "net_vhost20,iface=%/vhost"},
        Reopened{.name = "virtio_user",
                 .spec = "net_virtio_user20,path=%/vhost,queues=1",
                 .beside = Beside::kVhost,
                 .rounds = 20},
        Reopened{.name = "vhost_and_virtio_user",
                 .spec = "net_virtio_user21,path=%/both,queues=1",
                 .beside = Beside::kReopened,
                 .other_end = "net_vhost21,iface=%/both",
                 .rounds = 20}),
    [](const auto& device) { return std::string(device.param.name); });

// The driver loses the lists of packets of its queues, 12 KiB, with each attempt to connect, of which a crowded machine makes some.
INSTANTIATE_TEST_SUITE_P(
    Devices, ZeroCopyReopenTest,
    testing::Values(Reopened{.name = "memif_client",
                             .spec = "net_memif22,role=client,socket=/uet/reopen5,zero-copy=yes"},
                    Reopened{.name = "memif_pair",
                             .spec = "net_memif27,role=client,socket=/uet/reopen6,zero-copy=yes",
                             .beside = Beside::kReopened,
                             .other_end = "net_memif28,role=server,socket=/uet/reopen6",
                             .rounds = 20,
                             .driver_loses = 1 << 20}),
    [](const auto& device) { return std::string(device.param.name); });

}  // namespace
}  // namespace uet::dpdk
