/// A peer is killed with -9 while data flows: the survivor gets an error for exactly the operations
/// that were not finished, and goes on with its other peer. Three processes over kernel UDP on
/// loopback addresses.
///
///     kill_peer            the survivor; starts the other two
///     kill_peer receiver   receives until its standard input closes

#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int kSkip = 77;
constexpr std::size_t kMessage = 32 * 1024;
constexpr std::size_t kMessages = 1500;  ///< to each receiver
constexpr std::size_t kBeforeKill = 400;
constexpr std::size_t kInFlight = 64;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "kill_peer: %s\n", what.c_str());
  std::exit(1);
}
void must(int ret, const char* what) {
  if (ret != 0) fail(std::string(what) + ": " + fi_strerror(-ret));
}

/// What every process needs, opened in one go and never closed: the process exits.
struct Node {
  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq* cq = nullptr;
  fid_ep* ep = nullptr;

  Node() {
    fi_info* hints = fi_allocinfo();
    hints->caps = FI_MSG;
    hints->ep_attr->type = FI_EP_RDM;
    hints->fabric_attr->prov_name = strdup("uet");
    hints->domain_attr->mr_mode = 0;
    const int found = fi_getinfo(FI_VERSION(1, 15), nullptr, nullptr, 0, hints, &info);
    if (found == -FI_ENODATA) {
      std::printf("skipped: provider uet is not there\n");
      std::exit(kSkip);
    }
    must(found, "fi_getinfo");
    must(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
    must(fi_domain(fabric, info, &domain, nullptr), "fi_domain");
    fi_av_attr av_attr{};
    av_attr.type = FI_AV_TABLE;
    must(fi_av_open(domain, &av_attr, &av, nullptr), "fi_av_open");
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_CONTEXT;
    cq_attr.size = 4096;
    must(fi_cq_open(domain, &cq_attr, &cq, nullptr), "fi_cq_open");
    must(fi_endpoint(domain, info, &ep, nullptr), "fi_endpoint");
    must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind av");
    must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind cq");
    must(fi_enable(ep), "fi_enable");
  }
};

int receiver() {
  Node node;
  std::array<std::uint8_t, 32> address{};
  std::size_t length = address.size();
  must(fi_getname(&node.ep->fid, address.data(), &length), "fi_getname");
  if (write(STDOUT_FILENO, address.data(), length) != static_cast<ssize_t>(length)) return 1;

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
  std::array<std::uint8_t, 32> address{};
  std::size_t have = 0;
  while (have < address.size()) {
    const ssize_t n = read(from[0], address.data() + have, address.size() - have);
    if (n <= 0) fail("a receiver did not start");
    have += static_cast<std::size_t>(n);
  }
  close(from[0]);
  if (fi_av_insert(node.av, address.data(), 1, &child.address, 0, nullptr) != 1)
    fail("fi_av_insert");
  return child;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
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
  Node node;
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
