/// A listening libfabric program for uet-drill: memory that peers reach by key 7, receives that wait, and operations that a line on
/// standard input asks for.
///
///     drill_listener            prints "ready", then takes lines `write|send|read BYTES ADDRESS` until its input ends

#include <poll.h>
#include <rdma/fi_rma.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/node.h"

namespace {

using namespace uet::e2e;

constexpr std::size_t kMemory = 64 * 1024;
constexpr std::uint64_t kKey = 7;
constexpr std::size_t kReceives = 64, kReceiveBytes = 4096;

class Listener {
 public:
  Listener() : node_(FI_MSG | FI_RMA | FI_ATOMIC), memory_(kMemory), own_(kMemory, 0x42) {
    fid_mr* mr = nullptr;
    must(fi_mr_reg(node_.domain, memory_.data(), memory_.size(), FI_REMOTE_READ | FI_REMOTE_WRITE,
                   0, kKey, 0, &mr, nullptr),
         "fi_mr_reg");
    receives_.assign(kReceives, std::vector<std::uint8_t>(kReceiveBytes));
    for (auto& buffer : receives_) post(buffer);
  }

  void run() {
    std::printf("ready\n");
    std::fflush(stdout);
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    for (std::string line; !ended_;) {
      take_completion();
      if (poll(&input, 1, 0) <= 0) continue;
      char c = 0;
      if (read(STDIN_FILENO, &c, 1) != 1) {
        ended_ = true;
      } else if (c != '\n') {
        line += c;
      } else {
        initiate(line);
        line.clear();
      }
    }
  }

 private:
  void post(std::vector<std::uint8_t>& buffer) {
    ssize_t ret;
    while ((ret = fi_recv(node_.ep, buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC,
                          &buffer)) == -FI_EAGAIN)
      fi_cq_read(node_.cq, nullptr, 0);
    must(static_cast<int>(ret), "fi_recv");
  }

  /// A receive is posted again, whatever became of it. Writes with data complete without a context.
  void take_completion() {
    fi_cq_entry done;
    void* context = nullptr;
    const ssize_t n = fi_cq_read(node_.cq, &done, 1);
    if (n == 1) context = done.op_context;
    if (n == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      if (fi_cq_readerr(node_.cq, &error, 0) == 1) context = error.op_context;
    }
    for (auto& buffer : receives_)
      if (context == &buffer) post(buffer);
  }

  void initiate(const std::string& line) {
    std::istringstream in(line);
    std::string operation, address;
    std::size_t bytes = 0;
    if (!(in >> operation >> bytes >> address) || bytes > own_.size()) fail("wrong line: " + line);
    fi_addr_t peer = FI_ADDR_UNSPEC;
    if (fi_av_insertsvc(node_.av, address.c_str(), "0:1:2001", &peer, 0, nullptr) != 1)
      fail("fi_av_insertsvc " + address);
    ssize_t ret;
    do {
      if (operation == "write")
        ret = fi_write(node_.ep, own_.data(), bytes, nullptr, peer, 0, kKey, nullptr);
      else if (operation == "read")
        ret = fi_read(node_.ep, own_.data(), bytes, nullptr, peer, 0, kKey, nullptr);
      else
        ret = fi_send(node_.ep, own_.data(), bytes, nullptr, peer, nullptr);
      if (ret == -FI_EAGAIN) take_completion();
    } while (ret == -FI_EAGAIN);
    must(static_cast<int>(ret), operation.c_str());
  }

  Node node_;
  std::vector<std::uint8_t> memory_, own_;
  std::vector<std::vector<std::uint8_t>> receives_;
  bool ended_ = false;
};

}  // namespace

int main() {
  Listener().run();
  return 0;
}
