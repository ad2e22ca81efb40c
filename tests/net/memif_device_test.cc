/// memif servers and clients that come and go in one process: their sockets, and the connections of a pair.

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "lib/dpdk/memif_listener.h"
#include "tests/net/dpdk_guest.h"

namespace uet::dpdk {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

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

}  // namespace
}  // namespace uet::dpdk
