/// An endpoint on a port of this host with a bug on purpose, for uet-drill to find: memory by key 7, receives that wait, and operations
/// that a line on standard input asks for. Without a bug it is a right one, without libfabric.
///
///     planted_server ADDRESS [BUG]     prints "ready", then takes lines `write|send|read BYTES ADDRESS` until its input ends

#include <fmt/format.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "fep/fep.h"
#include "lib/base/planted.h"
#include "lib/ports/open_port.h"
#include "provider/clock.h"

namespace uet::drill {
namespace {

constexpr std::size_t kMemory = 64 * 1024, kReceives = 64, kReceiveBytes = 4096;
constexpr std::uint64_t kKey = 7;

class Server final : public ses::CompletionSink {
 public:
  Server(const fep::FepConfig& config, net::Port& port)
      : port_(port), fep_(config, port, rng_, trace_, provider::clock_now()) {
    ses::EndpointConfig endpoint;
    endpoint.resource_index = 1;
    endpoint_ = fep_.ses().open_endpoint(provider::clock_now(), endpoint, *this).value();
    const iovec bytes{memory_.data(), memory_.size()};
    ses::MemoryRequest memory;
    memory.iov = {&bytes, 1};
    memory.remote_read = memory.remote_write = true;
    memory.virtual_addressing = false;
    memory.key = kKey;
    fep_.ses().register_memory(memory).value();
    for (auto& buffer : receives_) {
      const iovec room{buffer.data(), buffer.size()};
      ses::ReceiveRequest receive;
      receive.iov = {&room, 1};
      fep_.ses().receive(provider::clock_now(), endpoint_, receive).value();
    }
  }

  void on_completion(ses::EndpointId, const ses::Completion&) override {}

  /// Until standard input ends.
  void run() {
    std::string line;
    pollfd waiting[] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                        {.fd = port_.wakeup_fd(), .events = POLLIN, .revents = 0}};
    while (true) {
      while (fep_.turn(provider::clock_now())) {
      }
      constexpr int kTickMs = 1;  // timers need no finer one
      if (port_.arm_wakeup()) poll(waiting, 2, kTickMs);
      if ((waiting[0].revents & (POLLIN | POLLHUP)) == 0) continue;
      waiting[0].revents = 0;
      char c = 0;
      if (read(STDIN_FILENO, &c, 1) != 1) return;
      if (c != '\n') {
        line += c;
        continue;
      }
      initiate(line);
      line.clear();
    }
  }

 private:
  void initiate(const std::string& line) {
    std::istringstream in(line);
    std::string operation, address;
    std::size_t bytes = 0;
    in >> operation >> bytes >> address;
    ses::Address peer = fep_.ses().address_of(endpoint_);
    peer.fabric_address = net::FabricAddress::parse(address).value();
    const iovec memory{memory_.data(), bytes};
    ses::RmaRequest request;
    request.peer = fep_.ses().add_peer(peer).value();
    request.read = operation == "read";
    request.iov = {&memory, 1};
    request.key = kKey;
    if (!fep_.ses().rma(provider::clock_now(), endpoint_, request).has_value())
      fmt::print(stderr, "refused: {}\n", line);
  }

  net::Port& port_;
  base::Rng rng_{1};
  base::Trace trace_{64};
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(kMemory);
  std::vector<std::vector<std::uint8_t>> receives_{kReceives,
                                                   std::vector<std::uint8_t>(kReceiveBytes)};
  fep::Fep fep_;
  ses::EndpointId endpoint_ = 0;
};

bool plant(const std::string& name) {
  for (std::uint8_t i = 0; i < static_cast<std::uint8_t>(base::PlantedBug::kCount); ++i) {
    base::planted_bug = static_cast<base::PlantedBug>(i);
    if (base::name_of(base::planted_bug) == name) return true;
  }
  return false;
}

int run(const std::string& address, const std::string& bug) {
  if (!plant(bug)) {
    fmt::print(stderr, "no bug '{}'\n", bug);
    return 2;
  }
  base::Trace trace{16};
  std::string error;
  net::PortRequest request;
  request.spec = "udp";
  request.address = net::FabricAddress::parse(address).value();
  const auto port = ports::open_port({.request = request, .impair = {}, .pcap = {}}, trace, error);
  if (port == nullptr) {
    fmt::print(stderr, "{}\n", error);
    return 1;
  }
  fep::FepConfig config;
  config.payload_mtu = 1024;
  config.pds.max_rto_retx_cnt = 15;
  Server server(config, *port);
  fmt::print("ready\n");
  std::fflush(stdout);
  server.run();
  return 0;
}

}  // namespace
}  // namespace uet::drill

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  return uet::drill::run(argv[1], argc > 2 ? argv[2] : "none");
}
