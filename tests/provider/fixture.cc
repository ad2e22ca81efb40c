#include "tests/provider/fixture.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <thread>

namespace uet::provider::testing {
namespace {

/// Without the provider every test would fail in its own way, some by a null pointer.
class NeedsProvider : public ::testing::Environment {
  void SetUp() override {
    if (get_info(make_hints().get()) == nullptr)
      GTEST_FAIL() << "libfabric does not find provider uet. `meson test provider_test` sets what "
                      "it needs; else set "
                      "FI_PROVIDER_PATH to the folder of libuet-fi.so, and FI_PROVIDER=uet.";
  }
};
[[maybe_unused]] const auto* const kNeedsProvider =
    ::testing::AddGlobalTestEnvironment(new NeedsProvider);

}  // namespace

Variable::Variable(const char* name, const std::string& value) : name_(name) {
  if (const char* old = std::getenv(name)) before_ = old;
  setenv(name, value.c_str(), 1);
}

Variable::~Variable() {
  before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_);
}

std::string address_of(int index) {
  const int pid = getpid();
  return "127." + std::to_string(64 + (pid >> 8) % 128) + "." + std::to_string(pid & 0xff) + "." +
         std::to_string(index);
}

Info make_hints() {
  Info hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup("uet");
  return hints;
}

Info get_info(const fi_info* hints, int* error, std::uint32_t version, const char* node,
              const char* service, std::uint64_t flags) {
  fi_info* info = nullptr;
  const int ret = fi_getinfo(version, node, service, flags, hints, &info);
  if (error != nullptr) *error = ret;
  return Info(ret == 0 ? info : nullptr);
}

void Side::open(const std::string& address, const fi_info& hints) {
  info = get_info(&hints, nullptr, FI_VERSION(1, 17), address.c_str(), nullptr,
                  FI_SOURCE | FI_NUMERICHOST);
  ASSERT_NE(info, nullptr);
  ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
  ASSERT_EQ(fi_domain(fabric, info.get(), &domain, nullptr), 0);
  fi_av_attr av_attr{};
  ASSERT_EQ(fi_av_open(domain, &av_attr, &av, nullptr), 0);
  cq_attr.format = FI_CQ_FORMAT_TAGGED;
  ASSERT_EQ(fi_cq_open(domain, &cq_attr, &cq, nullptr), 0);
}

void Side::open_endpoint(std::uint64_t cq_flags) {
  ASSERT_EQ(fi_endpoint(domain, info.get(), &ep, nullptr), 0);
  ASSERT_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(ep, &cq->fid, cq_flags), 0);
  ASSERT_EQ(fi_enable(ep), 0);
  name.resize(32);
  std::size_t length = name.size();
  ASSERT_EQ(fi_getname(&ep->fid, name.data(), &length), 0);
  ASSERT_EQ(length, 32u);
}

fi_addr_t Side::insert(const Side& other) {
  fi_addr_t out = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_insert(av, other.name.data(), 1, &out, 0, nullptr), 1);
  return out;
}

void Side::close() {
  const auto close_one = [](auto*& object) {
    if (object != nullptr) {
      EXPECT_EQ(fi_close(&object->fid), 0);
    }
    object = nullptr;
  };
  close_one(ep);
  close_one(av);
  close_one(cq);
  close_one(domain);
  close_one(fabric);
}

PairTest::PairTest() {
  setenv("FI_UET_ADDR", address_of(1).c_str(), 1);
}

void PairTest::open(const fi_info* hints) {
  const Info none = make_hints();
  if (hints == nullptr) {
    none->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints = none.get();
  }
  a.open(address_of(2), *hints);
  b.open(address_of(3), *hints);
  ASSERT_FALSE(HasFatalFailure());
  open_endpoints();
}

void PairTest::open_endpoints() {
  a.open_endpoint();
  b.open_endpoint();
  ASSERT_FALSE(HasFatalFailure());
  to_b = a.insert(b);
  to_a = b.insert(a);
}

void PairTest::expect_message() {
  std::uint32_t out = 7, in = 0;
  ASSERT_EQ(fi_recv(b.ep, &in, sizeof in, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(a.ep, &out, sizeof out, nullptr, to_b, nullptr), 0);
  EXPECT_FALSE(wait_for(b).failed);
  EXPECT_FALSE(wait_for(a).failed);
  EXPECT_EQ(in, out);
}

std::optional<PairTest::Got> PairTest::poll(Side& side) {
  Got got;
  const ssize_t n = fi_cq_readfrom(side.cq, &got.entry, 1, &got.source);
  if (n == 1) return got;
  if (n == -FI_EAVAIL) {
    EXPECT_EQ(fi_cq_readerr(side.cq, &got.error, 0), 1);
    got.failed = true;
    return got;
  }
  EXPECT_EQ(n, -FI_EAGAIN);
  return std::nullopt;
}

PairTest::Got PairTest::wait_for(Side& side) {
  Side& other = &side == &a ? b : a;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) {
    if (auto got = poll(side)) return *got;
    fi_cq_read(other.cq, nullptr, 0);
  }
  ADD_FAILURE() << "no completion within ten seconds";
  return {};
}

ssize_t PairTest::error_of(Side& side, ssize_t said) {
  return said != 0 ? said : -wait_for(side).error.err;
}

void PairTest::expect_silence(Side& side, int ms) {
  Side& other = &side == &a ? b : a;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (std::chrono::steady_clock::now() < end) {
    EXPECT_FALSE(poll(side).has_value());
    fi_cq_read(other.cq, nullptr, 0);
  }
}

bool PairTest::turn_until(const std::function<bool()>& done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    fi_cq_read(a.cq, nullptr, 0);
    fi_cq_read(b.cq, nullptr, 0);
  }
  return true;
}

std::vector<std::uint8_t> pattern(std::size_t n, std::uint8_t seed) {
  std::vector<std::uint8_t> out(n);
  std::uint32_t x = seed * 2654435761u + 1;
  for (auto& byte : out) {
    x = x * 1664525u + 1013904223u;
    byte = static_cast<std::uint8_t>(x >> 24);
  }
  return out;
}

std::size_t fewest_descriptors(std::size_t enough) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::milliseconds(enough == 0 ? 50 : 10'000);
  std::size_t fewest = SIZE_MAX;
  do {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    fewest = std::min(fewest, static_cast<std::size_t>(std::distance(begin(all), {})));
    std::this_thread::yield();
  } while (fewest > enough && Clock::now() < end);
  return fewest;
}

}  // namespace uet::provider::testing
