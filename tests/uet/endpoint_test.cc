/// The library as a program outside of the tree would use it: two endpoints on loopback addresses.

#include "uet/endpoint.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <thread>

#include "lib/ports/live_socket.h"

namespace uet {
namespace {

class EndpointTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string error;
    for (auto* side : {&a_, &b_}) {
      const std::string address = side == &a_ ? "127.0.77.1" : "127.0.77.2";
      *side = Endpoint::open({{"port", "udp"}, {"addr", address}}, error);
      ASSERT_NE(*side, nullptr) << error;
    }
    const auto b_at_a = a_->add_peer(b_->address());
    ASSERT_TRUE(b_at_a.has_value());
    b_at_a_ = *b_at_a;
  }
  /// Turns both until `side` has a completion; fails the test after some seconds.
  Completion finish(Endpoint& side) {
    for (int i = 0; i < 5000; ++i) {
      a_->turn();
      b_->turn();
      if (const auto done = side.poll()) return *done;
      if (const auto done = side.wait(1)) return *done;
    }
    ADD_FAILURE() << "no completion";
    return {};
  }

  std::unique_ptr<Endpoint> a_, b_;
  Peer b_at_a_ = 0;
};

TEST(Endpoint, open__says_what_is_wrong) {
  std::string error;
  EXPECT_EQ(Endpoint::open({{"colour", "red"}}, error), nullptr);
  EXPECT_NE(error.find("colour"), std::string::npos);
  EXPECT_EQ(Endpoint::open({{"paths", "3"}}, error), nullptr);
  EXPECT_NE(error.find("PATHS"), std::string::npos);
}

TEST(Endpoint, open__names_misspelt_variables_once) {
  setenv("FI_UET_ADR", "127.0.77.8", 1);
  testing::internal::CaptureStderr();
  std::string error;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Endpoint::open({{"paths", "3"}}, error), nullptr);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "uet: FI_UET_ADR is no setting and is ignored; did you mean FI_UET_ADDR?\n");
  unsetenv("FI_UET_ADR");
}

TEST_F(EndpointTest, add_peer__refuses_the_other_ip_family) {
  std::string error;
  const auto v6 = Endpoint::open({{"port", "udp"}, {"addr", "::1"}}, error);
  if (v6 == nullptr) GTEST_SKIP() << error;
  EXPECT_EQ(a_->add_peer(v6->address()), std::nullopt);
  EXPECT_EQ(v6->add_peer(a_->address()), std::nullopt);
}

TEST(Endpoint, open__takes_keys_in_lower_case_alone) {
  std::string error;
  EXPECT_EQ(Endpoint::open({{"ADDR", "127.0.77.9"}}, error), nullptr);
  EXPECT_NE(error.find("lower case"), std::string::npos);
}

TEST(Endpoint, open__refuses_keys_that_only_libfabric_programs_have) {
  std::string error;
  for (const char* key : {"progress", "completion", "mr_endpoint", "allow_all_mr", "jobs"}) {
    EXPECT_EQ(Endpoint::open({{"addr", "127.0.77.9"}, {key, ""}}, error), nullptr) << key;
    EXPECT_NE(error.find("libfabric programs only"), std::string::npos) << error;
  }
  // What others of the same environment or file need is no mistake of this program.
  setenv("FI_UET_PROGRESS", "thread", 1);
  EXPECT_NE(Endpoint::open({{"addr", "127.0.77.9"}}, error), nullptr) << error;
  unsetenv("FI_UET_PROGRESS");
}

TEST(Endpoint, open__refuses_an_address_of_another_interface) {
  std::string error;
  setenv("FI_UET_IFNAME", "lo", 1);
  EXPECT_NE(Endpoint::open({{"addr", "127.0.77.9"}}, error), nullptr) << error;
  setenv("FI_UET_IFNAME", "nonexistent9", 1);
  EXPECT_EQ(Endpoint::open({{"addr", "127.0.77.9"}}, error), nullptr);
  unsetenv("FI_UET_IFNAME");
  EXPECT_NE(error.find("nonexistent9"), std::string::npos) << error;
}

TEST(Endpoint, open__ifname_says_where_a_udp_port_is) {
  std::string error;
  EXPECT_EQ(Endpoint::open({{"port", "udp"}, {"ifname", "nonexistent9"}}, error), nullptr);
  EXPECT_NE(error.find("nonexistent9"), std::string::npos) << error;
}

TEST(Endpoint, open__says_nothing_where_the_port_finds_its_address) {
  testing::internal::CaptureStderr();
  std::string error;
  const auto own = Endpoint::open({{"port", "udp:lo"}, {"udp_port", "47931"}}, error);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_NE(own, nullptr) << error;
  EXPECT_EQ(error, "");
}

TEST(Endpoint, open__takes_the_first_of_a_list_that_is_free) {
  const std::map<std::string, std::string> settings = {
      {"port", "udp"}, {"addr", "127.0.77.%r|127.0.77.5|127.0.77.6"}};
  std::string error;
  std::vector<std::unique_ptr<Endpoint>> all;
  for (const char* address : {"127.0.77.5", "127.0.77.6"}) {
    all.push_back(Endpoint::open(settings, error));
    ASSERT_NE(all.back(), nullptr) << error;
    EXPECT_NE(all.back()->address_text().find(std::string("//") + address + "/"), std::string::npos)
        << all.back()->address_text();
  }
  EXPECT_EQ(Endpoint::open(settings, error), nullptr);
  for (const char* part :
       {"127.0.77.%r", "UDP port 4793 of 127.0.77.5", "UDP port 4793 of 127.0.77.6"})
    EXPECT_NE(error.find(part), std::string::npos) << error;
}

TEST_F(EndpointTest, messages__arrive_with_their_tag) {
  const std::string text = "hello, fabric";
  char buffer[64] = {};
  int context = 0;
  ASSERT_EQ(b_->receive(0x40, 0x0f, buffer, sizeof buffer, &context), Post::kAccepted);
  ASSERT_EQ(a_->send(b_at_a_, 0x45, text.data(), text.size(), nullptr), Post::kAccepted);
  const Completion received = finish(*b_);
  EXPECT_TRUE(received.ok) << received.reason;
  EXPECT_EQ(received.operation, Operation::kReceive);
  EXPECT_EQ(received.tag, 0x45u);
  EXPECT_EQ(received.context, &context);
  EXPECT_EQ(std::string(buffer, received.length), text);
  EXPECT_TRUE(finish(*a_).ok);
}

// What can never be accepted says so: a program that tries again would do so for ever.
TEST_F(EndpointTest, send__to_an_unknown_peer_is_refused_with_a_reason) {
  EXPECT_EQ(a_->send(b_at_a_ + 1000, 1, "x", 1, nullptr), Post::kRefused);
  EXPECT_NE(std::string(a_->why_not()), "");
  EXPECT_EQ(a_->send(b_at_a_, 1, "x", 1, nullptr), Post::kAccepted);
  EXPECT_EQ(std::string(a_->why_not()), "");
}

TEST_F(EndpointTest, windows__are_written_and_read) {
  std::vector<char> memory(100'000), out(100'000, 'x'), in(100'000);
  const auto window = b_->open_window(memory.data(), memory.size());
  ASSERT_TRUE(window.has_value());
  ASSERT_EQ(a_->write(b_at_a_, *window, 0, out.data(), out.size(), nullptr), Post::kAccepted);
  EXPECT_TRUE(finish(*a_).ok);
  ASSERT_EQ(a_->read(b_at_a_, *window, 0, in.data(), in.size(), nullptr), Post::kAccepted);
  EXPECT_TRUE(finish(*a_).ok);
  EXPECT_EQ(memory, out);
  EXPECT_EQ(in, out);
  b_->close_window(*window);
  ASSERT_EQ(a_->write(b_at_a_, *window, 0, out.data(), 8, nullptr), Post::kAccepted);
  EXPECT_FALSE(finish(*a_).ok);
}

TEST_F(EndpointTest, path_log__tells_the_paths_of_a_peer) {
  const std::string path = testing::TempDir() + "endpoint_path_log";
  std::string error;
  a_ = Endpoint::open({{"port", "udp"}, {"addr", "127.0.77.3"}, {"path_log", path}}, error);
  ASSERT_NE(a_, nullptr) << error;
  b_at_a_ = *a_->add_peer(b_->address());
  std::vector<char> memory(100'000);
  const auto window = b_->open_window(memory.data(), memory.size());
  ASSERT_TRUE(window.has_value());
  ASSERT_EQ(a_->write(b_at_a_, *window, 0, memory.data(), memory.size(), nullptr), Post::kAccepted);
  EXPECT_TRUE(finish(*a_).ok);
  a_.reset();  // writes the last state
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(text.find("\"peer\":\"127.0.77.2\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"state\":\"good\""), std::string::npos) << text;
}

/// What uet-stat hears while `endpoint` does `loop` until then.
template <typename Loop>
std::string seen_from_outside(Loop loop) {
  std::atomic<bool> is_over = false;
  std::string text;
  std::thread outside([&] {
    for (const ports::LiveAnswer& answer : ports::ask_live_processes("stat", 10'000))
      text += answer.text + answer.error;
    is_over = true;
  });
  while (!is_over) loop();
  outside.join();
  return text;
}

TEST(Endpoint, is_seen_by_uet_stat_while_it_turns_and_while_it_waits) {
  const std::filesystem::path folder = testing::TempDir() + "uet_stat_" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  setenv("XDG_RUNTIME_DIR", folder.c_str(), 1);
  std::string error;
  auto endpoint = Endpoint::open({{"port", "udp"}, {"addr", "127.0.77.4"}}, error);
  ASSERT_NE(endpoint, nullptr) << error;
  for (const std::string& text : {seen_from_outside([&] { endpoint->turn(); }),
                                  seen_from_outside([&] { endpoint->wait(50); })}) {
    EXPECT_NE(text.find(R"("address":"127.0.77.4")"), std::string::npos) << text;
    EXPECT_NE(text.find(R"("program":"uet_test")"), std::string::npos) << text;
  }
  endpoint.reset();
  EXPECT_TRUE(std::filesystem::is_empty(folder / "uet"));
  unsetenv("XDG_RUNTIME_DIR");
  std::filesystem::remove_all(folder);
}

/// A peer that only listens.
class Listener {
 public:
  explicit Listener(const char* address) : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(4793);
    inet_pton(AF_INET, address, &at.sin_addr);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { close(fd_); }
  /// How many packets have come since the last time.
  int heard() const {
    char packet[9000];
    int n = 0;
    while (recv(fd_, packet, sizeof packet, MSG_DONTWAIT) > 0) ++n;
    return n;
  }

 private:
  int fd_;
};

int status_of_child(const std::function<bool()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// What it would send for its parent could repeat packet counters of the parent under one key.
TEST_F(EndpointTest, fork__child_sends_nothing_and_its_parent_goes_on) {
  std::string error;
  auto placeholder = Endpoint::open({{"port", "udp"}, {"addr", "127.0.77.8"}}, error);
  ASSERT_NE(placeholder, nullptr) << error;
  const auto bytes = placeholder->address();
  placeholder.reset();
  const Listener listener("127.0.77.8");
  const auto to_listener = a_->add_peer(bytes);
  ASSERT_TRUE(to_listener);
  ASSERT_EQ(a_->send(*to_listener, 1, "one", 3, nullptr), Post::kAccepted);  // leaves with a turn
  EXPECT_EQ(status_of_child([&] {
              a_.reset();
              return true;
            }),
            0);
  EXPECT_EQ(listener.heard(), 0) << "the child that only let go of its endpoint";
  EXPECT_EQ(status_of_child([&] {
              const bool is_refused =
                  a_->send(*to_listener, 2, "two", 3, nullptr) == Post::kRefused &&
                  std::string(a_->why_not()) != "" && !a_->add_peer(b_->address()) &&
                  !a_->open_window(this, 1);
              return !a_->turn() && !a_->wait(10) && !a_->poll() && is_refused;
            }),
            0);
  EXPECT_EQ(listener.heard(), 0) << "the child that called";
  a_->turn();
  EXPECT_GT(listener.heard(), 0) << "the parent";
  char buffer[8];
  ASSERT_EQ(b_->receive(3, 0, buffer, sizeof buffer, nullptr), Post::kAccepted);
  ASSERT_EQ(a_->send(b_at_a_, 3, "three", 5, nullptr), Post::kAccepted);
  EXPECT_TRUE(finish(*b_).ok);
}

/// What the parent has not written yet is in the child's buffers, too, and its locks are on files that the child has open.
TEST_F(EndpointTest, fork__child_leaves_files_to_its_parent) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / ("uet-fork-" + std::to_string(getpid()));
  fs::create_directory(folder);
  const auto sizes = [&] {
    std::map<std::string, std::uintmax_t> all;
    for (const auto& entry : fs::directory_iterator(folder))
      all[entry.path().filename()] = entry.file_size();
    return all;
  };
  const std::map<std::string, std::string> settings = {{"port", "udp"},
                                                       {"addr", "127.0.77.10"},
                                                       {"trace", folder / "trace"},
                                                       {"pcap", folder / "capture"},
                                                       {"path_log", folder / "paths"}};
  std::string error;
  auto own = Endpoint::open(settings, error);
  ASSERT_NE(own, nullptr) << error;
  const auto peer = own->add_peer(b_->address());
  ASSERT_TRUE(peer);
  ASSERT_EQ(own->send(*peer, 1, "one", 3, nullptr), Post::kAccepted);
  own->turn();
  const auto before = sizes();
  EXPECT_EQ(before.size(), 3u);
  EXPECT_EQ(status_of_child([] {
              exit(0);
              return true;
            }),
            0);
  EXPECT_EQ(sizes(), before) << "what the child wrote";

  int life[2];
  ASSERT_EQ(pipe(life), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(life[1]);
    char end = 0;
    (void)!read(life[0], &end, 1);
    _exit(0);
  }
  close(life[0]);
  own.reset();
  EXPECT_GT(sizes()["trace"], before.at("trace")) << "there was nothing to write";
  own = Endpoint::open(settings, error);
  ASSERT_NE(own, nullptr) << error;
  EXPECT_EQ(sizes().size(), 3u) << "another name, since the child keeps the lock";
  close(life[1]);
  waitpid(child, nullptr, 0);
  own.reset();
  fs::remove_all(folder);
}

TEST_F(EndpointTest, fork__child_opens_endpoints_of_its_own) {
  EXPECT_EQ(status_of_child([&] {
              std::string error;
              auto own = Endpoint::open({{"port", "udp"}, {"addr", "127.0.77.6"}}, error);
              if (own == nullptr) return false;
              const auto peer = own->add_peer(b_->address());
              return peer && own->send(*peer, 1, "x", 1, nullptr) == Post::kAccepted && own->turn();
            }),
            0);
}

TEST_F(EndpointTest, add_peer__refuses_other_bytes) {
  EXPECT_FALSE(a_->add_peer(std::vector<std::uint8_t>(7)).has_value());
  EXPECT_FALSE(a_->add_peer(std::vector<std::uint8_t>(32, 0xff)).has_value());
}

}  // namespace
}  // namespace uet
