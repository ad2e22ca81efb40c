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
#include "tests/base/temp_folder.h"
#include "tss/tx_counter.h"

namespace uet::keys::test {
namespace {

using testing::HasSubstr;
using uet::test::TempFolder;

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

constexpr std::uint64_t kStep = tss::TxCounter::kLargestReservation;

std::filesystem::path file_in(const std::string& folder) {
  return std::filesystem::directory_iterator(folder)->path();
}

/// Both places of a state file, for tests that put old contents back.
struct Places {
  explicit Places(std::filesystem::path file) : path(std::move(file)) {}
  std::string at(int place) const {
    std::string text(48, ' ');
    std::ifstream file(path);
    file.seekg(512 * place);
    file.read(text.data(), 48);
    return text;
  }
  void put(int place, const std::string& text) const {
    std::fstream file(path, std::ios::in | std::ios::out);
    file.seekp(512 * place);
    file << text << std::flush;
  }
  /// Where the record with these counters is.
  int place_of(std::uint64_t reserved) const {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(reserved));
    return at(0).find(digits) != std::string::npos ? 0 : 1;
  }
  std::filesystem::path path;
};

/// A record that was not written to its end, and one that was the newer one and is damaged, look alike.
TEST(CounterState, damaged_record__is_taken_for_the_newer_one) {
  for (const std::uint64_t damaged : {30u, 40u}) {
    Made m;
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(m.state.reserve(kFingerprint, 10));
    const Places places(file_in(m.folder / "state"));
    places.put(places.place_of(damaged), "uet-tsc/1 00000000zz");
    const std::uint64_t older = damaged == 30 ? 40 : 30;
    EXPECT_EQ(m.state.status(kFingerprint)->reserved, older + kStep);
    EXPECT_THAT(m.state.status(kFingerprint)->note, HasSubstr("damaged"));
    const auto range = *m.state.reserve(kFingerprint, 10);
    EXPECT_EQ(range.first, older + kStep);
    EXPECT_THAT(range.note, HasSubstr("go on at " + std::to_string(older + kStep)));
    EXPECT_EQ(m.state.reserve(kFingerprint, 10)->first, older + kStep + 10);
    EXPECT_EQ(m.state.reserve(kFingerprint, 10)->note, "") << "both are there again";
  }
}

/// Whatever is damaged, and however often: what was given out is not given out again.
TEST(CounterState, damaged_record__repeats_nothing) {
  for (const std::uint64_t count : {std::uint64_t{1}, kStep, 4 * kStep}) {
    for (int damaged = 0; damaged < 2; ++damaged) {
      for (const bool is_zeroed : {false, true}) {
        Made m;
        std::uint64_t end = 0;
        for (int i = 0; i < 12; ++i) {
          const auto range = m.state.reserve(kFingerprint, count);
          ASSERT_TRUE(range) << range.error();
          ASSERT_GE(range->first, end) << i;
          end = range->end;
          if (i % 3 == 0)
            Places(file_in(m.folder / "state"))
                .put(damaged, is_zeroed ? std::string(48, '\0') : std::string(48, 'x'));
        }
      }
    }
  }
}

TEST(CounterState, damaged_record__each_time_the_newer_one_repeats_nothing) {
  Made m;
  std::uint64_t end = 0;
  for (int i = 0; i < 6; ++i) {
    const auto range = m.state.reserve(kFingerprint, kStep);
    ASSERT_TRUE(range) << range.error();
    ASSERT_GE(range->first, end) << i;
    end = range->end;
    const Places places(file_in(m.folder / "state"));
    places.put(places.place_of(end), "xxxxxxxxxxxx");
  }
}

TEST(CounterState, damaged_record__of_a_key_near_its_end_leaves_none) {
  Made m;
  ASSERT_TRUE(m.state.reserve(kFingerprint, tss::kCounterMax - kStep / 2));
  ASSERT_TRUE(m.state.reserve(kFingerprint, 5));
  const Places places(file_in(m.folder / "state"));
  places.put(places.place_of(tss::kCounterMax - kStep / 2 + 5), "xxxxxxxxxxxx");
  EXPECT_EQ(m.state.status(kFingerprint)->reserved, tss::kCounterMax);
  const auto none = m.state.reserve(kFingerprint, 100);
  EXPECT_EQ(none->first, none->end);
}

TEST(CounterState, file_that_was_cut_off_repeats_nothing) {
  Made m;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(m.state.reserve(kFingerprint, 10));
  std::filesystem::resize_file(file_in(m.folder / "state"), 48);
  EXPECT_GE(m.state.reserve(kFingerprint, 10)->first, 40u);
}

TEST(CounterState, fresh_state_has_one_record_and_is_not_damaged) {
  Made m;
  EXPECT_EQ(std::filesystem::file_size(file_in(m.folder / "state")), 48u);
  const auto range = *m.state.reserve(kFingerprint, 10);
  EXPECT_EQ(range.first, 0u);
  EXPECT_EQ(range.note, "");
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
  const Places places(file_in(m.folder / "state"));
  const std::string before = places.at(1);  // 30, the newest
  ASSERT_TRUE(m.state.give_back(kFingerprint, {23, 30}));
  EXPECT_EQ(places.at(0), places.at(1));
  // Only the first of the two was on disk when the power went.
  places.put(1, before);
  EXPECT_EQ(m.state.status(kFingerprint)->reserved, 30u);
  places.put(1, "uet-tsc/1 zz");
  EXPECT_EQ(m.state.reserve(kFingerprint, 1)->first, 23u + kStep);
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

TEST(CounterState, retired_key_stays_retired_when_a_record_is_damaged) {
  for (const int damaged : {0, 1}) {
    Made m;
    ASSERT_TRUE(m.state.reserve(kFingerprint, 10));
    ASSERT_EQ(m.state.retire(kFingerprint), "");
    Places(file_in(m.folder / "state")).put(damaged, "xxxxxxxxxxxx");
    EXPECT_TRUE(m.state.status(kFingerprint)->is_retired);
  }
}

TEST(CounterState, retire__of_a_key_without_state_keeps_it_from_coming_back) {
  const TempFolder folder;
  CounterState state(folder / "state");
  EXPECT_TRUE(state.is_missing(kFingerprint));
  EXPECT_EQ(state.retire(kFingerprint), "");
  EXPECT_FALSE(state.is_missing(kFingerprint));
  std::string error;
  EXPECT_FALSE(state.create(kFingerprint, error));
  EXPECT_THAT(state.reserve(kFingerprint, 1).error(), HasSubstr("retired"));
}

TEST(CounterState, take_over__goes_on_where_the_other_folder_stands) {
  Made m;
  ASSERT_TRUE(m.state.reserve(kFingerprint, 100));
  CounterState other(m.folder / "other");
  EXPECT_EQ(other.take_over(kFingerprint, m.state), "");
  EXPECT_THAT(m.state.reserve(kFingerprint, 1).error(), HasSubstr(m.folder / "other"));
  EXPECT_EQ(m.state.status(kFingerprint)->moved_to, m.folder / "other");
  EXPECT_FALSE(m.state.give_back(kFingerprint, {50, 100}));
  EXPECT_EQ(other.reserve(kFingerprint, 10)->first, 100u);
  EXPECT_THAT(other.take_over(kFingerprint, m.state), HasSubstr("not in")) << "twice";
  // And back.
  EXPECT_EQ(m.state.take_over(kFingerprint, other), "");
  EXPECT_EQ(m.state.reserve(kFingerprint, 1)->first, 110u);
  EXPECT_FALSE(other.reserve(kFingerprint, 1));
}

/// As after a crash in the middle, or where both folders were in use.
TEST(CounterState, take_over__into_a_folder_that_has_the_key_goes_on_behind_both) {
  for (const std::uint64_t there : {5u, 500u}) {
    Made m;
    ASSERT_TRUE(m.state.reserve(kFingerprint, 100));
    CounterState other(m.folder / "other");
    std::string error;
    ASSERT_TRUE(other.create(kFingerprint, error)) << error;
    ASSERT_TRUE(other.reserve(kFingerprint, there));
    EXPECT_EQ(other.take_over(kFingerprint, m.state), "");
    EXPECT_EQ(other.reserve(kFingerprint, 1)->first, std::max<std::uint64_t>(there, 100));
  }
}

TEST(CounterState, take_over__does_not_bring_a_retired_key_back) {
  Made m;
  CounterState other(m.folder / "other");
  ASSERT_EQ(other.retire(kFingerprint), "");
  EXPECT_THAT(other.take_over(kFingerprint, m.state), HasSubstr("retired"));
  EXPECT_TRUE(m.state.reserve(kFingerprint, 1)) << "and the old folder goes on";
  ASSERT_EQ(m.state.retire(kFingerprint), "");
  CounterState third(m.folder / "third");
  EXPECT_THAT(third.take_over(kFingerprint, m.state), HasSubstr("retired"));
  EXPECT_TRUE(third.is_missing(kFingerprint));
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
