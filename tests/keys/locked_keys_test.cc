// Where keys are in the memory of a process: only in pages that are locked and excluded from core dumps. [TSS 13.2]
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "keys/counter_state.h"
#include "keys/file_keys.h"
#include "keys/secret_json.h"
#include "lib/base/rng.h"
#include "lib/net/heap_packet_pool.h"
#include "tests/base/sanitizers.h"
#include "tests/base/temp_folder.h"
#include "tss/locked_memory.h"
#include "tss/secure_domain.h"

namespace uet::keys::test {
namespace {

using uet::test::TempFolder;

/// A piece of this process's memory, from /proc/self/smaps.
struct Area {
  std::uintptr_t begin = 0, end = 0;
  bool is_readable = false, is_locked = false, is_kept_from_dumps = false;
};

std::vector<Area> areas() {
  std::vector<Area> out;
  std::ifstream smaps("/proc/self/smaps");
  for (std::string line; std::getline(smaps, line);) {
    unsigned long begin = 0, end = 0;
    char mode[8] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %7s", &begin, &end, mode) == 3) {
      const bool is_special = line.find("[v") != std::string::npos;  // vvar, vdso, vsyscall
      out.push_back({begin, end, mode[0] == 'r' && !is_special});
    } else if (line.starts_with("VmFlags:")) {
      out.back().is_locked = line.find(" lo") != std::string::npos;
      out.back().is_kept_from_dumps = line.find(" dd") != std::string::npos;
    }
  }
  return out;
}

/// A text to look for, kept so that a search does not find this.
class Hidden {
 public:
  explicit Hidden(std::span<const std::uint8_t> text) : masked_(text.begin(), text.end()) {
    for (std::uint8_t& byte : masked_) byte ^= kMask;
  }
  bool is_at(const std::uint8_t* at) const {
    for (std::size_t i = 0; i < masked_.size(); ++i)
      if ((at[i] ^ kMask) != masked_[i]) return false;
    return true;
  }
  std::size_t size() const { return masked_.size(); }

 private:
  static constexpr std::uint8_t kMask = 0xa5;
  std::vector<std::uint8_t> masked_;
};

struct Found {
  std::size_t in_locked = 0, elsewhere = 0;
};

/// Reads by the kernel, so that pages which cannot be read are no fault.
Found search(const Hidden& text) {
  Found found;
  const int memory = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  tss::LockedAllocator<std::uint8_t> allocator;  // what is copied here is wiped, and not counted
  constexpr std::size_t kPiece = 1 << 20;
  std::uint8_t* const piece = allocator.allocate(kPiece);
  const auto own = reinterpret_cast<std::uintptr_t>(piece);
  for (const Area& area : areas()) {
    if (!area.is_readable) continue;
    for (std::uintptr_t at = area.begin; at < area.end; at += kPiece - text.size()) {
      const ssize_t n = ::pread(memory, piece, std::min<std::size_t>(kPiece, area.end - at),
                                static_cast<off_t>(at));
      for (ssize_t i = 0; i + static_cast<ssize_t>(text.size()) <= n; ++i) {
        const std::uintptr_t where = at + static_cast<std::uintptr_t>(i);
        if ((where >= own && where < own + kPiece) || !text.is_at(piece + i)) continue;
        ++(area.is_locked && area.is_kept_from_dumps ? found.in_locked : found.elsewhere);
        if (!area.is_locked)
          std::printf("  found at %zx in %zx-%zx\n", where, area.begin, area.end);
      }
    }
  }
  allocator.deallocate(piece, kPiece);
  ::close(memory);
  return found;
}

TEST(LockedMemory, is_locked_kept_from_dumps_and_gone_afterwards) {
  void* const memory = tss::allocate_locked(5000);
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  const auto area_at = [&]() -> std::optional<Area> {
    for (const Area& area : areas())
      if (area.begin <= at && at < area.end) return area;
    return std::nullopt;
  };
  const auto area = area_at();
  ASSERT_TRUE(area);
  EXPECT_TRUE(area->is_kept_from_dumps);
#if !UET_SANITIZED  // whose run-time libraries make mlock() do nothing
  EXPECT_EQ(area->is_locked, tss::unlocked_allocations() == 0);
#endif
  EXPECT_EQ(std::count(static_cast<char*>(memory), static_cast<char*>(memory) + 5000, 0), 5000);
  tss::free_locked(memory, 5000);
  EXPECT_FALSE(area_at());
}

struct Endpoint : tss::InLockedMemory {
  explicit Endpoint(tss::KeyManager& manager)
      : domain(manager, {}, net::FabricAddress::from_v4(1)) {}
  tss::SecureDomain domain;
};

/// With the keys and a copy of the counters it could seal under IVs of its parent.
TEST(LockedMemory, child_finds_zeros) {
  auto* const memory = static_cast<volatile char*>(tss::allocate_locked(100));
  memory[50] = 'k';
  const pid_t child = ::fork();
  if (child == 0) ::_exit(memory[50]);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(memory[50], 'k');
  tss::free_locked(const_cast<char*>(memory), 100);
}

// Covers: TSS-T57
TEST(LockedMemory, keys_of_a_file_are_nowhere_else) {
#if UET_SANITIZED
  GTEST_SKIP() << "sanitizers keep freed memory and copies of their own";
#endif
  const TempFolder folder;
  constexpr std::size_t kDigits = 64;
  std::string digits(kDigits, '0');
  std::vector<std::uint8_t> bytes(kDigits / 2);
  base::Rng rng(4711);
  for (std::size_t i = 0; i < kDigits; ++i) {
    const std::uint32_t value = rng.below(16);
    digits[i] = "0123456789abcdef"[value];
    bytes[i / 2] = static_cast<std::uint8_t>(bytes[i / 2] << 4 | value);
  }
  // In halves: what is freed, or saved from a vector register, is often one of them.
  std::vector<Hidden> keys_hidden, texts_hidden;
  for (std::size_t at : {0u, 16u}) {
    keys_hidden.emplace_back(std::span(bytes).subspan(at, 16));
    const std::span all(reinterpret_cast<std::uint8_t*>(digits.data()), kDigits);
    texts_hidden.emplace_back(all.subspan(2 * at, 32));
  }
  const auto search_all = [](const std::vector<Hidden>& what) {
    Found sum;
    for (const Hidden& h : what) {
      const Found found = search(h);
      sum.in_locked += found.in_locked;
      sum.elsewhere += found.elsewhere;
    }
    return sum;
  };
  tss::Fingerprint fingerprint;
  {
    const tss::Key copy(std::span<const std::uint8_t, 32>(bytes.data(), 32));
    fingerprint = fingerprint_of(copy);
  }
  {
    std::string file =
        R"({"format":"uet-sdkdb/1","node":{"state_dir":"state"},"secure_domains":[{"sdi":7,)"
        R"("mode":"cluster","tx_an":0,"keys":[{"an":0,"key":")" +
        digits + R"("}]}]})";
    const int fd = ::open((folder / "keys").c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
    ASSERT_EQ(::write(fd, file.data(), file.size()), static_cast<ssize_t>(file.size()));
    ::close(fd);
    tss::cleanse(file.data(), file.size());
  }
  tss::cleanse(bytes.data(), bytes.size());
  tss::cleanse(digits.data(), digits.size());
  std::string error;
  ASSERT_TRUE(CounterState(folder / "state").create(fingerprint, error)) << error;
  ASSERT_EQ(search_all(keys_hidden).elsewhere + search_all(texts_hidden).elsewhere, 0u)
      << "of this test itself";

  const auto keys = FileKeys::open(folder / "keys", 1, "", error);
  ASSERT_NE(keys, nullptr) << error;
  const auto endpoint = std::make_unique<Endpoint>(*keys);
  ASSERT_EQ(endpoint->domain.why_not_usable(), "");
  net::HeapPacketPool pool(2, 2048);
  for (int i = 0; i < 3; ++i) {
    net::Packet packet = pool.allocate();
    std::memset(packet.append(100), 0x10, 100);
    const auto peer = net::FabricAddress::from_v4(1);
    ASSERT_FALSE(endpoint->domain.seal(packet, peer, 7));
    ASSERT_FALSE(endpoint->domain.open(packet, {peer, peer, 7}));
    if (i == 1) request_reload();
    while (endpoint->domain.service()) ::usleep(1000);
  }
  const Found found = search_all(keys_hidden), found_text = search_all(texts_hidden);
  EXPECT_EQ(found.elsewhere, tss::unlocked_allocations() == 0 ? 0u : found.elsewhere);
  EXPECT_GE(found.in_locked + found.elsewhere, 4u) << "the file's domain and the endpoint have it";
  EXPECT_EQ(found_text.elsewhere + found_text.in_locked, 0u) << "digits of the file";
}

/// The parser keeps what it is reading, for messages.
TEST(LockedMemory, parser_leaves_no_digits_behind) {
#if UET_SANITIZED
  GTEST_SKIP() << "sanitizers keep freed memory and copies of their own";
#endif
  constexpr std::string_view kBegin = R"({"key":")", kEnd = R"("})";
  constexpr std::size_t kDigits = 4000;  // no allocation of the search takes the place of so many
  SecretText text(kBegin.begin(), kBegin.end());
  base::Rng rng(11);
  for (std::size_t i = 0; i < kDigits; ++i) text += "0123456789abcdef"[rng.below(16)];
  const auto* digits = reinterpret_cast<const std::uint8_t*>(text.data()) + kBegin.size();
  const Hidden middle(std::span(digits + kDigits / 2, 32));
  text.append(kEnd.begin(), kEnd.end());
  ASSERT_EQ(search(middle).elsewhere, tss::unlocked_allocations() == 0 ? 0u : 1u);
  ASSERT_TRUE(parse_secret(text).is_object());
  EXPECT_EQ(search(middle).elsewhere, tss::unlocked_allocations() == 0 ? 0u : 1u);
}

/// As a program that forks and goes on with what it inherited.
TEST(LockedMemory, child_with_a_copy_of_an_endpoint_seals_nothing) {
  const TempFolder folder;
  std::string error;
  const std::string digits = "0f" + std::string(62, 'a');
  folder.write("keys",
               R"({"format":"uet-sdkdb/1","node":{"state_dir":"state"},"secure_domains":[{"sdi":7,)"
               R"("mode":"direct","tx_an":0,"keys":[{"an":0,"key":")" +
                   digits + R"("}]}]})");
  tss::Key key;
  ASSERT_TRUE(from_hex(digits, {key.data(), key.size()}));
  ASSERT_TRUE(CounterState(folder / "state").create(fingerprint_of(key), error)) << error;
  const auto keys = FileKeys::open(folder / "keys", 1, "", error);
  ASSERT_NE(keys, nullptr) << error;
  auto endpoint = std::make_unique<Endpoint>(*keys);
  ASSERT_EQ(endpoint->domain.why_not_usable(), "");
  net::HeapPacketPool pool(2, 2048);
  const auto seals = [&] {
    net::Packet packet = pool.allocate();
    std::memset(packet.append(100), 0x10, 100);
    return !endpoint->domain.seal(packet, net::FabricAddress::from_v4(1), 7);
  };
  const pid_t child = ::fork();
  if (child == 0) {
    const bool has_sealed = seals();
    endpoint.reset();
    ::_exit(has_sealed ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(seals());
}

}  // namespace
}  // namespace uet::keys::test
