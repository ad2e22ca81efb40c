// Counters on disk: none is ever given out twice. [TSS 7.6]
#include "keys/counter_state.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "lib/base/rng.h"
#include "tests/keys/temp_folder.h"

namespace uet::keys::test {
namespace {

using testing::HasSubstr;

const tss::Fingerprint kFingerprint{1, 2, 3, 4};

struct Made {
  Made() {
    std::string error;
    EXPECT_TRUE(state.create(kFingerprint, error)) << error;
  }
  TempFolder folder;
  CounterState state{folder / "state"};
};

TEST(CounterState, reservations_follow_each_other) {
  Made m;
  EXPECT_EQ(m.state.reserve(kFingerprint, 100)->first, 0u);
  EXPECT_EQ(m.state.reserve(kFingerprint, 100)->first, 100u);
  EXPECT_EQ(CounterState(m.folder / "state").reserve(kFingerprint, 5)->end, 205u);
  EXPECT_EQ(m.state.status(kFingerprint)->reserved, 205u);
}

TEST(CounterState, create__never_begins_again) {
  Made m;
  ASSERT_TRUE(m.state.reserve(kFingerprint, 100));
  std::string error;
  EXPECT_FALSE(m.state.create(kFingerprint, error));
  EXPECT_EQ(error, "");
  EXPECT_EQ(m.state.reserve(kFingerprint, 1)->first, 100u);
}

// Covers: TSS-T23
TEST(CounterState, missing_or_damaged_state_gives_nothing) {
  Made m;
  EXPECT_THAT(m.state.reserve({9}, 1).error(), HasSubstr("uet-keys install"));
  for (const auto& entry : std::filesystem::directory_iterator(m.folder / "state"))
    std::ofstream(entry.path()) << "something else";
  EXPECT_THAT(m.state.reserve(kFingerprint, 1).error(), HasSubstr("damaged"));
  std::string error;
  EXPECT_FALSE(m.state.create(kFingerprint, error));
  EXPECT_THAT(error, HasSubstr("damaged"));
}

/// A user who can replace the state can make counters begin anew.
TEST(CounterState, what_others_can_change_gives_nothing) {
  Made m;
  const std::string folder = m.folder / "state";
  const auto mode_of = [](const std::string& path) {
    return std::filesystem::status(path).permissions();
  };
  EXPECT_EQ(mode_of(folder), std::filesystem::perms::owner_all);
  const auto why = [&]() -> std::string {
    std::string error;
    EXPECT_FALSE(m.state.create(kFingerprint, error));
    const auto reserved = m.state.reserve(kFingerprint, 1);
    const auto status = m.state.status(kFingerprint);
    if (reserved || status) return "";
    EXPECT_EQ(error, reserved.error());
    EXPECT_EQ(error, status.error());
    return error;
  };
  for (const mode_t mode : {0770, 0707, 01777}) {
    ASSERT_EQ(::chmod(folder.c_str(), mode), 0);
    EXPECT_THAT(why(), HasSubstr("can be written by others"));
  }
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  EXPECT_EQ(why(), "");
  std::string file;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) file = entry.path();
  ASSERT_EQ(::chmod(file.c_str(), 0660), 0);
  EXPECT_THAT(why(), HasSubstr("chmod 600"));
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  ASSERT_EQ(::link(file.c_str(), (m.folder / "second-name").c_str()), 0);
  EXPECT_THAT(why(), HasSubstr("hard link"));
  std::filesystem::remove(m.folder / "second-name");
  EXPECT_EQ(why(), "");
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(folder.c_str(), 12345, 12345), 0);
    EXPECT_THAT(why(), HasSubstr("another user"));
  }
}

TEST(CounterState, torn_record_leaves_the_one_before_it) {
  Made m;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(m.state.reserve(kFingerprint, 10));
  std::filesystem::path path;
  for (const auto& entry : std::filesystem::directory_iterator(m.folder / "state")) path = entry;
  // The fourth reservation is the record at 0. It was not on disk when the power went.
  std::fstream(path, std::ios::in | std::ios::out) << "uet-tsc/1 00000000";
  std::fstream file(path, std::ios::in | std::ios::out);
  file.seekp(20);
  file << "zz";
  file.close();
  EXPECT_EQ(m.state.reserve(kFingerprint, 10)->first, 30u);
}

TEST(CounterState, give_back__takes_the_last_reservation_only) {
  Made m;
  const auto first = *m.state.reserve(kFingerprint, 100);
  const auto second = *m.state.reserve(kFingerprint, 100);
  EXPECT_FALSE(m.state.give_back(kFingerprint, first)) << "others were reserved since";
  EXPECT_TRUE(m.state.give_back(kFingerprint, {130, second.end}));
  EXPECT_FALSE(m.state.give_back(kFingerprint, {130, second.end})) << "twice";
  EXPECT_EQ(m.state.status(kFingerprint)->reserved, 130u);
  EXPECT_EQ(m.state.reserve(kFingerprint, 10)->first, 130u);
  EXPECT_TRUE(m.state.give_back(kFingerprint, {0, 140}));
  EXPECT_EQ(m.state.reserve(kFingerprint, 10)->first, 1u) << "a key that was in use is not fresh";
  EXPECT_EQ(m.state.retire(kFingerprint), "");
  EXPECT_FALSE(m.state.give_back(kFingerprint, {5, 11}));
}

/// Until both records say less, the one that says more counts.
/// Closing an endpoint waits for no other process: what is lost is a reservation.
TEST(CounterState, give_back__of_a_state_that_another_process_has_is_left) {
  Made m;
  const auto range = *m.state.reserve(kFingerprint, 10);
  const auto only = std::filesystem::directory_iterator(m.folder / "state")->path();
  const int other = ::open(only.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(other, 0);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_FALSE(m.state.give_back(kFingerprint, {range.first + 1, range.end}));
  ::close(other);
  EXPECT_TRUE(m.state.give_back(kFingerprint, {range.first + 1, range.end}));
}

TEST(CounterState, give_back__that_is_torn_leaves_what_was_reserved_or_what_was_used) {
  Made m;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(m.state.reserve(kFingerprint, 10));
  std::filesystem::path path;
  for (const auto& entry : std::filesystem::directory_iterator(m.folder / "state")) path = entry;
  const auto record_at = [&](int place) {
    std::string text(48, ' ');
    std::ifstream file(path);
    file.seekg(512 * place);
    file.read(text.data(), 48);
    return text;
  };
  const std::string before = record_at(1);  // 30, the newest
  ASSERT_TRUE(m.state.give_back(kFingerprint, {23, 30}));
  EXPECT_EQ(record_at(0), record_at(1));
  // Only the first of the two was on disk when the power went.
  std::fstream file(path, std::ios::in | std::ios::out);
  file.seekp(512);
  file << before << std::flush;
  EXPECT_EQ(m.state.status(kFingerprint)->reserved, 30u);
  file.seekp(512);
  file << "uet-tsc/1 zz" << std::flush;
  EXPECT_EQ(m.state.reserve(kFingerprint, 1)->first, 23u);
}

TEST(CounterState, last_counters_are_given_once) {
  Made m;
  ASSERT_TRUE(m.state.reserve(kFingerprint, tss::kCounterMax - 5));
  EXPECT_EQ(m.state.reserve(kFingerprint, 100)->end, tss::kCounterMax);
  const auto none = m.state.reserve(kFingerprint, 100);
  EXPECT_EQ(none->first, none->end);
}

// Covers: TSS-T27
TEST(CounterState, retired_key_stays_retired) {
  Made m;
  EXPECT_EQ(m.state.retire(kFingerprint), "");
  EXPECT_THAT(m.state.reserve(kFingerprint, 1).error(), HasSubstr("retired"));
  std::string error;
  EXPECT_FALSE(m.state.create(kFingerprint, error));
  EXPECT_TRUE(m.state.status(kFingerprint)->is_retired);
}

/// A process that reserves and tells what it got, until it is killed.
// Covers: TSS-T23
TEST(CounterState, processes_that_are_killed_at_any_moment_repeat_nothing) {
  Made m;
  std::set<std::uint64_t> firsts;
  base::Rng rng(5);
  for (int round = 0; round < 100; ++round) {
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(told[0]);
      CounterState state(m.folder / "state");
      for (;;) {
        const auto range = state.reserve(kFingerprint, 10);
        if (!range || ::write(told[1], &range->first, 8) != 8) ::_exit(1);
      }
    }
    ::close(told[1]);
    // Killed after some answers, at whatever it is doing then.
    const std::uint32_t enough = 1 + rng.below(4);
    std::uint64_t first = 0;
    std::uint32_t n = 0;
    while (::read(told[0], &first, 8) == 8) {
      EXPECT_TRUE(firsts.insert(first).second) << first;
      EXPECT_EQ(first % 10, 0u);
      if (++n == enough) ::kill(child, SIGKILL);
    }
    ::close(told[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_GE(n, enough);
  }
}

TEST(CounterState, threads_and_processes_share_by_the_lock) {
  Made m;
  std::array<std::vector<std::uint64_t>, 4> got;
  std::vector<std::thread> threads;
  for (auto& mine : got) {
    threads.emplace_back([&m, &mine] {
      CounterState state(m.folder / "state");
      for (int i = 0; i < 50; ++i) mine.push_back(state.reserve(kFingerprint, 3)->first);
    });
  }
  for (auto& t : threads) t.join();
  std::set<std::uint64_t> all;
  for (const auto& mine : got) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 200u);
  EXPECT_EQ(*all.rbegin(), 199u * 3);
}

}  // namespace
}  // namespace uet::keys::test
