/// Two endpoints of provider uet in one process, each on a loopback address of its own, driven through libfabric's C API.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace uet::provider::testing {

struct InfoDeleter {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, InfoDeleter>;

/// Sets a variable for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value);
  ~Variable();
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// A loopback address that no other test process uses: `index` from 1 to 250.
std::string address_of(int index);

/// What the provider asks for where the application is ready for it.
inline constexpr int kBasicModes = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

/// Hints for provider uet with nothing asked for.
Info make_hints();
/// fi_getinfo with these; null (and `error`) when it fails.
Info get_info(const fi_info* hints, int* error = nullptr, std::uint32_t version = FI_VERSION(1, 17),
              const char* node = nullptr, const char* service = nullptr, std::uint64_t flags = 0);

/// What one side has open. Closed in the order applications use.
struct Side {
  ~Side() { close(); }
  void open(const std::string& address, const fi_info& hints);
  void open_endpoint(std::uint64_t cq_flags = FI_TRANSMIT | FI_RECV);
  fi_addr_t insert(const Side& other);
  void close();

  Info info;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* av = nullptr;
  fid_cq* cq = nullptr;
  fid_ep* ep = nullptr;
  fi_cq_attr cq_attr{};
  std::vector<std::uint8_t> name;
};

class PairTest : public ::testing::Test {
 protected:
  PairTest();
  void open(const fi_info* hints = nullptr);
  /// Of both sides, which are open; each gets to know the other.
  void open_endpoints();
  /// A message goes from a to b.
  void expect_message();

  struct Got {
    fi_cq_tagged_entry entry{};
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    fi_cq_err_entry error{};
    bool failed = false;
  };
  /// Turns both sides until `side` has a completion; fails the test after ten seconds.
  Got wait_for(Side& side);
  /// The error of an operation of `side` that cannot be done: what its call `said`, or its completion where the watchdog had the
  /// loop just then and the operation was left for it.
  ssize_t error_of(Side& side, ssize_t said);
  /// Nothing arrives on `side` for a moment.
  void expect_silence(Side& side, int ms = 50);
  /// Turns both sides until `done` or ten seconds.
  bool turn_until(const std::function<bool()>& done);
  std::optional<Got> poll(Side& side);

  Side a, b;
  fi_addr_t to_b = FI_ADDR_UNSPEC, to_a = FI_ADDR_UNSPEC;
};

std::vector<std::uint8_t> pattern(std::size_t n, std::uint8_t seed);

/// Descriptors that this process has open: sockets, events, files. The fewest within 50 ms, as the threads of open domains ask the
/// kernel now and then by a socket that they close at once. Where `enough` says how many are expected: within ten seconds, or until
/// there are so few.
std::size_t fewest_descriptors(std::size_t enough = 0);

}  // namespace uet::provider::testing
