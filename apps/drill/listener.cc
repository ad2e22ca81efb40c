/// uet-drill-listener: a listening libfabric program for uet-drill to play against. Memory that peers reach by a key, receives that
/// wait, and operations that a line on standard input asks for. Any provider: FI_PROVIDER and its own variables choose.
///
///     uet-drill-listener [KEY]     says "ready --key KEY ...", then takes lines `write|send|read BYTES ADDRESS`
///                                  and `quit`
///
/// Runs until then, or until its input ends where that is a pipe. A line that is none of these, or has a wrong address, is named
/// on standard error and left out.

#include <poll.h>
#include <rdma/fi_rma.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/libfabric_endpoint.h"
#include "fep/settings/settings.h"
#include "lib/base/version.h"
#include "pds/parameters.h"
#include "pds/pds_config.h"

namespace {

namespace libfabric = uet::libfabric;

constexpr std::size_t kMemory = 64 * 1024, kOwnMemory = 2 << 20;
constexpr std::size_t kReceives = 64, kReceiveBytes = 4096;

class Listener {
 public:
  explicit Listener(std::uint64_t key)
      : info_(find()),
        memory_(kMemory),
        own_(kOwnMemory, 0x42),
        objects_(*info_, {.av_type = FI_AV_TABLE, .cq_format = FI_CQ_FORMAT_CONTEXT}) {
    int error = 0;
    fid_mr* const mr = objects_.add_memory(memory_.data(), memory_.size(),
                                           FI_REMOTE_READ | FI_REMOTE_WRITE, key, 0, error);
    libfabric::check(error, "fi_mr_reg");
    receives_.assign(kReceives, std::vector<std::uint8_t>(kReceiveBytes));
    for (auto& buffer : receives_) post(buffer);
    const std::uint64_t base = libfabric::base_of(*info_, memory_.data());
    std::printf("ready --key %#llx --base %#llx --with receives,atomic%s%s\n",
                static_cast<unsigned long long>(fi_mr_key(mr)),
                static_cast<unsigned long long>(base),
                (info_->caps & FI_TAGGED) != 0 ? ",unexpected" : "",
                keeps_what_follows_a_gap() ? " --without go-back" : "");
    std::fflush(stdout);
  }

  /// Turns the provider without a pause: it has no progress of its own.
  void run() {
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    for (std::string line;;) {
      take_completion();
      if (input.fd < 0 || poll(&input, 1, 0) <= 0) continue;
      char c = 0;
      if (read(STDIN_FILENO, &c, 1) != 1) {
        if (is_pipe()) return;
        input.fd = -1;  // started in the background: nothing more will come
      } else if (c != '\n') {
        line += c;
      } else if (line == "quit") {
        return;
      } else {
        initiate(line);
        line.clear();
      }
    }
  }

 private:
  /// The first that the provider has.
  static libfabric::Info find() {
    const libfabric::Info hints = libfabric::make_hints();
    hints->ep_attr->type = FI_EP_RDM;
    // Without these where the provider can do without: the key is then the one that was asked for.
    constexpr int kModes = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
    int error = 0;
    for (const std::uint64_t tagged : {std::uint64_t{FI_TAGGED}, std::uint64_t{0}})
      for (const int mode : {0, kModes}) {
        hints->caps = FI_MSG | FI_RMA | FI_ATOMIC | tagged;
        hints->domain_attr->mr_mode = mode;
        libfabric::Offer offer = libfabric::get_info(FI_VERSION(1, 15), *hints);
        if (offer.error == 0) return std::move(offer.info);
        error = offer.error;
      }
    libfabric::fail("fi_getinfo", error);
  }

  /// On an ordered PDC; as the settings of our provider say.
  bool keeps_what_follows_a_gap() const {
    if (std::string_view(info_->fabric_attr->prov_name) != "uet") return false;
    const auto settings = uet::fep::Settings::load([](std::string_view key) {
      const char* const value = std::getenv(("FI_UET_" + std::string(key)).c_str());
      return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    });
    if (!settings) throw std::runtime_error(settings.error());
    uet::pds::PdsConfig delivery;
    delivery.rod_reorder = settings->rod_reorder;
    const std::string wrong = uet::pds::set_parameters(delivery, settings->pds_parameters);
    if (!wrong.empty()) throw std::runtime_error(wrong);
    return delivery.rod_reorder;
  }

  static bool is_pipe() {
    struct stat about {};
    return fstat(STDIN_FILENO, &about) == 0 && S_ISFIFO(about.st_mode);
  }

  void post(std::vector<std::uint8_t>& buffer) {
    ssize_t ret;
    while ((ret = fi_recv(objects_.ep.get(), buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC,
                          &buffer)) == -FI_EAGAIN)
      fi_cq_read(objects_.cq.get(), nullptr, 0);
    libfabric::check(ret, "fi_recv");
  }

  /// A receive is posted again, whatever became of it. Writes with data complete without a context.
  void take_completion() {
    fi_cq_entry done;
    void* context = nullptr;
    const ssize_t n = fi_cq_read(objects_.cq.get(), &done, 1);
    if (n == 1) context = done.op_context;
    if (n == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      if (fi_cq_readerr(objects_.cq.get(), &error, 0) == 1) context = error.op_context;
    }
    for (auto& buffer : receives_)
      if (context == &buffer) post(buffer);
  }

  void initiate(const std::string& line) {
    constexpr std::uint64_t kAnyKey = 7;  // scripts do not look at it
    std::istringstream in(line);
    std::string operation, address, more;
    std::size_t bytes = 0;
    in >> operation >> bytes >> address;
    const bool is_known = operation == "write" || operation == "read" || operation == "send";
    if (!in || in >> more || !is_known || bytes > own_.size()) {
      std::fprintf(stderr,
                   "uet-drill-listener: '%s' is not write, send or read, BYTES (%zu at most) and "
                   "ADDRESS, nor quit\n",
                   line.c_str(), own_.size());
      return;
    }
    fi_addr_t peer = FI_ADDR_UNSPEC;
    if (fi_av_insertsvc(objects_.av.get(), address.c_str(), "0:1:2001", &peer, 0, nullptr) != 1) {
      std::fprintf(stderr,
                   "uet-drill-listener: '%s' is left out: the provider refuses the address %s\n",
                   line.c_str(), address.c_str());
      return;
    }
    fid_ep* const ep = objects_.ep.get();
    ssize_t ret;
    do {
      if (operation == "write")
        ret = fi_write(ep, own_.data(), bytes, nullptr, peer, 0, kAnyKey, nullptr);
      else if (operation == "read")
        ret = fi_read(ep, own_.data(), bytes, nullptr, peer, 0, kAnyKey, nullptr);
      else
        ret = fi_send(ep, own_.data(), bytes, nullptr, peer, nullptr);
      if (ret == -FI_EAGAIN) take_completion();
    } while (ret == -FI_EAGAIN);
    libfabric::check(ret, operation.c_str());
  }

  libfabric::Info info_;
  std::vector<std::uint8_t> memory_, own_;
  std::vector<std::vector<std::uint8_t>> receives_;
  libfabric::Endpoint objects_;  // behind what it works on
};

/// Decimal, or hexadecimal as 0x...
std::optional<std::uint64_t> parse_key(std::string_view text) {
  const bool is_hexadecimal = text.starts_with("0x");
  if (is_hexadecimal) text.remove_prefix(2);
  std::uint64_t key = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, key, is_hexadecimal ? 16 : 10);
  return error == std::errc{} && at == end ? std::optional(key) : std::nullopt;
}

constexpr std::uint64_t kKey = 7;
constexpr char kUsage[] =
    "Usage: uet-drill-listener [KEY]\n"
    "A libfabric program for uet-drill to play against: memory by KEY (7; or as 0x7), receives,\n"
    "and operations that lines on standard input ask for: write|send|read BYTES ADDRESS; quit.\n"
    "FI_PROVIDER and the variables of the provider choose what it runs on. See uet-drill(1).\n";

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (argc == 2 && (first == "--help" || first == "-h")) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (argc == 2 && first == "--version") {
    std::puts(uet::base::kVersion.data());
    return 0;
  }
  const auto key = argc > 1 ? parse_key(first) : kKey;
  if (!key || argc > 2) {
    if (argc > 2)
      std::fprintf(stderr, "uet-drill-listener: one KEY at most\n%s", kUsage);
    else
      std::fprintf(stderr, "uet-drill-listener: '%s' is no key\n%s", argv[1], kUsage);
    return 2;
  }
  try {
    Listener(*key).run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "uet-drill-listener: %s\n", e.what());
    return 1;
  }
  return 0;
}
