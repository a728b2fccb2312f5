#include "remote/directory_depot.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/hash.hpp"
#include "support/child.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

using Shelf = Depot::Shelf;
using namespace std::chrono_literals;

class DirectoryDepotTest : public testing::Test {
 protected:
  std::string place(Shelf shelf = Shelf::Action) const {
    const std::string hex = name_.hex();
    return folder_.path(to_string(shelf)) + "/" + hex.substr(0, 2) + "/" + hex;
  }
  void make_shard() const { std::filesystem::create_directories(folder_of(place())); }
  Result<std::optional<Bytes>> read(std::uint64_t most = 1'000) { return depot_.read(Shelf::Action, name_, most, 10s); }
  static mode_t mode_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }
  void expect_no_body() {
    const auto body = read();
    ASSERT_FALSE(body.ok());
    EXPECT_EQ(body.error().code, Code::Corrupt) << body.error().message;
  }

  TemporaryDirectory folder_;
  DirectoryDepot depot_{folder_.path()};
  const Digest name_ = sha256("a body");
};

TEST_F(DirectoryDepotTest, BodiesLieUnderTheFirstDigitsOfTheirNames) {
  ASSERT_TRUE(depot_.write(Shelf::Action, name_, {"one ", "two"}, 10s).ok());
  EXPECT_EQ(slurp(place()), "one two");
  EXPECT_EQ(files_below(folder_.path()).size(), 1u);  // and nothing temporary
}

TEST_F(DirectoryDepotTest, AFolderThatIsNotThereIsUnavailableUntilItIs) {
  DirectoryDepot depot(folder_.path("later"));
  for (const auto& error :
       {depot.read(Shelf::Action, name_, 10, 1s).error(), depot.probe(1s).error(),
        depot.write(Shelf::Action, name_, {"x"}, 1s).error(), depot.list(Shelf::Action, 1s).error()}) {
    EXPECT_EQ(error.code, Code::Unavailable);
  }
  EXPECT_FALSE(exists(folder_.path("later")));
  std::filesystem::create_directory(folder_.path("later"));
  EXPECT_TRUE(depot.probe(1s).ok());
  EXPECT_TRUE(depot.write(Shelf::Action, name_, {"x"}, 1s).ok());
}

TEST_F(DirectoryDepotTest, WhatIsNoRegularFileIsNoBodyAndHoldsNobodyUp) {
  make_shard();
  ASSERT_EQ(mkfifo(place().c_str(), 0666), 0);
  // Without a writer a pipe is at its end at once, which is an empty body; one with a silent writer is none.
  const auto empty = read();
  EXPECT_TRUE(empty.ok() && *empty && (*empty)->empty());
  const Fd writer(open(place().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(static_cast<bool>(writer));
  expect_no_body();
  ASSERT_EQ(unlink(place().c_str()), 0);

  spit(folder_.path("elsewhere"), "a body");
  std::filesystem::create_symlink(folder_.path("elsewhere"), place());
  expect_no_body();
  ASSERT_EQ(unlink(place().c_str()), 0);
  std::filesystem::create_symlink("/dev/zero", place());
  expect_no_body();
  ASSERT_EQ(unlink(place().c_str()), 0);
  std::filesystem::create_directory(place());
  expect_no_body();
}

TEST_F(DirectoryDepotTest, AFileInAShardsPlaceIsAFaultAndNoAbsence) {
  std::filesystem::create_directories(folder_.path("ac"));
  spit(folder_of(place()), "in the way");
  expect_no_body();
  const Status written = depot_.write(Shelf::Action, name_, {"x"}, 10s);
  EXPECT_FALSE(written.ok());
  EXPECT_TRUE(depot_.remove(Shelf::Action, name_, 10s).ok());
}

TEST_F(DirectoryDepotTest, AWriterThatLeavesAHugeFileCostsAReaderNoMoreThanIsAllowed) {
  make_shard();
  spit(place(), "x");
  std::filesystem::resize_file(place(), std::uintmax_t{1} << 40);
  const auto body = read(1 << 20);
  ASSERT_FALSE(body.ok());
  EXPECT_EQ(body.error().code, Code::Corrupt);
}

TEST_F(DirectoryDepotTest, WhoeverMayUseTheFolderMayUseWhatIsMadeInIt) {
  ASSERT_EQ(chmod(folder_.path().c_str(), 02775), 0);
  const mode_t before = umask(077);
  EXPECT_TRUE(depot_.write(Shelf::Action, name_, {"x"}, 10s).ok());
  umask(before);
  EXPECT_EQ(mode_of(folder_.path("ac")), 02775u);
  EXPECT_EQ(mode_of(folder_of(place())), 02775u);
  EXPECT_EQ(mode_of(place()), 0664u);
}

TEST_F(DirectoryDepotTest, AFolderThatTakesNothingIsARefusalAndCanBeReadAllTheSame) {
  ASSERT_TRUE(depot_.write(Shelf::Action, name_, {"x"}, 10s).ok());
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(folder_.path("ac").c_str(), 0755), 0);
  ASSERT_EQ(chmod(folder_of(place()).c_str(), 0755), 0);
  ASSERT_EQ(chmod(place().c_str(), 0644), 0);
  const int code = run_in_child([&] {
    if (geteuid() == 0 && !become(4242)) return 2;
    DirectoryDepot depot(folder_.path());
    const Status written = depot.write(Shelf::Action, name_, {"y"}, 10s);
    if (written || written.error().code != Code::Refused) return 3;
    const Status made = depot.write(Shelf::Content, name_, {"y"}, 10s);
    if (made || made.error().code != Code::Refused) return 4;
    const auto body = depot.read(Shelf::Action, name_, 10, 10s);
    return body && *body && (*body)->view() == "x" ? 0 : 5;
  });
  EXPECT_EQ(code, geteuid() == 0 ? 0 : 3);
}

TEST_F(DirectoryDepotTest, AFolderThatWasRemovedAndMadeAgainIsWrittenTo) {
  ASSERT_TRUE(depot_.write(Shelf::Action, name_, {"old"}, 10s).ok());
  std::filesystem::remove_all(folder_.path());
  std::filesystem::create_directory(folder_.path());
  ASSERT_TRUE(depot_.write(Shelf::Action, name_, {"new"}, 10s).ok());
  EXPECT_EQ(slurp(place()), "new");
  EXPECT_EQ((**read()).view(), "new");
}

TEST_F(DirectoryDepotTest, TidyingTakesWhatDeadWritersLeftAndNothingElse) {
  ASSERT_TRUE(depot_.write(Shelf::Action, name_, {"x"}, 10s).ok());
  const std::string old = folder_of(place()) + "/.tmp-1-2-3-4";
  const std::string young = folder_of(place()) + "/.tmp-5-6-7-8";
  spit(old, "half");
  spit(young, "half");
  for (const std::string& aged : {old, place()}) {
    std::filesystem::last_write_time(aged, std::filesystem::file_time_type::clock::now() - 48h);
  }
  ASSERT_TRUE(depot_.tidy(10s).ok());
  EXPECT_FALSE(exists(old));
  EXPECT_TRUE(exists(young));
  EXPECT_TRUE(exists(place()));
}

TEST_F(DirectoryDepotTest, NothingIsDoneWithoutTime) {
  ASSERT_TRUE(depot_.write(Shelf::Action, name_, {"x"}, 10s).ok());
  for (const auto& error :
       {depot_.read(Shelf::Action, name_, 10, 0s).error(), depot_.write(Shelf::Action, name_, {"y"}, 0s).error(),
        depot_.remove(Shelf::Action, name_, 0s).error(), depot_.list(Shelf::Action, 0s).error()}) {
    EXPECT_EQ(error.code, Code::TimedOut);
  }
  EXPECT_EQ(slurp(place()), "x");
}

}  // namespace
}  // namespace kiln::test
