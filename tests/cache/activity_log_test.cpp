// SPDX-License-Identifier: Apache-2.0
#include "cache/activity_log.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "base/files/files.hpp"
#include "base/hash.hpp"
#include "support/fakes/manual_clock.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kToday = 20'000;

TEST(ActivityFormat, RoundTripsAndRefusesEveryChangedByte) {
  const Activity activity{kToday, "train.py", 1, 20, 3, 4, 5, 61'000};
  const std::string record = encode_activity(activity);
  ASSERT_EQ(record.size(), kActivityRecord);
  EXPECT_EQ(decode_activities(as_bytes(record)), std::vector<Activity>{activity});
  for (std::size_t i = 0; i < record.size(); ++i) {
    std::string changed = record;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_TRUE(decode_activities(as_bytes(changed)).empty()) << i;
    EXPECT_TRUE(decode_activities(as_bytes(record.substr(0, i))).empty()) << i;
  }
}

TEST(ActivityFormat, RefusesAnotherVersionWithAValidChecksum) {
  std::string record = encode_activity({kToday, "a", 0, 1, 0, 0, 0, 0});
  record[8] = 2;
  const std::uint64_t sum = xxh3(as_bytes(record.substr(0, kActivityRecord - 8)));
  record.replace(kActivityRecord - 8, 8, reinterpret_cast<const char*>(&sum), 8);
  EXPECT_TRUE(decode_activities(as_bytes(record)).empty());
}

TEST(ActivityFormat, FindsRecordsAfterTornOne) {
  const Activity first{kToday, "a", 0, 1, 0, 0, 0, 0};
  const Activity second{kToday, "b", 0, 2, 0, 0, 0, 0};
  const std::string file = encode_activity(first) + encode_activity(first).substr(0, 50) + encode_activity(second);
  EXPECT_EQ(decode_activities(as_bytes(file)), (std::vector<Activity>{first, second}));
}

TEST(ActivityFormat, ShortensLongNames) {
  const auto records = decode_activities(as_bytes(encode_activity({1, std::string(100, 'x'), 0, 1, 0, 0, 0, 0})));
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].program, std::string(kActivityProgram, 'x'));
}

TEST(ActivityFormat, SumsByDayAndProgramWithTheLatestDayFirst) {
  const auto sums = sum_activities(
      {{1, "b", 0, 1, 0, 1, 0, 5}, {2, "b", 1, 0, 0, 0, 0, 7}, {1, "a", 0, 0, 2, 0, 1, 0}, {1, "b", 0, 2, 0, 0, 0, 6}});
  EXPECT_EQ(sums, (std::vector<Activity>{
                      {2, "b", 1, 0, 0, 0, 0, 7}, {1, "a", 0, 0, 2, 0, 1, 0}, {1, "b", 0, 3, 0, 1, 0, 11}}));
}

class ActivityLogTest : public testing::Test {
 protected:
  void SetUp() override {
    // Noon, so that the day does not change during a test.
    const std::chrono::nanoseconds day = std::chrono::hours(24);
    clock_.advance(day + day / 2 - clock_.wall() % day);
    today_ = static_cast<std::uint32_t>(clock_.wall() / day);
    ASSERT_TRUE(cache_.open_for_write().has_value());
  }
  std::string file(std::uint32_t day) const { return directory_.path("v1/activity/" + std::to_string(day)); }
  std::string file() const { return file(today_); }

  const TemporaryDirectory directory_;
  ManualClock clock_;
  std::uint32_t today_ = 0;
  CacheDirectory cache_{{directory_.path(), false, {}}, clock_};
};

TEST_F(ActivityLogTest, RecordsHitsMissesAndSavedTimeOfAProcess) {
  ActivityLog log(cache_);
  log.count_hit(Origin::Disk, 1500);
  log.count_hit(Origin::Disk, -3);  // a lookup that took longer than the compile saves nothing
  log.count_hit(Origin::Bundle, 0);
  log.count_hit(Origin::Remote, 500);
  log.count_compile(true);
  log.count_compile(false);
  EXPECT_FALSE(fs::exists(file())) << "a hit writes nothing within a minute";
  log.flush();
  log.flush();  // nothing new
  const auto all = log.read();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_NE(all[0].program, "");
  EXPECT_EQ(all[0].hits(), 4U);
  EXPECT_EQ(all[0].disk, 2U);
  EXPECT_EQ(all[0].misses(), 2U);
  EXPECT_EQ(all[0].saved_ms, 2000U);
  EXPECT_EQ(fs::file_size(file()), kActivityRecord);
}

TEST_F(ActivityLogTest, ALongProcessRecordsOnceAMinuteWhileItCompiles) {
  ActivityLog log(cache_);
  log.count_compile(true);
  EXPECT_FALSE(fs::exists(file()));
  clock_.advance(std::chrono::seconds(61));
  log.count_compile(true);
  ASSERT_TRUE(fs::exists(file()));
  EXPECT_EQ(log.read()[0].compiled, 2U);
}

TEST_F(ActivityLogTest, ALongProcessThatCompilesNothingRecordsItsHitsOnceAMinute) {
  ActivityLog log(cache_);
  clock_.advance(std::chrono::seconds(61));
  log.count_hit(Origin::Disk, 10);
  ASSERT_TRUE(fs::exists(file()));
  for (int i = 0; i < 100; ++i) log.count_hit(Origin::Disk, 10);
  EXPECT_EQ(fs::file_size(file()), kActivityRecord) << "one record a minute";
  clock_.advance(std::chrono::seconds(61));
  log.count_hit(Origin::Bundle, 0);
  EXPECT_EQ(fs::file_size(file()), 2 * kActivityRecord);
  EXPECT_EQ(log.read()[0].hits(), 102U);
}

TEST_F(ActivityLogTest, CountsBelongToTheDayOnWhichTheyHappened) {
  ActivityLog log(cache_);
  log.count_hit(Origin::Disk, 10);
  log.count_compile(true);
  clock_.advance(std::chrono::hours(24));
  log.count_hit(Origin::Disk, 10);  // the first one of the next day
  log.flush();
  log.count_hit(Origin::Disk, 10);
  clock_.advance(std::chrono::hours(24));
  log.flush();  // the end of a process that did nothing on the third day
  const auto all = log.read();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].day, today_ + 1);
  EXPECT_EQ(all[0].disk, 2U);
  EXPECT_EQ(all[1].day, today_);
  EXPECT_EQ(all[1].disk, 1U);
  EXPECT_EQ(all[1].compiled, 1U);
}

TEST_F(ActivityLogTest, RemovesFilesOfOldDaysOnly) {
  fs::create_directories(directory_.path("v1/activity"));
  for (const std::uint32_t day : {today_ - ActivityLog::kDays, today_ - ActivityLog::kDays + 1, today_ + 1}) {
    write_text(file(day), encode_activity({day, "old", 0, 1, 0, 0, 0, 0}));
  }
  write_text(directory_.path("v1/activity/notes"), "of another program");
  ActivityLog log(cache_);
  log.count_compile(true);
  log.flush();
  EXPECT_FALSE(fs::exists(file(today_ - ActivityLog::kDays)));
  EXPECT_TRUE(fs::exists(file(today_ - ActivityLog::kDays + 1)));
  EXPECT_TRUE(fs::exists(directory_.path("v1/activity/notes")));
  EXPECT_EQ(log.read().size(), 2U) << "today and the oldest day; not the future";
}

TEST_F(ActivityLogTest, FileOfADayIsBounded) {
  fs::create_directories(directory_.path("v1/activity"));
  write_text(file(), std::string(ActivityLog::kMaxBytes, 'x'));
  ActivityLog log(cache_);
  log.count_compile(true);
  log.flush();
  EXPECT_EQ(fs::file_size(file()), ActivityLog::kMaxBytes);
  EXPECT_TRUE(log.read().empty());
}

TEST_F(ActivityLogTest, IgnoresLinksFilesOfOthersAndReadOnlyCaches) {
  fs::create_directories(directory_.path("v1/activity"));
  write_text(directory_.path("target"), "");
  fs::create_symlink(directory_.path("target"), file());
  ActivityLog log(cache_);
  log.count_compile(true);
  log.flush();
  EXPECT_EQ(fs::file_size(directory_.path("target")), 0U);
  fs::remove(file());
  write_text(file(), encode_activity({today_, "forged", 0, 1, 0, 0, 0, 0}));
  ASSERT_EQ(chmod(file().c_str(), 0666), 0);
  EXPECT_TRUE(log.read().empty()) << "other users can write to it";
  fs::remove(file());
  CacheDirectory sealed({directory_.path(), true, {}}, clock_);
  ActivityLog reader(sealed);
  reader.count_hit(Origin::Disk, 1);
  reader.flush();
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(ActivityLogTest, ForkedChildDoesNotRepeatTheCountsOfItsParent) {
  ActivityLog log(cache_);
  log.count_compile(true);
  const pid_t child = fork();
  if (child == 0) {
    log.flush();
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(fs::exists(file()));
  log.flush();
  EXPECT_EQ(log.read()[0].compiled, 1U);
}

}  // namespace
}  // namespace kiln::test
