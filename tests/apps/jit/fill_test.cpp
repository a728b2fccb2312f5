// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/fill.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "apps/jit/jit_fixture.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class JitFill : public JitFixture {
 protected:
  void SetUp() override {
    JitFixture::SetUp();
    cache_ = room_.path("cache");
    from_ = room_.path("from");
    to_ = room_.path("another/place");
  }
  // Publishes entries from `from_`.
  void publish_entries(const std::vector<std::string>& names) {
    for (const std::string& name : names) write_entry(from_, name, name);
    Session publisher = session(cache_);
    EXPECT_EQ(publish(publisher, system(), from_).count(Published::Published), names.size());
  }

  std::string cache_, from_, to_;
};

TEST_F(JitFill, PlacesPublishedEntriesBelowAnotherRoot) {
  publish_entries({"00aa", "00bb"});
  Session reader = session(cache_);
  const auto report = fill(reader, system(), to_);
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.count(Filled::Placed), 2U);
  EXPECT_EQ(read_text(to_ + "/00aa/kernel.bin"), "00aa");
  EXPECT_EQ(read_text(to_ + "/00bb/sub/more.bin"), "more 00bb");
  EXPECT_TRUE(fs::exists(to_ + "/00bb/done"));
  struct stat status;
  ASSERT_EQ(stat(to_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  EXPECT_EQ(count_below(to_), 11U) << "two entries and the record, no temporary files";
}

TEST_F(JitFill, RemovesWhatAKilledFillLeft) {
  publish_entries({"00aa"});
  write_entry(to_, ".kiln-fill-aB3dEf");
  Session reader = session(cache_);
  EXPECT_EQ(fill(reader, system(), to_).count(Filled::Placed), 1U);
  EXPECT_FALSE(fs::exists(to_ + "/.kiln-fill-aB3dEf"));
}

TEST_F(JitFill, ExistingEntriesStayUnchanged) {
  publish_entries({"00aa", "00bb"});
  make_root(to_ + "/00aa");
  make_root(to_);
  write_text(to_ + "/00aa/kernel.bin", "mine");
  write_text(to_ + "/00bb", "a file in its place");
  Session reader = session(cache_);
  const auto report = fill(reader, system(), to_);
  EXPECT_EQ(report.count(Filled::Present), 2U);
  EXPECT_EQ(read_text(to_ + "/00aa/kernel.bin"), "mine");
  EXPECT_EQ(read_text(to_ + "/00bb"), "a file in its place");
  EXPECT_FALSE(fs::exists(to_ + "/00aa/done"));
}

TEST_F(JitFill, WritesTheRootIntoRewrittenFiles) {
  write_entry(from_, "00aa");
  write_text(from_ + "/00aa/paths.json", "{\"k\": \"" + from_ + "/00aa/kernel.bin\"}");
  Session both = session(cache_);
  ASSERT_EQ(publish(both, system(), from_).count(Published::Published), 1U);
  EXPECT_EQ(fill(both, system(), to_).count(Filled::Placed), 1U);
  EXPECT_EQ(read_text(to_ + "/00aa/paths.json"), "{\"k\": \"" + to_ + "/00aa/kernel.bin\"}");
}

TEST_F(JitFill, RejectsRewrittenFilesForRootsThatFormatsQuote) {
  write_entry(from_, "00aa");
  write_text(from_ + "/00aa/paths.json", from_);
  Session both = session(cache_);
  ASSERT_EQ(publish(both, system(), from_).count(Published::Published), 1U);
  const std::string quoted = room_.path("a\"b");
  EXPECT_EQ(fill(both, system(), quoted).count(Filled::Rejected), 1U);
  EXPECT_FALSE(fs::exists(quoted + "/00aa"));
}

TEST_F(JitFill, PlacesFilesAndKeepsTheExecutableBit) {
  make_root(from_ + "/k");
  make_root(from_);
  write_text(from_ + "/k/a.bin", "A");
  ASSERT_EQ(chmod((from_ + "/k/a.bin").c_str(), 0700), 0);
  write_text(from_ + "/k/b.bin", "B");
  Session both = session(cache_);
  EXPECT_EQ(publish(both, system("single"), from_).count(Published::Published), 2U);
  EXPECT_EQ(fill(both, system("single"), to_).count(Filled::Placed), 2U);
  EXPECT_EQ(read_text(to_ + "/k/a.bin"), "A");
  EXPECT_EQ(access((to_ + "/k/a.bin").c_str(), X_OK), 0);
  struct stat status;
  ASSERT_EQ(stat((to_ + "/k/b.bin").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & S_IXUSR, 0U);
}

TEST_F(JitFill, AddsTheFilesThatAFolderLacks) {
  // Two hosts with other GPUs write other files into one folder.
  Session both = session(cache_);
  for (const char* name : {"sm80", "sm90"}) {
    const std::string root = room_.path(name);
    make_root(root + "/k");
    make_root(root);
    write_text(root + "/k/" + name + ".bin", name);
    write_text(root + "/k/meta.bin", "meta");
    publish(both, system("single"), root);
  }
  make_root(to_ + "/k");
  make_root(to_);
  write_text(to_ + "/k/meta.bin", "mine");
  EXPECT_EQ(fill(both, system("single"), to_).count(Filled::Placed), 2U);
  EXPECT_EQ(read_text(to_ + "/k/meta.bin"), "mine");
  EXPECT_EQ(read_text(to_ + "/k/sm80.bin"), "sm80");
  EXPECT_EQ(read_text(to_ + "/k/sm90.bin"), "sm90");
  EXPECT_EQ(fill(both, system("single"), to_).count(Filled::Present), 3U);
}

TEST_F(JitFill, UsesOnlyListsOfItsProfileAndEnvironment) {
  publish_entries({"00aa"});
  Session reader = session(cache_);
  EXPECT_TRUE(fill(reader, system("toy", "1.1"), to_).entries.empty()) << "another version";
  EXPECT_TRUE(fill(reader, system(), to_, {}, "other").entries.empty()) << "another profile";
  EXPECT_FALSE(fs::exists(to_)) << "without entries no directory is created";
}

TEST_F(JitFill, LeavesOutWhatExceedsItsLimits) {
  publish_entries({"00aa", "00bb", "00cc"});
  Session reader = session(cache_);
  const auto size = fill(reader, system(), room_.path("all")).entries.front().bytes;
  jit::Limits limits;
  limits.entry_bytes = size - 1;
  EXPECT_EQ(fill(reader, system(), to_, limits).count(Filled::LeftOut), 3U);
  limits = {};
  limits.system_bytes = 2 * size;
  EXPECT_EQ(fill(reader, system(), room_.path("two"), limits).count(Filled::Placed), 2U);
  limits = {};
  limits.total_bytes = size;
  EXPECT_EQ(fill(reader, system(), room_.path("one"), limits).count(Filled::Placed), 1U);
  const auto late = jit::fill(jit::JitTiers(reader, "default"), system(), to_, {}, Deadline(std::chrono::seconds(0)));
  EXPECT_EQ(late.count(Filled::LeftOut), 3U);
  EXPECT_EQ(late.entries.front().reason, "time limit reached");
}

/// A clock on which each look takes a millisecond.
class CountingClock final : public Clock {
 public:
  std::chrono::nanoseconds wall() const override { return steady(); }
  std::chrono::nanoseconds steady() const override { return std::chrono::milliseconds(++calls_); }
  void sleep(std::chrono::nanoseconds) const override {}

 private:
  mutable int calls_ = 0;
};

TEST_F(JitFill, TimeLimitEndsWithinAnEntry) {
  write_entry(from_, "00aa");
  for (int i = 0; i < 200; ++i) write_text(from_ + "/00aa/file" + std::to_string(i), "x");
  Session both = session(cache_);
  ASSERT_EQ(publish(both, system(), from_).count(Published::Published), 1U);
  const CountingClock clock;
  const auto report =
      jit::fill(jit::JitTiers(both, "default"), system(), to_, {}, Deadline(clock, std::chrono::milliseconds(100)));
  ASSERT_EQ(report.count(Filled::LeftOut), 1U);
  EXPECT_EQ(report.entries.front().reason, "time limit reached");
  EXPECT_FALSE(fs::exists(to_ + "/00aa"));
  for (const auto& each : fs::directory_iterator(to_))
    EXPECT_FALSE(each.is_directory()) << "no temporary directory stays: " << each.path();
}

TEST_F(JitFill, UsesTheNextListIfNoTierHasTheEntryOfTheFirst) {
  for (const char* cache : {"first", "second"}) {
    write_entry(from_, "00aa", cache);
    Session publisher = session(room_.path(cache));
    ASSERT_EQ(publish(publisher, system(), from_).count(Published::Published), 1U);
  }
  SessionOptions options;
  options.settings["cache.path"] = room_.path("first") + ":" + room_.path("second");
  options.locked.insert("cache.path");
  auto reader = Session::open(std::move(options));
  ASSERT_TRUE(reader);
  const auto report = fill(*reader, system(), room_.path("before"));
  EXPECT_EQ(report.conflicts, std::vector<std::string>{"00aa"});
  EXPECT_EQ(read_text(room_.path("before/00aa/kernel.bin")), "first");
  std::vector<std::string> problems;
  const auto lists = jit::JitTiers(*reader, "default").lists(system(), Deadline(std::chrono::seconds(9)), problems);
  ASSERT_EQ(lists.size(), 2U);
  ASSERT_TRUE(reader->external_cache("jit.toy").remove(jit::entry_key(lists[0].list.lines[0].digest)));
  EXPECT_EQ(fill(*reader, system(), to_).count(Filled::Placed), 1U);
  EXPECT_EQ(read_text(to_ + "/00aa/kernel.bin"), "second");
}

TEST_F(JitFill, CountsEntriesThatNoTierHas) {
  publish_entries({"00aa"});
  Session reader = session(cache_);
  const auto lines = [&] {
    std::vector<std::string> problems;
    return jit::JitTiers(reader, "default").lists(system(), Deadline(std::chrono::seconds(9)), problems);
  }();
  ASSERT_EQ(lines.size(), 1U);
  ASSERT_TRUE(reader.external_cache("jit.toy").remove(jit::entry_key(lines[0].list.lines[0].digest)));
  EXPECT_EQ(fill(reader, system(), to_).count(Filled::Missing), 1U);
}

}  // namespace
}  // namespace kiln::test
