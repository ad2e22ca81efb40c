#include <dlfcn.h>
#include <gtest/gtest.h>
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#include <cstdlib>

namespace {

std::uint32_t running_version = 0;

}  // namespace

/// In the place of libfabric's own: which libfabric this process runs.
extern "C" __attribute__((visibility("default"))) std::uint32_t fi_version() {
  return running_version;
}

namespace {

/// What the provider says it was made for when it is loaded into a process with libfabric `version`.
std::uint32_t loaded_under(std::uint32_t version) {
  running_version = version;
  const auto file = ::testing::internal::GetArgvs().at(1);
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  if (library == nullptr) return 0;
  using Entry = fi_provider* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "fi_prov_ini"));
  EXPECT_NE(entry, nullptr);
  return entry == nullptr ? 0 : entry()->fi_version;
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
};

// Covers: FI-9
TEST_F(ProviderVersionTest, fi_version__is_that_of_the_running_libfabric_and_2_0_at_least) {
  expect(FI_VERSION(1, 17), FI_VERSION(2, 0));
  expect(FI_VERSION(2, 0), FI_VERSION(2, 0));
  expect(FI_VERSION(2, 1), FI_VERSION(2, 1));
  expect(FI_VERSION(3, 4), FI_VERSION(3, 4));
}

}  // namespace
