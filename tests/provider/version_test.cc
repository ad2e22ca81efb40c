#include <dlfcn.h>
#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#include <cstdlib>

#include "lib/base/version.h"

namespace {

std::uint32_t running_version = 0;

}  // namespace

/// In the place of libfabric's own: which libfabric this process runs.
extern "C" __attribute__((visibility("default"))) std::uint32_t fi_version() {
  return running_version;
}

namespace {

/// The provider in a process with libfabric `version`; null where it cannot be loaded.
fi_provider* load_under(std::uint32_t version) {
  running_version = version;
  const auto file = ::testing::internal::GetArgvs().at(1);
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  if (library == nullptr) return nullptr;
  using Entry = fi_provider* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "fi_prov_ini"));
  EXPECT_NE(entry, nullptr);
  return entry == nullptr ? nullptr : entry();
}

/// What it says it was made for.
std::uint32_t loaded_under(std::uint32_t version) {
  const fi_provider* const provider = load_under(version);
  return provider == nullptr ? 0 : provider->fi_version;
}

/// What fi_getinfo answers there to a program that asks for these capabilities; 0 for no answer.
std::uint64_t caps_under(std::uint32_t version, std::uint64_t caps) {
  const fi_provider* const provider = load_under(version);
  if (provider == nullptr) return 0;
  fi_info* const hints = fi_allocinfo();
  hints->caps = caps;
  fi_info* info = nullptr;
  const int ret = provider->getinfo(version, nullptr, nullptr, FI_PROV_ATTR_ONLY, hints, &info);
  const std::uint64_t answer = ret == 0 ? info->caps : 0;
  fi_freeinfo(info);
  fi_freeinfo(hints);
  return answer;
}

/// A process loads the provider once: each version has a process of its own.
class ProviderVersionTest : public ::testing::Test {
 protected:
  ProviderVersionTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  static void expect(std::uint32_t running, std::uint32_t answer) {
    EXPECT_EXIT(std::exit(loaded_under(running) == answer && !HasFailure() ? 0 : 1),
                ::testing::ExitedWithCode(0), "")
        << FI_MAJOR(running) << "." << FI_MINOR(running);
  }
  static void expect_caps(std::uint32_t running, std::uint64_t asked, std::uint64_t answer) {
    EXPECT_EXIT(std::exit((caps_under(running, asked) & asked) == answer && !HasFailure() ? 0 : 1),
                ::testing::ExitedWithCode(0), "")
        << FI_MAJOR(running) << "." << FI_MINOR(running);
  }
};

// Covers: FI-9
TEST_F(ProviderVersionTest, fi_version__is_that_of_the_running_libfabric_and_2_0_at_least) {
  expect(FI_VERSION(1, 17), FI_VERSION(2, 0));
  expect(FI_VERSION(2, 0), FI_VERSION(2, 0));
  expect(FI_VERSION(2, 1), FI_VERSION(2, 1));
  expect(FI_VERSION(3, 4), FI_VERSION(3, 4));
}

TEST_F(ProviderVersionTest, version__is_that_of_the_project) {
  constexpr auto kOurs = FI_VERSION(uet::base::kVersionMajor, uet::base::kVersionMinor);
  EXPECT_EXIT(std::exit(load_under(FI_VERSION(2, 0))->version == kOurs && !HasFailure() ? 0 : 1),
              ::testing::ExitedWithCode(0), "");
}

// Covers: FI-62
TEST_F(ProviderVersionTest, capabilities_of_libfabric_2__are_on_offer_where_it_runs) {
  constexpr std::uint64_t kTaggedMultiRecv = std::uint64_t{1} << 46;
  expect_caps(FI_VERSION(1, 17), FI_TAGGED | kTaggedMultiRecv, 0);
  expect_caps(FI_VERSION(2, 0), FI_TAGGED | kTaggedMultiRecv, FI_TAGGED | kTaggedMultiRecv);
  constexpr std::uint64_t kAvUserId = std::uint64_t{1} << 41;
  expect_caps(FI_VERSION(1, 17), FI_MSG | kAvUserId, 0);
  expect_caps(FI_VERSION(2, 0), FI_MSG | kAvUserId, FI_MSG | kAvUserId);
  expect_caps(FI_VERSION(2, 0), FI_TAGGED | std::uint64_t{1} << 44, 0);
}

TEST_F(ProviderVersionTest, capabilities_of_libfabric_2__are_answered_only_to_who_names_them) {
  constexpr std::uint64_t kNewer = std::uint64_t{1} << 46 | std::uint64_t{1} << 41;
  EXPECT_EXIT(
      std::exit((caps_under(FI_VERSION(2, 0), 0) & (FI_TAGGED | kNewer)) == FI_TAGGED ? 0 : 1),
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
