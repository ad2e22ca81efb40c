/// The DPDK plug-in as a program meets it: loaded by name, in a process that is not about DPDK.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <clocale>
#include <cstring>
#include <fstream>
#include <thread>

#include "lib/net/port_plugin.h"
#include "tests/net/malloc_counter.h"
#include "tests/net/stall_report.h"

namespace uet::dpdk {

using base::Instant;
using net::FabricAddress;

namespace {

FabricAddress address(const char* text) {
  return *FabricAddress::parse(text);
}

Instant clock_now() {
  return Instant::from_ns(std::chrono::steady_clock::now().time_since_epoch().count());
}

net::OpenPortFunction entry() {
  static net::OpenPortFunction function = [] {
    void* library = dlopen(UET_DPDK_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror());
    return library == nullptr
               ? nullptr
               : reinterpret_cast<net::OpenPortFunction>(dlsym(library, net::kDpdkPluginEntry));
  }();
  return function;
}

class DpdkPortTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(entry(), nullptr); }

  std::unique_ptr<net::Port> open(const std::string& spec, const char* our_address,
                                  std::uint16_t udp_port = 4793) {
    net::PortRequest request;
    request.spec = spec;
    request.address = address(our_address);
    request.udp_port = udp_port;
    request.packets = 1024;
    error_.clear();
    return entry()(request, trace_, error_);
  }

  /// A memif pair in one process.
  void open_pair() {
    static int serial = 0;
    const std::string socket =
        "/tmp/uet-test-" + std::to_string(getpid()) + "-" + std::to_string(serial++);
    a_ = open("dpdk:net_memif0,role=server,id=0,socket=" + socket, "10.0.0.1");
    ASSERT_TRUE(a_) << error_;
    b_ = open("dpdk:net_memif1,role=client,id=0,socket=" + socket, "10.0.0.2");
    ASSERT_TRUE(b_) << error_;
  }

  static net::TxPacket make(net::Port& from, const FabricAddress& to, std::size_t bytes) {
    net::TxPacket tx;
    tx.packet = from.pool().allocate();
    std::memset(tx.packet.append(bytes), 0x42, bytes);
    tx.destination = to;
    tx.entropy = 4242;
    tx.tos = net::TosByte::of(46, 2);
    return tx;
  }
  static void turn(net::Port& port) {
    const Instant now = clock_now();
    if (port.next_deadline() <= now) port.on_deadline(now);
  }
  /// Sends `bytes` from A to B and waits, bounded, until B has them. A memif pair comes up in a dozen turns of three threads that sleep
  /// while this one spins: milliseconds, and seven seconds where forty threads share two cores. The failure tells how the two ends are.
  bool passes(std::size_t bytes, net::RxPacket* received = nullptr) {
    if (passes_within(base::Duration::from_seconds(60), bytes, received)) return true;
    std::string report = is_sent_ ? "A took the packet" : "A did not take the packet";
    report += "\n" + net::state_of("A", *a_, clock_now()) + net::state_of("B", *b_, clock_now()) +
              net::drops_of(trace_) + net::threads_of_process() + net::named_sockets_of_process();
    // Whether that packet alone was lost, or none gets through.
    report += passes_within(base::Duration::from_seconds(2), bytes, nullptr)
                  ? "another packet passed then"
                  : "another packet did not pass either";
    ADD_FAILURE() << report;
    return false;
  }
  bool passes_within(base::Duration time, std::size_t bytes, net::RxPacket* received) {
    net::TxPacket tx = make(*a_, b_->facts().address, bytes);
    is_sent_ = false;
    const Instant deadline = clock_now() + time;
    while (clock_now() < deadline) {
      if (!is_sent_) is_sent_ = a_->send(clock_now(), {&tx, 1}) == 1;
      turn(*a_);
      turn(*b_);
      std::array<net::RxPacket, 32> burst;
      a_->receive(clock_now(), burst);
      if (b_->receive(clock_now(), burst) == 0) continue;
      const bool is_whole =
          burst[0].packet.size() == bytes && burst[0].packet.data()[bytes - 1] == 0x42;
      if (received != nullptr) *received = std::move(burst[0]);
      return is_whole;
    }
    return false;
  }

  base::Trace trace_;
  std::string error_;
  std::unique_ptr<net::Port> a_;
  std::unique_ptr<net::Port> b_;
  bool is_sent_ = false;
};

struct Surroundings {
  cpu_set_t affinity;
  std::array<struct sigaction, 32> handlers;
  std::string locale;
  static Surroundings now() {
    Surroundings s{};
    sched_getaffinity(0, sizeof s.affinity, &s.affinity);
    for (int i = 1; i < 32; ++i) sigaction(i, nullptr, &s.handlers[static_cast<std::size_t>(i)]);
    s.locale = std::setlocale(LC_ALL, nullptr);
    return s;
  }
};

/// What `body` writes to stdout.
template <typename F>
std::string stdout_of(F body) {
  std::fflush(stdout);
  const std::string path = "/tmp/uet-test-stdout-" + std::to_string(getpid());
  const int saved = dup(STDOUT_FILENO);
  std::FILE* file = std::fopen(path.c_str(), "w+");
  dup2(fileno(file), STDOUT_FILENO);
  body();
  std::fflush(stdout);
  dup2(saved, STDOUT_FILENO);
  close(saved);
  std::fclose(file);
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  unlink(path.c_str());
  return text;
}

}  // namespace

// First, because it watches how EAL starts.
TEST_F(DpdkPortTest, open__is_a_good_guest) {
  signal(SIGINT, SIG_IGN);
  std::setlocale(LC_ALL, "C");
  const Surroundings before = Surroundings::now();
  const std::string printed = stdout_of([&] { a_ = open("dpdk:net_null0", "10.0.0.1"); });
  ASSERT_TRUE(a_) << error_;
  const Surroundings after = Surroundings::now();
  EXPECT_EQ(printed, "");
  EXPECT_TRUE(CPU_EQUAL(&before.affinity, &after.affinity));
  for (std::size_t i = 1; i < 32; ++i)
    EXPECT_EQ(before.handlers[i].sa_handler, after.handlers[i].sa_handler) << "signal " << i;
  EXPECT_EQ(before.locale, after.locale);
  signal(SIGINT, SIG_DFL);
}

TEST_F(DpdkPortTest, memif__delivers_between_two_ports_of_one_process) {
  open_pair();
  net::RxPacket rx;
  ASSERT_TRUE(passes(100, &rx));
  EXPECT_EQ(rx.source, address("10.0.0.1"));
  EXPECT_EQ(rx.entropy, 4242);
  EXPECT_EQ(rx.tos.value, net::TosByte::of(46, 2).value);
  EXPECT_TRUE(passes(8192 + 164));
  EXPECT_GE(a_->facts().ip_mtu, 8192u + 164 + 48);
}

TEST_F(DpdkPortTest, memif__pools_are_whole_after_traffic) {
  open_pair();
  ASSERT_TRUE(passes(64));
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(passes(512));
  EXPECT_EQ(a_->pool().available(), a_->pool().capacity());
  EXPECT_EQ(b_->pool().available(), b_->pool().capacity());
}

TEST_F(DpdkPortTest, memif__survives_close_and_reopen) {
  for (int round = 0; round < 3; ++round) {
    open_pair();
    EXPECT_TRUE(passes(300)) << "round " << round;
    b_.reset();
    a_.reset();
  }
}

// A server that was closed is parked, and its listener still there: a client that comes meanwhile must find the server once it is back.
TEST_F(DpdkPortTest, memif__client_meets_a_server_that_was_away) {
  const std::string socket = "/uet-test-away-" + std::to_string(getpid());
  const std::string server = "dpdk:net_memif6,role=server,id=0,socket=" + socket;
  a_ = open(server, "10.0.0.1");
  ASSERT_TRUE(a_) << error_;
  a_.reset();
  b_ = open("dpdk:net_memif7,role=client,id=0,socket=" + socket, "10.0.0.2");
  ASSERT_TRUE(b_) << error_;
  const Instant some_time = clock_now() + base::Duration::from_ms(300);
  std::array<net::RxPacket, 8> burst;
  while (clock_now() < some_time) b_->receive(clock_now(), burst);
  a_ = open(server, "10.0.0.1");
  ASSERT_TRUE(a_) << error_;
  EXPECT_TRUE(passes(300));
  EXPECT_TRUE(passes(8192));
}

TEST_F(DpdkPortTest, memif__without_a_peer_takes_nothing) {
  const std::string socket = "/tmp/uet-test-late-" + std::to_string(getpid());
  a_ = open("dpdk:net_memif4,role=client,id=0,socket=" + socket, "10.0.0.1");
  ASSERT_TRUE(a_) << error_;
  net::TxPacket tx = make(*a_, address("10.0.0.2"), 64);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a_->send(clock_now(), {&tx, 1}), 0u);
  EXPECT_EQ(trace_.drops_total(), 0u);
}

TEST_F(DpdkPortTest, data_path__no_malloc_and_no_sleep) {
  open_pair();
  ASSERT_TRUE(passes(64));
  std::array<net::TxPacket, 16> burst;
  std::array<net::RxPacket, 32> received;
  const std::uint64_t before = malloc_calls();
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const long sleeps = usage.ru_nvcsw;
  std::size_t got = 0;
  const auto receive = [&] {
    got += b_->receive(clock_now(), received);
    for (auto& rx : received) rx.packet.reset();
  };
  const auto end = clock_now() + base::Duration::from_seconds(20);
  for (int i = 0; i < 2000; ++i) {
    for (auto& tx : burst) tx = make(*a_, address("10.0.0.2"), 1024);
    // A port takes nothing while DPDK's interrupt thread has its turn.
    std::span<net::TxPacket> left(burst);
    while (!left.empty() && clock_now() < end) {
      left = left.subspan(a_->send(clock_now(), left));
      receive();
    }
  }
  while (got < 2000u * burst.size() && clock_now() < end) receive();
  EXPECT_EQ(malloc_calls(), before);
  getrusage(RUSAGE_THREAD, &usage);
  EXPECT_EQ(usage.ru_nvcsw, sleeps);
  EXPECT_EQ(got, 2000u * burst.size());
}

TEST_F(DpdkPortTest, open__errors_say_what_to_do) {
  const auto fails = [&](const std::string& spec, const char* hint) {
    std::string printed = stdout_of([&] { EXPECT_EQ(open(spec, "10.0.0.1"), nullptr) << spec; });
    EXPECT_EQ(printed, "") << spec;
    EXPECT_NE(error_.find(hint), std::string::npos) << error_;
    EXPECT_EQ(error_.find(spec), 0u) << error_;
  };
  fails("dpdk:", "write dpdk:<device>");
  fails("dpdk:nosuchdriver0", "devices are named");
  fails("dpdk:net_memif8,role", "write key=value");
  fails("dpdk:net_memif8,role=boss", "role=server|client");
  fails("dpdk:net_memif8,colour=red", "role=server|client");
  fails("dpdk:net_af_packet8,iface=nosuchif0", "af_packet");
  fails("dpdk:0000:ff:1f.7", "without PCI");
  // Nothing of that stands in the way of a good one.
  a_ = open("dpdk:net_memif8,role=server,socket=/tmp/uet-test-ok", "10.0.0.1");
  EXPECT_TRUE(a_) << error_;
  EXPECT_EQ(open("dpdk:net_memif8,role=server,socket=/tmp/uet-test-ok", "10.0.0.2"), nullptr);
  EXPECT_NE(error_.find("open in this process already"), std::string::npos) << error_;
}

TEST_F(DpdkPortTest, open__plane_that_may_block_is_refused) {
  net::PortRequest request;
  request.spec = "dpdk:net_af_packet0,iface=lo,qdisc_bypass=0";
  request.address = address("10.0.0.1");
  request.planes = 2;
  EXPECT_EQ(entry()(request, trace_, error_), nullptr);
  EXPECT_NE(error_.find("leave qdisc_bypass out"), std::string::npos) << error_;
}

TEST_F(DpdkPortTest, ring__device_without_a_mac_gets_one) {
  a_ = open("dpdk:net_ring0", "10.0.0.1");
  ASSERT_TRUE(a_) << error_;
  EXPECT_EQ(a_->facts().mac[0], 0x02);
  // A ring device hears itself: its own question for a neighbor is not a conflict.
  net::TxPacket tx = make(*a_, address("10.0.0.9"), 64);
  EXPECT_EQ(a_->send(clock_now(), {&tx, 1}), 1u);
  std::array<net::RxPacket, 8> burst;
  EXPECT_EQ(a_->receive(clock_now(), burst), 0u);
  EXPECT_EQ(trace_.drops(base::DropReason::kAddressConflict), 0u);
}

// The kernel's UDP port keeps it from refusing our packets; the next process has to get it, whatever became of a child.
TEST_F(DpdkPortTest, abandon_in_child__leaves_the_kernel_s_udp_port_to_the_parent) {
  if (const int raw = socket(AF_PACKET, SOCK_RAW, 0); raw >= 0)
    close(raw);
  else
    GTEST_SKIP() << "needs CAP_NET_RAW";
  constexpr std::uint16_t kPort = 14796;
  auto port = open("dpdk:net_af_packet9,iface=lo", "127.0.0.1", kPort);
  ASSERT_TRUE(port) << error_;
  const auto takes_port = [] {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(kPort);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool is_taken = bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
    close(fd);
    return is_taken;
  };
  EXPECT_FALSE(takes_port());
  std::array<int, 2> from_child{}, to_child{};
  ASSERT_EQ(pipe(from_child.data()), 0);
  ASSERT_EQ(pipe(to_child.data()), 0);
  const pid_t child = fork();
  char byte = 0;
  if (child == 0) {
    close(to_child[1]);
    port->abandon_in_child();
    (void)!write(from_child[1], "!", 1);
    (void)!read(to_child[0], &byte, 1);  // until the parent is done
    _exit(0);
  }
  ASSERT_GT(child, 0);
  EXPECT_EQ(read(from_child[0], &byte, 1), 1);
  EXPECT_FALSE(takes_port()) << "the parent's";
  port.reset();
  EXPECT_TRUE(takes_port());
  for (const int fd : {from_child[0], from_child[1], to_child[0], to_child[1]}) close(fd);
  waitpid(child, nullptr, 0);
}

TEST_F(DpdkPortTest, open__two_threads_use_ports_of_their_own) {
  std::array<std::thread, 2> threads;
  std::array<std::string, 2> wrong;
  for (std::size_t i = 0; i < threads.size(); ++i)
    threads[i] = std::thread([&, i] {
      base::Trace trace;
      net::PortRequest request;
      request.spec = "dpdk:net_ring" + std::to_string(10 + i);
      request.address = address("10.0.0.1");
      request.packets = 512;
      auto port = entry()(request, trace, wrong[i]);
      if (!port) wrong[i] = "not open: " + wrong[i];
      for (int n = 0; port && n < 1000 && wrong[i].empty(); ++n) {
        net::TxPacket tx = make(*port, address("10.0.0.1"), 64);
        std::array<net::RxPacket, 4> burst;
        const std::size_t sent = port->send(clock_now(), {&tx, 1});
        const std::size_t came = port->receive(clock_now(), burst);
        if (sent != 1 || came != 1)
          wrong[i] = "packet " + std::to_string(n) + ": " + std::to_string(sent) + " sent, " +
                     std::to_string(came) + " came";
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong[0], "");
  EXPECT_EQ(wrong[1], "");
}

}  // namespace uet::dpdk
