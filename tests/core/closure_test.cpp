#include "core/closure.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/hash.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

using State = Closure::State;

class ClosureTest : public ::testing::Test {
 protected:
  ClosureTest() {
    for (const char* name : {"one", "two", "work"}) std::filesystem::create_directory(folder_.path(name));
    spit(folder_.path("two/h.h"), "header");
    spit(folder_.path("two/asked.h"), "");
    spit(folder_.path("seal"), "version 1");
    places_ = {folder_.path("work"), {{folder_.path("one"), ""}, {folder_.path("two"), ""}}};
    closure_.items = {{Closure::kWorkingDirectory, State::Absent, "h.h", {}, 0},
                      {0, State::Absent, "h.h", {}, 0},
                      {1, State::Read, "h.h", sha256("header"), 0},
                      {1, State::Present, "asked.h", {}, 0},
                      {Closure::kAbsolute, State::Sealed, folder_.path("seal"), sha256("version 1"), 0}};
  }
  // Where the files differ from the closure, as a path below the test's folder; "as it was" where they do not.
  std::string difference() {
    FileDigests digests("");
    const auto mismatch = check(closure_, places_, digests);
    if (!mismatch) return "as it was";
    EXPECT_FALSE(mismatch->text.empty());
    return mismatch->path.substr(folder_.path().size() + 1);
  }

  TemporaryDirectory folder_;
  Places places_;
  Closure closure_;
};

TEST_F(ClosureTest, HoldsWhileItsFilesAreAsTheyWere) {
  EXPECT_EQ(difference(), "as it was");
  std::filesystem::last_write_time(folder_.path("two/h.h"), std::filesystem::file_time_type::clock::now());
  EXPECT_EQ(difference(), "as it was");
  spit(folder_.path("two/asked.h"), "of whatever content");
  EXPECT_EQ(difference(), "as it was");
}

TEST_F(ClosureTest, HoldsInAnotherPlaceWithTheSameFiles) {
  std::filesystem::rename(folder_.path("two"), folder_.path("elsewhere"));
  EXPECT_EQ(difference(), "two/h.h");
  places_.roots[1].path = folder_.path("elsewhere");
  EXPECT_EQ(difference(), "as it was");
}

TEST_F(ClosureTest, SeesAnEditedAndARemovedHeader) {
  spit(folder_.path("two/h.h"), "HEADER");
  EXPECT_EQ(difference(), "two/h.h");
  std::filesystem::remove(folder_.path("two/h.h"));
  EXPECT_EQ(difference(), "two/h.h");
}

TEST_F(ClosureTest, SeesANewHeaderEarlierInTheSearchOrder) {
  spit(folder_.path("one/h.h"), "header");
  EXPECT_EQ(difference(), "one/h.h");
  spit(folder_.path("work/h.h"), "header");
  EXPECT_EQ(difference(), "work/h.h");
}

TEST_F(ClosureTest, TakesAFolderInAFilesPlaceForNoFile) {
  std::filesystem::create_directory(folder_.path("one/h.h"));
  EXPECT_EQ(difference(), "as it was");
}

TEST_F(ClosureTest, SeesAFolderThatWasAbsentAppear) {
  closure_.items = {{0, State::Absent, "sub/", {}, 0}};
  EXPECT_EQ(difference(), "as it was");
  std::filesystem::create_directory(folder_.path("one/sub"));
  EXPECT_EQ(difference(), "one/sub/");
}

TEST_F(ClosureTest, SeesAFileThatWasAskedForGoAndASealChange) {
  std::filesystem::remove(folder_.path("two/asked.h"));
  EXPECT_EQ(difference(), "two/asked.h");
  spit(folder_.path("two/asked.h"), "");
  spit(folder_.path("seal"), "version 2");
  EXPECT_EQ(difference(), "seal");
  std::filesystem::remove(folder_.path("seal"));
  EXPECT_EQ(difference(), "seal");
}

TEST_F(ClosureTest, NeverHoldsForARootThatIsNotThere) {
  closure_.items = {{7, State::Read, "h.h", sha256("header"), 0}};
  FileDigests digests("");
  EXPECT_TRUE(check(closure_, places_, digests).has_value());
}

TEST_F(ClosureTest, ThatIsLocatedHoldsOnlyInItsOwnPlace) {
  closure_.items.clear();
  closure_.located = true;
  closure_.working_directory = places_.working_directory;
  closure_.root_paths = {places_.roots[0].path, places_.roots[1].path};
  EXPECT_EQ(difference(), "as it was");
  FileDigests digests("");
  Places moved = places_;
  moved.working_directory = folder_.path("one");
  EXPECT_TRUE(check(closure_, moved, digests).has_value());
  moved = places_;
  moved.roots[1].path = folder_.path("one");
  EXPECT_TRUE(check(closure_, moved, digests).has_value());
  moved = places_;
  moved.roots.pop_back();
  EXPECT_TRUE(check(closure_, moved, digests).has_value());
}

TEST_F(ClosureTest, ComesBackWholeFromItsBytesAndIsRefusedWhereverTheyAreCut) {
  Closure located = closure_;
  located.located = true;
  located.working_directory = "/w";
  located.root_paths = {"/a", "/b"};
  for (const Closure& closure : {Closure{}, closure_, located}) {
    const std::string bytes = closure.encode();
    const Result<Closure> back = Closure::decode(bytes);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(*back, closure);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
      ASSERT_FALSE(Closure::decode({cut.data(), cut.size()}).ok()) << length;
    }
    EXPECT_FALSE(Closure::decode(bytes + "x").ok());
  }
}

}  // namespace
}  // namespace kiln::test
