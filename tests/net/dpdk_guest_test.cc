/// DPDK devices that come and go in one process, which has a life of its own: nothing of it may be lost or taken, and nothing left.
/// Real drivers; those that sit on an interface get one in a network namespace of the test's own.

// A test of what EAL's interrupt thread does needs connections of its own there.
#define ALLOW_EXPERIMENTAL_API

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <rte_eal.h>
#include <rte_interrupts.h>
#include <rte_malloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <utility>

#include "lib/dpdk/closing_numbers.h"
#include "lib/dpdk/dpdk_device.h"
#include "lib/dpdk/eal.h"
#include "lib/dpdk/interrupt_gate.h"
#include "lib/dpdk/interrupt_thread.h"
#include "lib/dpdk/kernel_neighbors.h"
#include "lib/dpdk/memif_listener.h"

namespace uet::dpdk {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

/// A namespace with a veth pair, uetveth0 and uetveth1, made once for the process; false where that is not allowed.
bool has_veth() {
  static const bool made = [] {
    return unshare(CLONE_NEWNET) == 0 &&
           std::system(
               "ip link set lo up && ip link add uetveth0 type veth peer name uetveth1 && "
               "ip link set uetveth0 up && ip link set uetveth1 up") == 0;
  }();
  return made;
}

bool is_long() {
  const char* const depth = std::getenv("UET_TEST_DEPTH");
  return depth != nullptr && std::string(depth) == "long";
}

std::size_t entries_of(const char* folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

std::size_t dpdk_bytes() {
  std::size_t total = 0;
  for (int socket = 0; socket < 2; ++socket) {
    rte_malloc_socket_stats stats{};
    if (rte_malloc_get_socket_stats(socket, &stats) == 0) total += stats.heap_allocsz_bytes;
  }
  return total;
}

class DpdkGuestTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(ensure_eal({.memory_bytes = 64 << 20}, error_)) << error_; }

  std::unique_ptr<DpdkDevice> open(const std::string& spec, std::size_t mtu = 0) {
    DpdkDeviceConfig config{.packets = 256, .ip_mtu = mtu};
    error_.clear();
    if (!parse_device_spec("dpdk:" + spec, config.spec, error_)) return nullptr;
    const std::size_t sized = mtu != 0 ? mtu : default_ip_mtu(config.spec);
    if (sized != 0) add_default_arguments(sized, config.spec);
    return DpdkDevice::open(config, trace_, error_);
  }

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
  static std::string path(const char* name) {
    return "/tmp/uet-guest-" + std::to_string(getpid()) + "-" + name;
  }

  base::Trace trace_;
  std::string error_;
};

// --- Many times

struct Reopened {
  const char* name;
  const char* spec;
  bool needs_interface = false;
  std::size_t driver_loses = 0;  ///< bytes with every opening, without our doing
};

void PrintTo(const Reopened& device, std::ostream* out) {
  *out << device.name;
}

class DpdkReopenTest : public DpdkGuestTest, public testing::WithParamInterface<Reopened> {};

TEST_P(DpdkReopenTest, two_hundred_opens_and_closes__leave_no_descriptor_thread_or_memory) {
  if (GetParam().needs_interface && !has_veth())
    GTEST_SKIP() << "needs root, network namespaces and veth";
  const auto once = [&] {
    auto device = open(GetParam().spec);
    return device != nullptr;
  };
  // The kernel takes a tenth of a second to let go of a packet socket.
  const bool is_slow = GetParam().needs_interface && !is_long();
  // What drivers set up once per process is there after the first.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(once()) << error_;
  const std::size_t descriptors = entries_of("/proc/self/fd");
  const std::size_t threads = entries_of("/proc/self/task");
  const std::size_t bytes = dpdk_bytes();
  const std::size_t rounds = is_slow ? 20 : 200;
  for (std::size_t i = 0; i < rounds; ++i) ASSERT_TRUE(once()) << "round " << i << ": " << error_;
  EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
  EXPECT_LE(entries_of("/proc/self/task"), threads + 1);  // one may be on its way out
  EXPECT_LE(dpdk_bytes(), bytes + rounds * GetParam().driver_loses + 4096);
}

INSTANTIATE_TEST_SUITE_P(
    Devices, DpdkReopenTest,
    testing::Values(Reopened{"null", "net_null20", false, 384}, Reopened{"ring", "net_ring20"},
                    Reopened{"memif_abstract_server", "net_memif20,role=server,socket=/uet/reopen"},
                    Reopened{"memif_file_server",
                             "net_memif21,role=server,socket-abstract=no,socket=/tmp/uet-reopen"},
                    Reopened{"memif_client", "net_memif22,role=client,socket=/uet/reopen2"},
                    Reopened{"tap", "net_tap20,iface=uettap0", true},
                    Reopened{"af_packet", "net_af_packet20,iface=uetveth0", true},
                    Reopened{"af_xdp", "net_af_xdp20,iface=uetveth0", true, 192},
                    Reopened{"pcap", "net_pcap20,iface=uetveth0", true},
                    Reopened{"vhost", "net_vhost20,iface=/tmp/uet-vhost-reopen"}),
    [](const auto& device) { return std::string(device.param.name); });

// --- memif sockets

TEST_F(DpdkGuestTest, memif_server__opens_again_on_the_default_socket) {
  for (int round = 0; round < 3; ++round)
    ASSERT_TRUE(open("net_memif30,role=server,id=3")) << error_;
  // Not with arguments that the driver cannot be told any more.
  EXPECT_FALSE(open("net_memif30,role=server,id=3,mac=02:00:00:00:00:09"));
  EXPECT_THAT(error_, HasSubstr("with other arguments"));
  // Sizes are the client's to say.
  EXPECT_TRUE(open("net_memif30,role=server,id=3,rsize=10")) << error_;
}

// DPDK has places for 32 ports, and closed ones keep theirs until they are needed.
TEST_F(DpdkGuestTest, memif_clients__of_many_sockets_come_and_go) {
  for (int i = 0; i < 60; ++i)
    ASSERT_TRUE(open("net_memif50" + std::to_string(i) + ",role=client,socket=/uet/many" +
                     std::to_string(i)))
        << error_;
}

TEST_F(DpdkGuestTest, memif_server__closed_makes_room_for_another_process) {
  const std::string socket = path("room");
  const std::string spec = "net_memif31,role=server,socket-abstract=no,socket=" + socket;
  auto device = open(spec);
  ASSERT_TRUE(device) << error_;
  EXPECT_TRUE(fs::exists(socket));
  device.reset();
  EXPECT_FALSE(fs::exists(socket));
  device = open(spec);
  ASSERT_TRUE(device) << error_;
  EXPECT_TRUE(fs::exists(socket));
}

// A name of the network namespace is given back as a file is.
TEST_F(DpdkGuestTest, memif_server__closed_gives_back_its_name) {
  const SocketPlace place{.path = path("name")};
  const std::string spec = "net_memif36,role=server,socket=" + place.path;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(open(spec)) << error_;
    auto other = MemifListener::open(place, error_);
    ASSERT_TRUE(other) << error_;
    EXPECT_FALSE(open(spec));
    EXPECT_THAT(error_, HasSubstr("another process listens on " + place.path));
  }
}

/// Whether frames get from one end of a memif to the other.
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
  return false;
}

// Who may use a file is said by its permissions; a name of the network namespace would be open to all users of the host.
TEST_F(DpdkGuestTest, memif_server__on_a_file_is_reached_by_that_file_alone) {
  const auto names_of_ours = [] {
    std::ifstream all("/proc/net/unix");
    const std::string text((std::istreambuf_iterator<char>(all)), {});
    return text.find("@uet-memif-" + std::to_string(getpid())) != std::string::npos;
  };
  const bool were_there = names_of_ours();
  std::filesystem::create_directory(path("folder"));
  const std::string socket = path("folder/file");
  for (int round = 0; round < 2; ++round) {
    auto server = open("net_memif40,role=server,socket-abstract=no,socket=" + socket);
    ASSERT_TRUE(server) << error_;
    const std::filesystem::directory_iterator files(path("folder"));
    EXPECT_EQ(std::distance(begin(files), end(files)), 1);
    EXPECT_EQ(names_of_ours(), were_there);
    auto client = open("net_memif41,role=client,socket-abstract=no,socket=" + socket);
    ASSERT_TRUE(client) << error_;
    EXPECT_TRUE(passes(*client, *server));
  }
  EXPECT_TRUE(std::filesystem::is_empty(path("folder")));
}

// The program does not turn its loop, so no client is greeted; one that is killed meanwhile must not take the server with it.
TEST_F(DpdkGuestTest, memif_server__outlives_clients_that_vanish_before_they_are_greeted) {
  const SocketPlace place{.path = path("vanish")};
  auto server = open("net_memif37,role=server,socket=" + place.path);
  ASSERT_TRUE(server) << error_;
  for (int i = 0; i < 2; ++i) {
    const int client = connect_to(place);
    ASSERT_GE(client, 0);
    close(client);
  }
  auto client = open("net_memif38,role=client,socket=" + place.path);
  ASSERT_TRUE(client) << error_;
  EXPECT_TRUE(passes(*client, *server));
  EXPECT_TRUE(passes(*server, *client));
}

// Clients that give up and come again, while the program does not turn its loop, must not fill what listens: the next one's driver would
// wait in connect().
TEST_F(DpdkGuestTest, memif_server__takes_in_every_client_while_its_program_is_busy) {
  const SocketPlace place{.path = path("busy")};
  auto server = open("net_memif44,role=server,socket=" + place.path);
  ASSERT_TRUE(server) << error_;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  int taken_in = 0;
  while (taken_in < 200 && std::chrono::steady_clock::now() < end) {
    const int client = connect_to(place);
    if (client >= 0) {
      ++taken_in;
      close(client);
    } else {
      std::this_thread::yield();
    }
  }
  EXPECT_EQ(taken_in, 200);
  auto client = open("net_memif45,role=client,socket=" + place.path);
  ASSERT_TRUE(client) << error_;
  EXPECT_TRUE(passes(*client, *server));
}

// It takes a dozen turns of the loop: more than a second of this program, or of one on a crowded machine.
TEST_F(DpdkGuestTest, memif_pair__comes_up_however_seldom_its_program_turns_the_loop) {
  auto server = open("net_memif46,role=server,socket=/uet/seldom");
  auto client = open("net_memif47,role=client,socket=/uet/seldom");
  ASSERT_TRUE(server && client) << error_;
  std::array<net::Packet, 8> burst;
  const auto is_up = [&] { return server->has_link() && client->has_link(); };
  for (int turn = 0; turn < 60 && !is_up(); ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    server->receive_frames(burst);
    client->receive_frames(burst);
  }
  EXPECT_TRUE(is_up());
  EXPECT_EQ(trace_.count(base::EventId::kLinkRetried), 0u);
}

TEST_F(DpdkGuestTest, memif_pair__comes_up_however_often_it_is_opened_again) {
  for (int round = 0; round < 40; ++round) {
    auto server = open("net_memif39,role=server,socket=/uet/again");
    auto client = open("net_memif40,role=client,socket=/uet/again");
    ASSERT_TRUE(server && client) << error_;
    ASSERT_TRUE(passes(*client, *server)) << "round " << round;
    if (round % 2 == 0) server.reset();
  }
}

class Listener {
 public:
  explicit Listener(const std::string& path) {
    fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd_, 64), 0);
  }
  ~Listener() { stop(); }
  void stop() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  bool was_bothered() const {
    pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
    return poll(&wait, 1, 50) != 0;
  }

 private:
  int fd_;
};

// A connection that comes to nothing is given up after 200 looks at it, and the trace says so.
TEST_F(DpdkGuestTest, memif_client__tries_again_when_its_server_does_not_answer) {
  const std::string socket = path("silent");
  Listener silent(socket);
  auto client = open("net_memif43,role=client,socket-abstract=no,socket=" + socket);
  ASSERT_TRUE(client) << error_;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::array<net::Packet, 8> burst;
  while (trace_.count(base::EventId::kLinkRetried) == 0 && std::chrono::steady_clock::now() < end)
    client->receive_frames(burst);
  EXPECT_EQ(trace_.count(base::EventId::kLinkRetried), 1u);
  silent.stop();
  auto server = open("net_memif42,role=server,socket-abstract=no,socket=" + socket);
  ASSERT_TRUE(server) << error_;
  EXPECT_TRUE(passes(*server, *client));
}

TEST_F(DpdkGuestTest, memif_server__takes_over_the_socket_of_a_dead_one_only) {
  const std::string socket = path("stale");
  const std::string spec = "net_memif32,role=server,socket-abstract=no,socket=" + socket;
  Listener other(socket);
  EXPECT_FALSE(open(spec));
  EXPECT_THAT(error_, HasSubstr("another process listens on " + socket));
  EXPECT_FALSE(other.was_bothered());
  other.stop();
  EXPECT_TRUE(open(spec)) << error_;
}

TEST_F(DpdkGuestTest, memif_server__does_not_remove_what_is_no_socket) {
  const std::string file = path("file");
  std::ofstream(file) << "of the user's";
  EXPECT_FALSE(open("net_memif33,role=server,socket-abstract=no,socket=" + file));
  EXPECT_THAT(error_, HasSubstr("is no socket"));
  EXPECT_EQ(fs::file_size(file), 13u);
  fs::remove(file);
}

// The last member that leaves opens the gate; one that joins before the thread has noticed must not find it shut for ever.
TEST_F(DpdkGuestTest, interrupt_thread__gets_through_however_members_come_and_go) {
  for (int i = 0; i < 300; ++i) {
    InterruptGate::Member member;
    member.join();
    InterruptGate::instance().let_through();
    member.leave();
    member.join();
    bool has_run = false;
    run_on_interrupt_thread([&] { has_run = true; });
    ASSERT_TRUE(has_run);
  }
}

/// A connection of which EAL's interrupt thread hears. It counts what it hears, and does what it was told to do then.
class HeardConnection {
 public:
  HeardConnection() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends_), 0);
    handle_ = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
    rte_intr_fd_set(handle_, ends_[0]);
    rte_intr_type_set(handle_, RTE_INTR_HANDLE_EXT);
    EXPECT_EQ(rte_intr_callback_register(handle_, on_event, this), 0);
  }
  ~HeardConnection() {
    forget();
    rte_intr_instance_free(handle_);
    for (const int fd : ends_)
      if (fd >= 0) close(fd);
  }
  void speak() { EXPECT_EQ(send(ends_[1], "!", 1, 0), 1); }
  /// As the memif driver ends a connection.
  void end() {
    forget();
    close(std::exchange(ends_[0], -1));
  }
  std::atomic<int> heard{0};
  std::function<void()> then;

 private:
  void forget() {
    if (ends_[0] >= 0) rte_intr_callback_unregister(handle_, on_event, this);
  }
  static void on_event(void* self) {
    auto* const connection = static_cast<HeardConnection*>(self);
    char byte = 0;
    if (recv(connection->ends_[0], &byte, 1, MSG_DONTWAIT) < 0) byte = 0;
    ++connection->heard;
    if (connection->then) connection->then();
  }

  int ends_[2] = {-1, -1};
  rte_intr_handle* handle_ = nullptr;
};

// Both have something to say when the thread asks, so whichever comes first ends the other, whose event is still to come.
TEST_F(DpdkGuestTest, connection_that_is_ended__leaves_its_event_to_no_other) {
  HeardConnection first, second;
  std::unique_ptr<HeardConnection> next;
  const auto end_the_other = [&](HeardConnection& other) {
    if (next != nullptr) return;
    close_connections([&] { other.end(); });
    next = std::make_unique<HeardConnection>();
  };
  first.then = [&] { end_the_other(second); };
  second.then = [&] { end_the_other(first); };
  run_on_interrupt_thread([&] {
    first.speak();
    second.speak();
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (first.heard + second.heard == 0 && std::chrono::steady_clock::now() < deadline)
    run_on_interrupt_thread([] {});
  for (int i = 0; i < 10; ++i) run_on_interrupt_thread([] {});
  ASSERT_TRUE(next);
  EXPECT_EQ(first.heard + second.heard, 1);
  EXPECT_EQ(next->heard, 0);
}

// --- The process around it

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

/// The other end of virtio_user devices: another process, since what it must do at last is to die.
class VhostPeer {
 public:
  explicit VhostPeer(std::string socket) : socket_(std::move(socket)) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    process_ = fork();
    if (process_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      execl("/proc/self/exe", "dpdk_guest_test", "--uet-vhost-peer", socket_.c_str(),
            std::to_string(ready[1]).c_str(), nullptr);
      _exit(9);
    }
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
  }
  ~VhostPeer() {
    end();
    unlink(socket_.c_str());
  }
  void end() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(std::exchange(process_, 0), nullptr, 0);
  }

 private:
  const std::string socket_;
  pid_t process_ = 0;
};

// The driver writes to a peer that is gone while it is closed.
TEST_F(DpdkGuestTest, virtio_user__whose_peer_vanished_closes_without_a_signal) {
  VhostPeer peer(path("peer"));
  auto device = open("net_virtio_user50,path=" + path("peer") + ",queues=1");
  EXPECT_TRUE(device) << error_;
  peer.end();
  signal(SIGPIPE, SIG_DFL);
  device.reset();
}

TEST_F(DpdkGuestTest, virtio_user__opened_and_closed_many_times_leaves_nothing) {
  VhostPeer peer(path("many"));
  const std::string spec = "net_virtio_user51,path=" + path("many") + ",queues=1";
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(open(spec)) << error_;
  const std::size_t descriptors = entries_of("/proc/self/fd");
  const std::size_t threads = entries_of("/proc/self/task");
  const std::size_t bytes = dpdk_bytes();
  const int rounds = is_long() ? 200 : 20;
  for (int i = 0; i < rounds; ++i) ASSERT_TRUE(open(spec)) << "round " << i << ": " << error_;
  EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
  EXPECT_LE(entries_of("/proc/self/task"), threads + 1);
  EXPECT_LE(dpdk_bytes(), bytes + 4096);
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

TEST_F(DpdkGuestTest, forked_child__closes_at_once_and_the_parent_goes_on) {
  auto memif = open("net_memif42,role=server,socket=/uet/fork");
  auto null = open("net_null42");
  ASSERT_TRUE(memif && null) << error_;
  std::vector<net::Packet> held;
  for (int i = 0; i < 200; ++i) held.push_back(null->pool().allocate());
  const std::size_t available = null->pool().available();
  const int status = status_of_child([&] {
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

TEST_F(DpdkGuestTest, arguments_of_the_user__come_too_late_for_a_running_dpdk) {
  EXPECT_FALSE(ensure_eal({.user_arguments = "--log-level=debug"}, error_));
  EXPECT_THAT(error_, HasSubstr("cannot be started again"));
}

// --- What kernel interfaces carry

TEST_F(DpdkGuestTest, mtu__above_that_of_the_interface_is_refused) {
  if (!has_veth()) GTEST_SKIP() << "needs root, network namespaces and veth";
  for (const char* driver : {"net_af_packet60", "net_pcap60", "net_af_xdp60"}) {
    EXPECT_FALSE(open(std::string(driver) + ",iface=uetveth0", 2000));
    EXPECT_THAT(error_, HasSubstr("interface under it has MTU 1500")) << driver;
  }
}

TEST_F(DpdkGuestTest, af_xdp__takes_the_largest_mtu_that_its_buffers_have) {
  if (!has_veth()) GTEST_SKIP() << "needs root, network namespaces and veth";
  ASSERT_EQ(std::system("ip link set uetveth0 mtu 3500 && ip link set uetveth1 mtu 3500"), 0);
  auto device = open("net_af_xdp61,iface=uetveth0");
  EXPECT_TRUE(device) << error_;
  EXPECT_THAT(error_, HasSubstr("FI_UET_MTU="));
  const std::size_t mtu = device ? device->facts().ip_mtu : 0;
  EXPECT_LT(mtu, 3500u);
  EXPECT_GT(mtu, 3300u);
  device.reset();
  std::system("ip link set uetveth0 mtu 1500 && ip link set uetveth1 mtu 1500");
}

// --- The kernel's neighbors

TEST_F(DpdkGuestTest, kernel_neighbors__are_read_and_heard_of) {
  if (!has_veth()) GTEST_SKIP() << "needs root, network namespaces and veth";
  ASSERT_EQ(
      std::system(
          "ip addr add 10.5.0.1/24 dev uetveth0 && ip addr add fd05::1/64 dev uetveth0 nodad && "
          "ip neigh replace 10.5.0.2 lladdr 02:00:00:00:05:02 dev uetveth0 nud permanent && "
          "ip neigh replace fd05::2 lladdr 02:00:00:00:05:06 dev uetveth0 nud permanent"),
      0);
  auto kernel = KernelNeighbors::open("uetveth0", error_);
  ASSERT_TRUE(kernel) << error_;
  const auto address = [](const char* text) { return *net::FabricAddress::parse(text); };
  net::MacAddress mac{};
  EXPECT_TRUE(kernel->ask(address("10.5.0.2"), mac));
  EXPECT_EQ(mac, (net::MacAddress{2, 0, 0, 0, 5, 2}));
  EXPECT_TRUE(kernel->ask(address("fd05::2"), mac));
  EXPECT_EQ(mac, (net::MacAddress{2, 0, 0, 0, 5, 6}));
  EXPECT_FALSE(kernel->ask(address("10.5.0.3"), mac));
  net::FabricAddress who;
  EXPECT_FALSE(kernel->poll(who, mac));
  ASSERT_EQ(
      std::system("ip neigh replace 10.5.0.3 lladdr 02:00:00:00:05:03 dev uetveth0 nud reachable"),
      0);
  ASSERT_TRUE(kernel->poll(who, mac));
  EXPECT_EQ(who, address("10.5.0.3"));
  EXPECT_EQ(mac, (net::MacAddress{2, 0, 0, 0, 5, 3}));
  EXPECT_FALSE(KernelNeighbors::open("nosuchif0", error_));
  EXPECT_THAT(error_, HasSubstr("nosuchif0"));
}

// Without hugepages only where EAL was started for it, so in a process of its own.
class ZeroCopyTest : public DpdkGuestTest {
  void SetUp() override {
    if (!ensure_eal({.memory_bytes = 64 << 20, .single_file = true}, error_)) FAIL() << error_;
  }
};

// First, because it is the first closing of a connection that opens a file of ours: that must not get a number of DPDK's memory.
TEST_F(ZeroCopyTest, memif_client__closed_while_it_connects_connects_again) {
  auto server = open("net_memif34,role=server,socket=/uet/zc-early");
  ASSERT_TRUE(server) << error_;
  std::array<net::Packet, 8> burst;
  for (const int turns : {6, 9, 4, 12}) {
    auto client = open("net_memif35,role=client,socket=/uet/zc-early,zero-copy=yes");
    ASSERT_TRUE(client) << error_;
    for (int turn = 0; turn < turns; ++turn) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      client->receive_frames(burst);
      server->receive_frames(burst);
    }
  }
  auto client = open("net_memif35,role=client,socket=/uet/zc-early,zero-copy=yes");
  ASSERT_TRUE(client) << error_;
  EXPECT_TRUE(passes(*client, *server));
}

// A connection that the server refuses or ends leaves the driver's lists of memory regions in disorder.
TEST_F(ZeroCopyTest, memif_client__finds_a_server_that_comes_later_and_comes_again) {
  auto client = open("net_memif35,role=client,socket=/uet/zc-later,zero-copy=yes");
  ASSERT_TRUE(client) << error_;
  std::array<net::Packet, 8> burst;
  const auto some_time = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  while (std::chrono::steady_clock::now() < some_time) client->receive_frames(burst);
  for (int round = 0; round < 3; ++round) {
    auto server = open("net_memif34,role=server,socket=/uet/zc-later");
    ASSERT_TRUE(server) << error_;
    EXPECT_TRUE(passes(*client, *server)) << "round " << round;
    EXPECT_TRUE(passes(*server, *client)) << "round " << round;
  }
}

TEST_F(ZeroCopyTest, memif_client__runs_without_copying) {
  auto server = open("net_memif34,role=server,socket=/uet/zc");
  ASSERT_TRUE(server) << error_;
  auto client = open("net_memif35,role=client,socket=/uet/zc,zero-copy=yes");
  ASSERT_TRUE(client) << error_;
  EXPECT_TRUE(passes(*client, *server));
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

}  // namespace
}  // namespace uet::dpdk

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--uet-vhost-peer")
    return uet::dpdk::be_vhost_peer(argv[2], std::atoi(argv[3]));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
