/// What a user says about a DPDK device, before any driver hears of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "lib/dpdk/device_mtu.h"
#include "lib/dpdk/device_spec.h"
#include "lib/dpdk/eal_arguments.h"
#include "lib/dpdk/memif_keys.h"
#include "lib/dpdk/memory_nodes.h"

namespace uet::dpdk {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr std::size_t kGiB = std::size_t{1} << 30;
constexpr EalNeeds kNoWishes{};

std::vector<std::string> arguments_of(const EalNeeds& needs, const EalSurroundings& machine) {
  std::vector<std::string> arguments;
  std::string error;
  EXPECT_TRUE(make_eal_arguments(needs, machine, arguments, error)) << error;
  return arguments;
}

std::string refusal_of(const std::string& user, bool is_pci = false) {
  std::vector<std::string> arguments;
  std::string error;
  const EalNeeds needs{.is_pci = is_pci, .user_arguments = user};
  return make_eal_arguments(needs, {}, arguments, error) ? "accepted" : error;
}

DeviceSpec spec_of(const std::string& text) {
  DeviceSpec spec;
  std::string error;
  EXPECT_TRUE(parse_device_spec("dpdk:" + text, spec, error)) << error;
  return spec;
}

// --- Arguments of EAL

// Peers map it by descriptor, and there are eight at most.
TEST(EalArguments, memory__is_in_single_files_with_hugepages_and_for_memif_without_copying) {
  const std::string flag = "--single-file-segments";
  EXPECT_THAT(arguments_of(kNoWishes, {.hugepages = {kGiB}}), Contains(flag));
  EXPECT_THAT(arguments_of(kNoWishes, {}), Not(Contains(flag)));
  EXPECT_THAT(arguments_of({.single_file = true}, {}), Contains(flag));
  const auto given =
      arguments_of({.user_arguments = "--single-file-segments"}, {.hugepages = {kGiB}});
  EXPECT_EQ(std::count(given.begin(), given.end(), flag), 1);
}

TEST(EalArguments, hugepages__are_taken_at_once_unless_the_user_says_how_many) {
  EXPECT_THAT(arguments_of({.memory_bytes = 256 << 20}, {.hugepages = {kGiB}}), Contains("-m288"));
  EXPECT_THAT(
      arguments_of({.memory_bytes = 256 << 20, .user_arguments = "-m 512"}, {.hugepages = {kGiB}}),
      Not(Contains("-m288")));
}

TEST(EalArguments, no_huge__only_where_hugepages_do_not_suffice_or_the_user_says_so) {
  const EalNeeds needs{.memory_bytes = kGiB};
  EXPECT_THAT(arguments_of(needs, {.hugepages = {2 * kGiB}}), Contains("--in-memory"));
  EXPECT_THAT(arguments_of(needs, {.hugepages = {kGiB}}), Contains("--no-huge"));
  EXPECT_THAT(arguments_of({.user_arguments = "--no-huge"}, {.hugepages = {2 * kGiB}}),
              Not(Contains("--in-memory")));
}

// A NIC reaches the memory of another node more slowly; where its own has too little left, that is still better than none.
TEST(EalArguments, hugepages__come_from_the_node_of_the_device_while_it_has_enough) {
  const EalNeeds needs{.memory_bytes = 256 << 20, .node = 1};
  EXPECT_THAT(arguments_of(needs, {.hugepages = {kGiB, kGiB}}),
              AllOf(Contains("--socket-mem=0,288"), Not(Contains(StartsWith("-m")))));
  EXPECT_THAT(arguments_of(needs, {.hugepages = {kGiB, 64 << 20}}), Contains("-m288"));
  EXPECT_THAT(arguments_of(needs, {.hugepages = {64 << 20, 64 << 20}}), Contains("--no-huge"));
  EXPECT_THAT(arguments_of({.memory_bytes = 256 << 20, .node = 7}, {.hugepages = {kGiB, kGiB}}),
              Contains("-m288"));
}

TEST(EalArguments, hugepages__of_a_device_without_node_come_from_that_of_the_process) {
  const EalNeeds needs{.memory_bytes = 256 << 20};
  EXPECT_THAT(arguments_of(needs, {.hugepages = {kGiB, kGiB}, .node = 1}),
              Contains("--socket-mem=0,288"));
  EXPECT_THAT(arguments_of(needs, {.hugepages = {kGiB, kGiB}}), Contains("-m288"));
}

// EAL takes one of both options.
TEST(EalArguments, memory_by_node__of_the_user_is_not_contradicted) {
  const EalNeeds needs{.memory_bytes = 256 << 20, .user_arguments = "--socket-mem=0,512"};
  EXPECT_THAT(arguments_of(needs, {.hugepages = {kGiB, kGiB}, .node = 1}),
              AllOf(Contains("--socket-mem=0,512"), Not(Contains("--socket-mem=0,288")),
                    Not(Contains(StartsWith("-m")))));
  EXPECT_THAT(refusal_of("--socket-mem=512"), HasSubstr("needs hugepages"));
}

// EAL keeps its own threads off the CPUs of its cores: all of them named, none is taken from them.
TEST(EalArguments, threads_of_eal__may_run_where_the_process_may) {
  EXPECT_THAT(arguments_of(kNoWishes, {.cpus = {2, 3, 7}}), Contains("--lcores=0@(2,3,7)"));
  EXPECT_THAT(arguments_of(kNoWishes, {.cpus = {5, 130}}), Contains("--lcores=0@(5)"));
}

TEST(EalArguments, words_of_the_user__replace_ours_or_are_added) {
  const auto given = arguments_of(
      {.user_arguments = "--log-level=pmd:debug  --iova-mode=pa --vdev net_null7 -m 300"}, {});
  EXPECT_THAT(given, Contains("--log-level=pmd:debug"));
  EXPECT_THAT(given, Not(Contains("--log-level=*:error")));
  EXPECT_THAT(given, Not(Contains("--iova-mode=va")));
  EXPECT_THAT(given, Contains("net_null7"));
  EXPECT_EQ(std::count(given.begin(), given.end(), "-m"), 1);
}

TEST(EalArguments, pci__only_where_a_device_of_it_is_wanted) {
  EXPECT_THAT(arguments_of(kNoWishes, {}), Contains("--no-pci"));
  const EalNeeds pci{.device = "0000:01:00.0", .is_pci = true};
  EXPECT_THAT(arguments_of(pci, {}), Not(Contains("--no-pci")));
  EXPECT_THAT(arguments_of(pci, {}), Contains("--allow=0000:01:00.0"));
  const EalNeeds sub_function{.device = "auxiliary:mlx5_core.sf.2"};
  EXPECT_THAT(arguments_of(sub_function, {}), Contains("--allow=auxiliary:mlx5_core.sf.2"));
  EXPECT_THAT(arguments_of(sub_function, {}), Contains("--no-pci"));
  EXPECT_THAT(arguments_of({.user_arguments = "-a 0000:01:00.0"}, {}), Not(Contains("--no-pci")));
}

TEST(EalArguments, what_a_guest_must_not_do__is_refused_with_the_reason) {
  EXPECT_THAT(refusal_of("-l 0-3"), HasSubstr("no worker threads"));
  EXPECT_THAT(refusal_of("--file-prefix=x"), HasSubstr("has its own"));
  EXPECT_THAT(refusal_of("--proc-type=secondary"), HasSubstr("primary"));
  EXPECT_THAT(refusal_of("--legacy-mem"), HasSubstr("memif and vhost"));
  EXPECT_THAT(refusal_of("--no-pci", true), HasSubstr("excludes the PCI device"));
  EXPECT_THAT(refusal_of("--no-pci"), "accepted");
}

// EAL would print a page of help on the application's stdout.
TEST(EalArguments, what_eal_would_not_understand__never_reaches_it) {
  EXPECT_THAT(refusal_of("--colour=red"), HasSubstr("'--colour=red'"));
  EXPECT_THAT(refusal_of("net_null0"), HasSubstr("--vdev"));
  EXPECT_THAT(refusal_of("--iova-mode=virtual"), HasSubstr("va or pa"));
  EXPECT_THAT(refusal_of("-m lots"), HasSubstr("number of MiB"));
  EXPECT_THAT(refusal_of("--vdev"), HasSubstr("needs a value"));
  EXPECT_THAT(refusal_of("--log-level="), HasSubstr("needs a value"));
  EXPECT_THAT(refusal_of("--no-huge=1"), HasSubstr("takes no value"));
  EXPECT_THAT(refusal_of("--iova-mode=virtual"), StartsWith("FI_UET_DPDK_ARGS: "));
}

// --- Memory by node

/// A folder in the place of /sys.
class MemoryNodesTest : public testing::Test {
 protected:
  ~MemoryNodesTest() override { std::filesystem::remove_all(sys_); }
  void write(const std::string& file, const std::string& content) const {
    const std::filesystem::path path = sys_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content << '\n';
  }
  const std::string sys_ = testing::TempDir() + "uet-sys-" + std::to_string(getpid());
};

TEST_F(MemoryNodesTest, hugepages__are_counted_by_node) {
  write("kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3");
  EXPECT_THAT(free_hugepages(sys_), ElementsAre(3u << 21));
  write("devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", "1");
  write("devices/system/node/node2/hugepages/hugepages-2048kB/free_hugepages", "2");
  write("devices/system/node/node2/hugepages/hugepages-1048576kB/free_hugepages", "1");
  write("devices/system/node/online", "0,2");
  EXPECT_THAT(free_hugepages(sys_), ElementsAre(1u << 21, 0u, kGiB + (2u << 21)));
  EXPECT_THAT(free_hugepages(sys_ + "/nowhere"), ElementsAre(0u));
}

TEST_F(MemoryNodesTest, node_of_a_device__is_what_the_kernel_says) {
  write("bus/pci/devices/0000:3b:00.1/numa_node", "1");
  write("bus/auxiliary/devices/numa_node", "2");  // seen from the device: its parent's
  std::filesystem::create_directories(sys_ + "/bus/auxiliary/devices/mlx5_core.sf.2");
  write("class/net/eth1/device/numa_node", "3");
  write("class/net/eth2/device/numa_node", "-1");
  EXPECT_EQ(node_of_device(spec_of("0000:3b:00.1"), sys_), 1);
  EXPECT_EQ(node_of_device(spec_of("3b:00.1"), sys_), 1);
  EXPECT_EQ(node_of_device(spec_of("auxiliary:mlx5_core.sf.2"), sys_), 2);
  EXPECT_EQ(node_of_device(spec_of("net_af_packet0,iface=eth1"), sys_), 3);
  EXPECT_EQ(node_of_device(spec_of("net_af_packet0,iface=eth2"), sys_), kAnyNode);
  EXPECT_EQ(node_of_device(spec_of("net_memif0,role=client"), sys_), kAnyNode);
  EXPECT_EQ(node_of_device(spec_of("0000:af:00.0"), sys_), kAnyNode);
}

TEST_F(MemoryNodesTest, node_of_cpus__is_that_which_has_them_all) {
  for (const char* file : {"node0/cpu0/x", "node0/cpu1/x", "node1/cpu2/x", "node1/cpu3/x"})
    write(std::string("devices/system/node/") + file, "");
  EXPECT_EQ(node_of_cpus({0, 1}, sys_), 0);
  EXPECT_EQ(node_of_cpus({3}, sys_), 1);
  EXPECT_EQ(node_of_cpus({1, 2}, sys_), kAnyNode);
  EXPECT_EQ(node_of_cpus({}, sys_), kAnyNode);
}

// --- Devices

TEST(DeviceSpec, arguments__are_passed_on_as_written) {
  const DeviceSpec tap = spec_of("net_tap0,iface=dpt0,persist");
  EXPECT_EQ(tap.devargs(), "net_tap0,iface=dpt0,persist");
  const DeviceSpec failsafe = spec_of("net_failsafe0,dev(net_null0,size=64),dev(net_null1)");
  EXPECT_EQ(failsafe.arguments,
            (std::vector<std::string>{"dev(net_null0,size=64)", "dev(net_null1)"}));
  EXPECT_EQ(spec_of("0000:01:00.0,representor=[0,1]").arguments,
            std::vector<std::string>{"representor=[0,1]"});
}

TEST(DeviceSpec, keys_of_memif__are_known_and_named_in_the_refusal_of_others) {
  DeviceSpec spec;
  std::string error;
  EXPECT_FALSE(parse_device_spec("dpdk:net_memif0,rule=server", spec, error));
  for (const MemifKey& key : kMemifKeys) {
    const std::string name(key.name);
    EXPECT_NE(error.find(name + "="), std::string::npos) << error;
    std::string none;
    DeviceSpec taken;
    EXPECT_TRUE(parse_device_spec("dpdk:net_memif0," + name + "=1", taken, none)) << none;
  }
  EXPECT_NE(error.find("owner-uid=<number>"), std::string::npos) << error;
}

TEST(DeviceSpec, kinds__are_told_by_the_name) {
  EXPECT_EQ(spec_of("01:00.0").kind, DeviceKind::kPci);
  EXPECT_EQ(spec_of("auxiliary:mlx5_core.sf.2").kind, DeviceKind::kOtherBus);
  EXPECT_EQ(spec_of("vmbus:635a7ae3-091e-4410-ad59-667c4f8c04c3").kind, DeviceKind::kOtherBus);
  EXPECT_EQ(spec_of("net_bonding0").kind, DeviceKind::kTeam);
  EXPECT_EQ(spec_of("net_failsafe0,dev(net_null0)").kind, DeviceKind::kTeam);
  EXPECT_TRUE(spec_of("auxiliary:mlx5_core.sf.2").is_hardware());
  EXPECT_FALSE(spec_of("net_tap0").is_hardware());
}

TEST(DeviceSpec, the_kernel_sees_frames__of_af_packet_and_of_pcap_on_an_interface) {
  EXPECT_TRUE(spec_of("net_af_packet0,iface=eth1").is_seen_by_kernel());
  EXPECT_TRUE(spec_of("net_pcap0,iface=eth1").is_seen_by_kernel());
  EXPECT_FALSE(spec_of("net_pcap0,rx_pcap=in.pcap").is_seen_by_kernel());
  EXPECT_FALSE(spec_of("net_af_xdp0,iface=eth1").is_seen_by_kernel());
}

// --- MTU

TEST(ChooseMtu, without_a_wish__is_what_all_can_carry) {
  EXPECT_EQ(choose_mtu({.suggested = 8960}).ip_mtu, 8960u);
  EXPECT_EQ(choose_mtu({.own = 4200, .device_max = 9600}).ip_mtu, 4200u);
  EXPECT_EQ(choose_mtu({}).ip_mtu, 1500u);
  const MtuChoice cut = choose_mtu({.suggested = 9000, .device_max = 3400, .kernel = 9000});
  EXPECT_EQ(cut.ip_mtu, 3400u);
  EXPECT_THAT(cut.remark, HasSubstr("FI_UET_MTU=3400"));
  EXPECT_THAT(choose_mtu({.suggested = 1500, .kernel = 1500}).remark, IsEmpty());
}

// A bond of interfaces with MTU 1500 carries no more, and its driver says so.
TEST(ChooseMtu, of_a_device_made_of_others__is_the_driver_s) {
  for (const char* name : {"net_bonding0", "net_failsafe0,dev(net_null0)"}) {
    EXPECT_EQ(default_ip_mtu(spec_of(name)), 0u);
    EXPECT_TRUE(has_real_mtu(spec_of(name).kind));
    EXPECT_FALSE(names_real_mtu_max(spec_of(name).kind));
  }
}

// The loopback interface has 65536.
TEST(ChooseMtu, an_interface_that_carries_more_than_uet_needs__is_used_with_less) {
  EXPECT_EQ(choose_mtu({.suggested = 65536, .kernel = 65536}).ip_mtu, kLargestIpMtu);
}

// A peer with a larger MTU sends what its own port carries.
TEST(PacketBytes, a_memif_takes_any_legal_payload) {
  constexpr std::size_t kLargestPayload = 8192, kHeaders = 256;
  EXPECT_GE(packet_bytes_min(spec_of("net_memif0,role=server")), kLargestPayload + kHeaders);
  EXPECT_EQ(packet_bytes_min(spec_of("net_tap0")), 0u);
}

TEST(ChooseMtu, a_wish_that_cannot_be__is_refused_with_the_limit) {
  EXPECT_EQ(choose_mtu({.wanted = 9000, .own = 1500, .device_max = 9600}).ip_mtu, 9000u);
  const MtuChoice kernel = choose_mtu({.wanted = 9000, .kernel = 1500});
  EXPECT_EQ(kernel.ip_mtu, 0u);
  EXPECT_THAT(kernel.error, HasSubstr("interface under it has MTU 1500"));
  EXPECT_THAT(kernel.error, HasSubstr("FI_UET_MTU=9000"));
  EXPECT_THAT(choose_mtu({.wanted = 9000, .device_max = 2026}).error,
              HasSubstr("at most MTU 2026"));
}

TEST(ChooseMtu, outside_of_what_uet_runs_with__is_refused) {
  EXPECT_THAT(choose_mtu({.wanted = 1279}).error, HasSubstr("1280"));
  EXPECT_THAT(choose_mtu({.wanted = 16129}).error, HasSubstr("16128"));
  EXPECT_THAT(choose_mtu({.suggested = 1500, .kernel = 1000}).error, HasSubstr("1280"));
}

TEST(DeviceSpec, slots_of_af_packet_hold_a_packet_and_fill_blocks_of_whole_pages) {
  for (const std::size_t page : {4096, 16384, 65536}) {
    for (const std::size_t ip_mtu : {1500, 3000, 4200, 9000}) {
      SCOPED_TRACE(std::to_string(page) + " " + std::to_string(ip_mtu));
      DeviceSpec spec = spec_of("net_af_packet0,iface=lo");
      add_default_arguments(ip_mtu, spec, page);
      if (ip_mtu == 1500) {
        EXPECT_FALSE(spec.has_argument("framesz")) << "the driver's own";
        continue;
      }
      const std::size_t slot = std::stoul(spec.argument("framesz"));
      const std::size_t block = std::stoul(spec.argument("blocksz"));
      EXPECT_GT(slot, ip_mtu + 96);
      EXPECT_LE(slot, 16384u) << "packet buffers have to hold one";
      EXPECT_EQ(block % page, 0u);
      EXPECT_EQ(block % slot, 0u) << "frames without gaps";
      EXPECT_EQ(std::stoul(spec.argument("framecnt")) % (block / slot), 0u);
    }
  }
}

}  // namespace
}  // namespace uet::dpdk
