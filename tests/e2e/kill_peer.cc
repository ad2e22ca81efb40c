/// A peer is killed with -9 while data flows: the survivor gets an error for exactly the operations
/// that were not finished, and goes on with its other peer. Three processes over kernel UDP on
/// loopback addresses.
///
///     kill_peer            the survivor; starts the other two
///     kill_peer receiver   receives until its standard input closes

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/e2e/node.h"

namespace {

using namespace uet::e2e;

constexpr std::size_t kMessage = 32 * 1024;
constexpr std::size_t kMessages = 1500;  ///< to each receiver
constexpr std::size_t kBeforeKill = 400;
constexpr std::size_t kInFlight = 64;

int receiver() {
  Node node(FI_MSG);
  const Name name = node.name();
  if (write(STDOUT_FILENO, name.data(), name.size()) != static_cast<ssize_t>(name.size())) return 1;

  std::vector<std::vector<std::uint8_t>> buffers(kInFlight, std::vector<std::uint8_t>(kMessage));
  const auto post = [&](std::size_t i) {
    ssize_t ret;
    while ((ret = fi_recv(node.ep, buffers[i].data(), kMessage, nullptr, FI_ADDR_UNSPEC,
                          &buffers[i])) == -FI_EAGAIN)
      fi_cq_read(node.cq, nullptr, 0);
    must(static_cast<int>(ret), "fi_recv");
  };
  for (std::size_t i = 0; i < buffers.size(); ++i) post(i);
  pollfd standard_input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  for (unsigned turn = 0;; ++turn) {
    fi_cq_entry done;
    if (fi_cq_read(node.cq, &done, 1) == 1)
      post(static_cast<std::size_t>(static_cast<std::vector<std::uint8_t>*>(done.op_context) -
                                    buffers.data()));
    else if (turn % 64 == 0 && poll(&standard_input, 1, 0) > 0)
      return 0;  // the survivor has gone
  }
}

struct Child {
  pid_t pid = -1;
  int keep_alive = -1;  ///< its standard input
  fi_addr_t address = FI_ADDR_UNSPEC;
  std::size_t posted = 0, succeeded = 0, failed = 0;
};

Child start(const char* self, Node& node) {
  int to[2], from[2];
  if (pipe(to) != 0 || pipe(from) != 0) fail("pipe");
  Child child;
  child.pid = fork();
  if (child.pid == 0) {
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    for (const int fd : {to[0], to[1], from[0], from[1]}) close(fd);
    execl(self, self, "receiver", static_cast<char*>(nullptr));
    _exit(1);
  }
  close(to[0]);
  close(from[1]);
  child.keep_alive = to[1];
  Name address{};
  std::size_t have = 0;
  while (have < address.size()) {
    const ssize_t n = read(from[0], address.data() + have, address.size() - have);
    if (n <= 0) fail("a receiver did not start");
    have += static_cast<std::size_t>(n);
  }
  close(from[0]);
  child.address = node.insert(address);
  return child;
}

/// Takes one completion, good or bad, if there is one. The context of a send is its Child.
bool take(Node& node) {
  fi_cq_entry done;
  const ssize_t n = fi_cq_read(node.cq, &done, 1);
  if (n == 1) {
    ++static_cast<Child*>(done.op_context)->succeeded;
    return true;
  }
  if (n != -FI_EAVAIL) return false;
  fi_cq_err_entry error{};
  if (fi_cq_readerr(node.cq, &error, 0) != 1) fail("fi_cq_readerr");
  ++static_cast<Child*>(error.op_context)->failed;
  return true;
}

int survivor(const char* self) {
  const std::string prefix = "127.99." + std::to_string(getpid() % 250) + ".";
  setenv("FI_UET_ADDR", (prefix + "1|" + prefix + "2|" + prefix + "3").c_str(), 1);
  setenv("FI_UET_PEER_TIMEOUT", "3s", 1);
  Node node(FI_MSG);
  std::array<Child, 2> children = {start(self, node), start(self, node)};
  Child &victim = children[0], &friendly = children[1];
  std::vector<std::uint8_t> message(kMessage, 0x5a);

  bool killed = false;
  double killed_at = 0, waited = 0;  ///< until the last operation to the victim had ended
  const double end = seconds_now() + 60;
  const auto finished = [](const Child& c) { return c.succeeded + c.failed; };
  const auto fill_window = [&](Child& child) {
    while (child.posted < kMessages && child.posted - finished(child) < kInFlight) {
      const ssize_t ret =
          fi_send(node.ep, message.data(), kMessage, nullptr, child.address, &child);
      if (ret == -FI_EAGAIN) break;
      if (ret != 0) fail(std::string("fi_send: ") + fi_strerror(static_cast<int>(-ret)));
      ++child.posted;
    }
  };
  while (waited == 0 || finished(friendly) < kMessages) {
    if (seconds_now() > end) fail("operations neither complete nor fail");
    fill_window(friendly);
    if (!killed) fill_window(victim);
    while (take(node)) {
    }
    if (killed && waited == 0 && finished(victim) == victim.posted)
      waited = seconds_now() - killed_at;
    if (!killed && victim.succeeded >= kBeforeKill) {
      kill(victim.pid, SIGKILL);
      waitpid(victim.pid, nullptr, 0);
      killed = true;
      killed_at = seconds_now();
      fill_window(victim);  // on a fast machine everything before the kill may have ended
    }
  }
  for (int i = 0; i < 1000; ++i) take(node);  // nothing must come twice

  std::printf("victim: %zu posted, %zu succeeded, %zu failed, after %.1f s\n", victim.posted,
              victim.succeeded, victim.failed, waited);
  std::printf("friend: %zu posted, %zu succeeded, %zu failed\n", friendly.posted,
              friendly.succeeded, friendly.failed);
  close(friendly.keep_alive);
  int status = 0;
  waitpid(friendly.pid, &status, 0);
  if (finished(victim) != victim.posted) fail("not exactly one completion for each operation");
  if (victim.failed == 0) fail("no operation to the dead peer failed");
  if (friendly.succeeded != kMessages || friendly.failed != 0) fail("the other peer suffered");
  if (waited > 6) fail("the dead peer was noticed late");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail("the other peer ended badly");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "receiver") == 0) return receiver();
  return survivor(argv[0]);
}
