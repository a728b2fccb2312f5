// SPDX-License-Identifier: Apache-2.0
#include "core/dependency_set.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/hash.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

using State = DependencySet::State;

class DependencySetTest : public ::testing::Test {
 protected:
  DependencySetTest() {
    for (const char* name : {"one", "two", "work"}) std::filesystem::create_directory(directory_.path(name));
    write_text(directory_.path("two/h.h"), "header");
    write_text(directory_.path("two/asked.h"), "");
    write_text(directory_.path("sentinel"), "version 1");
    places_ = {directory_.path("work"), {{directory_.path("one"), ""}, {directory_.path("two"), ""}}};
    dependency_set_.items = {
        {DependencySet::kWorkingDirectory, State::Absent, "h.h", {}, 0},
        {0, State::Absent, "h.h", {}, 0},
        {1, State::Read, "h.h", sha256("header"), 0},
        {1, State::Present, "asked.h", {}, 0},
        {DependencySet::kAbsolute, State::Sentinel, directory_.path("sentinel"), sha256("version 1"), 0}};
  }
  // Returns the first mismatching path relative to the test directory, or "unchanged".
  std::string difference() {
    FileDigestCache digests("");
    const auto mismatch = check(dependency_set_, places_, digests);
    if (!mismatch) return "unchanged";
    EXPECT_FALSE(mismatch->description.empty());
    return mismatch->path.substr(directory_.path().size() + 1);
  }

  TemporaryDirectory directory_;
  PathRoots places_;
  DependencySet dependency_set_;
};

TEST_F(DependencySetTest, MatchesUnchangedFiles) {
  EXPECT_EQ(difference(), "unchanged");
  std::filesystem::last_write_time(directory_.path("two/h.h"), std::filesystem::file_time_type::clock::now());
  EXPECT_EQ(difference(), "unchanged");
  write_text(directory_.path("two/asked.h"), "any content");
  EXPECT_EQ(difference(), "unchanged");
}

TEST_F(DependencySetTest, MatchesSameFilesInOtherDirectory) {
  std::filesystem::rename(directory_.path("two"), directory_.path("elsewhere"));
  EXPECT_EQ(difference(), "two/h.h");
  places_.roots[1].path = directory_.path("elsewhere");
  EXPECT_EQ(difference(), "unchanged");
}

TEST_F(DependencySetTest, DetectsEditedAndRemovedHeader) {
  write_text(directory_.path("two/h.h"), "HEADER");
  EXPECT_EQ(difference(), "two/h.h");
  std::filesystem::remove(directory_.path("two/h.h"));
  EXPECT_EQ(difference(), "two/h.h");
}

TEST_F(DependencySetTest, DetectsNewHeaderEarlierInSearchOrder) {
  write_text(directory_.path("one/h.h"), "header");
  EXPECT_EQ(difference(), "one/h.h");
  write_text(directory_.path("work/h.h"), "header");
  EXPECT_EQ(difference(), "work/h.h");
}

TEST_F(DependencySetTest, DirectoryCountsAsMissingFile) {
  std::filesystem::create_directory(directory_.path("one/h.h"));
  EXPECT_EQ(difference(), "unchanged");
}

TEST_F(DependencySetTest, DetectsNewDirectory) {
  dependency_set_.items = {{0, State::Absent, "sub/", {}, 0}};
  EXPECT_EQ(difference(), "unchanged");
  std::filesystem::create_directory(directory_.path("one/sub"));
  EXPECT_EQ(difference(), "one/sub/");
}

TEST_F(DependencySetTest, DetectsRemovedFileAndChangedSentinel) {
  std::filesystem::remove(directory_.path("two/asked.h"));
  EXPECT_EQ(difference(), "two/asked.h");
  write_text(directory_.path("two/asked.h"), "");
  write_text(directory_.path("sentinel"), "version 2");
  EXPECT_EQ(difference(), "sentinel");
  std::filesystem::remove(directory_.path("sentinel"));
  EXPECT_EQ(difference(), "sentinel");
}

TEST_F(DependencySetTest, DoesNotMatchMissingRoot) {
  dependency_set_.items = {{7, State::Read, "h.h", sha256("header"), 0}};
  FileDigestCache digests("");
  EXPECT_TRUE(check(dependency_set_, places_, digests).has_value());
}

TEST_F(DependencySetTest, EmbeddedPathsMatchOnlyOriginalDirectory) {
  dependency_set_.items.clear();
  dependency_set_.embeds_paths = true;
  dependency_set_.working_directory = places_.working_directory;
  dependency_set_.root_paths = {places_.roots[0].path, places_.roots[1].path};
  EXPECT_EQ(difference(), "unchanged");
  FileDigestCache digests("");
  PathRoots moved = places_;
  moved.working_directory = directory_.path("one");
  EXPECT_TRUE(check(dependency_set_, moved, digests).has_value());
  moved = places_;
  moved.roots[1].path = directory_.path("one");
  EXPECT_TRUE(check(dependency_set_, moved, digests).has_value());
  moved = places_;
  moved.roots.pop_back();
  EXPECT_TRUE(check(dependency_set_, moved, digests).has_value());
  // The roots of a compiler follow those of the unit, and a compile need not use them.
  moved = places_;
  moved.roots.push_back({directory_.path("compiler"), {}});
  EXPECT_FALSE(check(dependency_set_, moved, digests).has_value());
}

TEST_F(DependencySetTest, RoundTripsAndRejectsTruncation) {
  DependencySet located = dependency_set_;
  located.embeds_paths = true;
  located.working_directory = "/w";
  located.root_paths = {"/a", "/b"};
  for (const DependencySet& dependency_set : {DependencySet{}, dependency_set_, located}) {
    const std::string bytes = dependency_set.encode();
    const Result<DependencySet> back = DependencySet::decode(bytes);
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_EQ(*back, dependency_set);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
      ASSERT_FALSE(DependencySet::decode({cut.data(), cut.size()}).has_value()) << length;
    }
    EXPECT_FALSE(DependencySet::decode(bytes + "x").has_value());
  }
}

}  // namespace
}  // namespace kiln::test
