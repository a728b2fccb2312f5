// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/publish.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "apps/jit/jit_fixture.hpp"
#include "apps/kiln/jit/entry_pack.hpp"
#include "apps/kiln/jit/filled_record.hpp"
#include "apps/kiln/jit/scan.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class JitPublish : public JitFixture {
 protected:
  void SetUp() override {
    JitFixture::SetUp();
    root_ = room_.path("root");
    write_entry(root_, "00aa");
  }
  jit::PublishReport publish_root() {
    Session publisher = session(room_.path("cache"));
    return publish(publisher, system(), root_);
  }
  std::string reason(const jit::PublishReport& report, Published state) const {
    for (const auto& each : report.entries) {
      if (each.state == state) return each.reason;
    }
    return {};
  }

  std::string root_;
};

TEST_F(JitPublish, TakesNewEntriesOnce) {
  EXPECT_EQ(publish_root().count(Published::Published), 1U);
  EXPECT_EQ(publish_root().count(Published::Known), 1U);
  write_entry(root_, "00bb");
  const auto report = publish_root();
  EXPECT_EQ(report.count(Published::Published), 1U);
  EXPECT_EQ(report.count(Published::Known), 1U);
}

TEST_F(JitPublish, TakesOnlyWhatTheRuleDescribes) {
  write_entry(root_, "not-an-entry");
  write_text(root_ + "/00cc", "a file");
  fs::create_directories(root_ + "/00dd");
  write_text(root_ + "/00dd/kernel.bin", "incomplete");
  write_text(root_ + "/00aa/x.lock", "left out");
  const auto report = publish_root();
  EXPECT_EQ(report.entries.size(), 2U);
  EXPECT_EQ(report.count(Published::Incomplete), 1U);
  Session reader = session(room_.path("cache"));
  fill(reader, system(), room_.path("to"));
  EXPECT_FALSE(fs::exists(room_.path("to/00aa/x.lock")));
}

TEST_F(JitPublish, RefusesLinksAndSpecialFiles) {
  write_entry(root_, "00bb");
  fs::create_symlink("/etc/passwd", root_ + "/00aa/secret");
  ASSERT_EQ(mkfifo((root_ + "/00bb/pipe").c_str(), 0600), 0);
  write_entry(room_.path("elsewhere"), "00cc");
  fs::create_directory_symlink(room_.path("elsewhere/00cc"), root_ + "/00cc");
  const auto report = publish_root();
  EXPECT_EQ(report.count(Published::Refused), 2U);
  EXPECT_EQ(report.entries.size(), 2U) << "a link is no entry";
}

TEST_F(JitPublish, RefusesFilesOfOtherUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to change an owner";
  ASSERT_EQ(chown((root_ + "/00aa/kernel.bin").c_str(), 61'001, 61'001), 0);
  EXPECT_EQ(publish_root().count(Published::Refused), 1U);
}

TEST_F(JitPublish, RefusesWhatEveryUserCanWrite) {
  for (const char* each : {"/00aa", "/00aa/sub", "/00aa/kernel.bin"}) {
    const std::string writable = root_ + each;
    const bool is_directory = fs::is_directory(writable);
    ASSERT_EQ(chmod(writable.c_str(), is_directory ? 0777 : 0666), 0);
    EXPECT_EQ(publish_root().count(Published::Refused), 1U) << each;
    ASSERT_EQ(chmod(writable.c_str(), is_directory ? 0755 : 0644), 0);
  }
  EXPECT_EQ(publish_root().count(Published::Published), 1U);
}

TEST_F(JitPublish, RefusesWhatAGroupCanWrite) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to change a group";
  const std::string file = root_ + "/00aa/kernel.bin";
  ASSERT_EQ(chmod(file.c_str(), 0664), 0);
  ASSERT_EQ(chown(file.c_str(), 0, 61'001), 0);
  EXPECT_EQ(publish_root().count(Published::Refused), 1U);
  ASSERT_EQ(chown(file.c_str(), 0, 0), 0);
  EXPECT_EQ(publish_root().count(Published::Published), 1U) << "the group of this user alone";
}

TEST_F(JitPublish, RefusesEntriesThatOthersCanRename) {
  const std::string root = room_.path("singles");
  make_root(root);
  fs::create_directory(root + "/k");
  write_text(root + "/k/a.bin", "x");
  ASSERT_EQ(chmod((root + "/k").c_str(), 0777), 0);
  Session publisher = session(room_.path("cache"));
  EXPECT_EQ(publish(publisher, system("single"), root).count(Published::Refused), 1U);
  ASSERT_EQ(chmod((root + "/k").c_str(), 0755), 0);
  EXPECT_EQ(publish(publisher, system("single"), root).count(Published::Published), 1U);
}

TEST_F(JitPublish, RefusesRootsOfOtherUsersAndOpenRoots) {
  ASSERT_EQ(chmod(root_.c_str(), 0770), 0);
  EXPECT_NE(publish_root().error, "");
  Session reader = session(room_.path("cache"));
  ASSERT_EQ(chmod(root_.c_str(), 0700), 0);
  ASSERT_EQ(publish_root().count(Published::Published), 1U);
  const std::string open_root = room_.path("open");
  make_root(open_root);
  ASSERT_EQ(chmod(open_root.c_str(), 0777), 0);
  EXPECT_NE(fill(reader, system(), open_root).error, "");
  EXPECT_EQ(count_below(open_root), 0U);
  if (geteuid() != 0) return;
  const std::string foreign = room_.path("foreign");
  make_root(foreign);
  ASSERT_EQ(chown(foreign.c_str(), 61'001, 61'001), 0);
  EXPECT_NE(fill(reader, system(), foreign).error, "");
  EXPECT_EQ(count_below(foreign), 0U);
}

TEST_F(JitPublish, RefusesEntriesWithTheRootInOtherFiles) {
  write_text(root_ + "/00aa/kernel.bin", "built in " + root_ + "/00aa");
  const auto report = publish_root();
  EXPECT_EQ(report.count(Published::Refused), 1U);
  EXPECT_NE(reason(report, Published::Refused).find("path of the cache directory"), std::string::npos);
}

// The name of a kernel or of another directory can contain the path of a short root.
TEST_F(JitPublish, FindsTheRootOnlyAsAWholePath) {
  write_text(root_ + "/00aa/kernel.bin", "in " + root_ + "_add.bin, /other" + root_ + ", " + root_ + "2/x");
  write_text(root_ + "/00aa/paths.json", root_ + "/00aa" + root_ + "_add.json \"" + root_ + "\"");
  Session own = session(room_.path("cache"));
  EXPECT_EQ(publish(own, system(), root_).count(Published::Published), 1U);
  const std::string to = room_.path("to");
  EXPECT_EQ(fill(own, system(), to).count(Filled::Placed), 1U);
  EXPECT_EQ(read_text(to + "/00aa/paths.json"), to + "/00aa" + root_ + "_add.json \"" + to + "\"");
}

TEST_F(JitPublish, RefusesEntriesOfAMovedRoot) {
  jit::DetectedSystem strict = system();
  jit::Rule rule = *strict.rule;
  rule.whole = rule.rewrite;
  strict.rule = &rule;
  write_text(root_ + "/00aa/paths.json", "/somewhere/else/00aa");
  Session own = session(room_.path("cache"));
  const auto report = publish(own, strict, root_);
  EXPECT_EQ(report.count(Published::Refused), 1U);
  EXPECT_NE(reason(report, Published::Refused).find("moved or copied"), std::string::npos);
  write_text(root_ + "/00aa/paths.json", root_ + "/00aa");
  EXPECT_EQ(publish(own, strict, root_).count(Published::Published), 1U);
}

TEST_F(JitPublish, RefusesEntriesWithThePlaceholder) {
  write_text(root_ + "/00aa/paths.json", std::string(jit::kRootPlaceholder));
  EXPECT_EQ(publish_root().count(Published::Refused), 1U);
}

TEST_F(JitPublish, ReplacesBothSpellingsOfTheRoot) {
  const std::string link = room_.path("link");
  fs::create_directory_symlink(root_, link);
  write_text(root_ + "/00aa/paths.json", root_ + "/00aa " + link + "/00aa");
  Session both = session(room_.path("cache"));
  EXPECT_EQ(publish(both, system(), link).count(Published::Published), 1U);
  const std::string to = room_.path("to");
  EXPECT_EQ(fill(both, system(), to).count(Filled::Placed), 1U);
  EXPECT_EQ(read_text(to + "/00aa/paths.json"), to + "/00aa " + to + "/00aa");
}

TEST_F(JitPublish, WaitsUntilFilesHaveSettled) {
  Session publisher = session(room_.path("cache"));
  const auto report = jit::publish(jit::JitTiers(publisher, "default"), system(), root_, {},
                                   Deadline(std::chrono::seconds(60)), std::chrono::hours(1));
  EXPECT_EQ(report.count(Published::Changing), 1U);
}

TEST_F(JitPublish, DetectsFilesThatChangeWhileTheyAreRead) {
  const Fd root(open(root_.c_str(), O_RDONLY | O_DIRECTORY));
  const auto files = jit::scan_entry(root.get(), rules_.front(), "00aa");
  ASSERT_TRUE(files);
  ASSERT_EQ(files->size(), 3U);
  write_text(root_ + "/00aa/kernel.bin", "another content");
  bool changed = false;
  for (const auto& file : *files) changed |= !jit::read_scanned(root.get(), rules_.front(), "00aa", file);
  EXPECT_TRUE(changed);
}

class JitForeign : public JitPublish {
 protected:
  // Fills a root from a cache that this user only reads.
  void SetUp() override {
    JitPublish::SetUp();
    Session other = session(room_.path("other"));
    ASSERT_EQ(publish(other, system(), root_).count(Published::Published), 1U);
    Session reader = reader_of_both();
    ASSERT_EQ(fill(reader, system(), to_).count(Filled::Placed), 1U);
  }
  // The first cache is this user's own, the second one is only read.
  Session reader_of_both() {
    SessionOptions options;
    options.settings["cache.path"] = room_.path("cache") + ":" + room_.path("other");
    options.locked.insert("cache.path");
    auto opened = Session::open(std::move(options));
    EXPECT_TRUE(opened);
    return std::move(*opened);
  }
  jit::PublishOutcome published(const jit::DetectedSystem& system) {
    Session own = session(room_.path("cache"));
    return publish(own, system, to_).entries.at(0);
  }

  const std::string to_ = room_.path("to");
};

TEST_F(JitForeign, FilledEntriesDoNotBecomeOwnOnes) {
  EXPECT_EQ(published(system()).state, Published::Known) << "the list of the other publisher is not there any more";
  EXPECT_EQ(published(system("toy", "1.1")).state, Published::Known) << "after an update of the system";
  write_text(to_ + "/00aa/added.bin", "by the system");
  EXPECT_EQ(published(system()).state, Published::Known) << "after a change of the entry";
}

TEST_F(JitForeign, EntriesAreOwnAfterTheRootWasRemoved) {
  fs::remove_all(to_);
  write_entry(to_, "00aa", "compiled here");
  EXPECT_EQ(published(system()).state, Published::Published);
}

// The root cannot be written into the entry's file, so that the system compiles.
TEST_F(JitForeign, EntriesThatCouldNotBePlacedAreOwn) {
  write_text(root_ + "/00aa/paths.json", root_ + "/00aa");
  {
    Session other = session(room_.path("other"));
    ASSERT_EQ(publish(other, system(), root_).count(Published::Published), 1U);
  }
  const std::string to = room_.path("sp ace");
  Session reader = reader_of_both();
  ASSERT_EQ(fill(reader, system(), to).count(Filled::Rejected), 1U);
  write_entry(to, "00aa", "compiled here");
  Session own = session(room_.path("cache"));
  EXPECT_EQ(publish(own, system(), to).count(Published::Published), 1U);
}

TEST_F(JitForeign, DamagedRecordsStopThePublication) {
  const std::string record = to_ + "/.kiln-filled";
  const std::string good = read_text(record);
  EXPECT_EQ(good, "kiln filled 1\nother 00aa\n");
  const auto error = [&] {
    Session own = session(room_.path("cache"));
    return publish(own, system(), to_).error;
  };
  write_text(record, "kiln filled 2\nother 00aa\n");
  EXPECT_NE(error().find("another version"), std::string::npos);
  write_text(record, good);
  ASSERT_EQ(chmod(record.c_str(), 0666), 0);
  EXPECT_NE(error(), "");
  fs::remove(record);
  fs::create_symlink("/etc/passwd", record);
  EXPECT_NE(error(), "");
}

TEST_F(JitForeign, UnfinishedLinesOfAKilledFillEndWithTheNextOne) {
  const std::string record = to_ + "/.kiln-filled";
  write_text(record, read_text(record) + "other 00b");
  const Fd root(open(to_.c_str(), O_RDONLY | O_DIRECTORY));
  auto filled = jit::FilledRecord::read(root.get());
  ASSERT_TRUE(filled);
  ASSERT_TRUE(filled->add(root.get(), "00cc", true));
  ASSERT_TRUE(filled->add(root.get(), "00dd", false));
  const auto again = jit::FilledRecord::read(root.get());
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->is_of_others("00aa") && again->is_of_others("00cc"));
  EXPECT_TRUE(again->has("00dd") && !again->is_of_others("00dd"));
  EXPECT_FALSE(again->has("00bb"));
}

TEST_F(JitPublish, TakesItsOwnFilledEntriesAgain) {
  Session both = session(room_.path("cache"));
  ASSERT_EQ(publish(both, system(), root_).count(Published::Published), 1U);
  const std::string to = room_.path("to");
  ASSERT_EQ(fill(both, system(), to).count(Filled::Placed), 1U);
  ASSERT_TRUE(both.external_cache("jit.toy").clear());
  EXPECT_EQ(publish(both, system(), to).count(Published::Published), 1U) << "they were evicted";
}

TEST_F(JitPublish, StoresEvictedEntriesAgain) {
  Session both = session(room_.path("cache"));
  ASSERT_EQ(publish(both, system(), root_).count(Published::Published), 1U);
  std::vector<std::string> problems;
  const auto lists = jit::JitTiers(both, "default").lists(system(), Deadline(std::chrono::seconds(9)), problems);
  ASSERT_TRUE(both.external_cache("jit.toy").remove(jit::entry_key(lists.at(0).list.lines.at(0).digest)));
  EXPECT_EQ(publish(both, system(), root_).count(Published::Published), 1U);
}

}  // namespace
}  // namespace kiln::test
