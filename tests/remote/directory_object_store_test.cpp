// SPDX-License-Identifier: Apache-2.0
#include "remote/directory_object_store.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/hash.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/child.hpp"

namespace kiln::test {
namespace {

using Bucket = ObjectStore::Bucket;
using namespace std::chrono_literals;

class DirectoryObjectStoreTest : public testing::Test {
 protected:
  std::string place(Bucket bucket = Bucket::ActionCache) const {
    const std::string hex = name_.hex();
    return directory_.path(to_string(bucket)) + "/" + hex.substr(0, 2) + "/" + hex;
  }
  void make_shard() const { std::filesystem::create_directories(parent_path(place())); }
  Result<std::optional<Bytes>> read(std::uint64_t maximum = 1'000) {
    return object_store_.read(Bucket::ActionCache, name_, maximum, 10s);
  }
  static mode_t mode_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }
  void expect_no_body() {
    const auto body = read();
    ASSERT_FALSE(body.has_value());
    EXPECT_EQ(body.error().code, Code::Corrupt) << body.error().message;
  }

  TemporaryDirectory directory_;
  DirectoryObjectStore object_store_{directory_.path()};
  const Digest name_ = sha256("a body");
};

TEST_F(DirectoryObjectStoreTest, ObjectsAreStoredBelowFirstDigits) {
  ASSERT_TRUE(object_store_.write(Bucket::ActionCache, name_, {"one ", "two"}, 10s).has_value());
  EXPECT_EQ(read_text(place()), "one two");
  EXPECT_EQ(files_below(directory_.path()).size(), 1u);  // and no temporary file
}

TEST_F(DirectoryObjectStoreTest, MissingDirectoryIsUnavailableUntilCreated) {
  DirectoryObjectStore object_store(directory_.path("later"));
  for (const auto& error :
       {object_store.read(Bucket::ActionCache, name_, 10, 1s).error(), object_store.probe(1s).error(),
        object_store.write(Bucket::ActionCache, name_, {"x"}, 1s).error(),
        object_store.list(Bucket::ActionCache, 1s).error()}) {
    EXPECT_EQ(error.code, Code::Unavailable);
  }
  EXPECT_FALSE(exists(directory_.path("later")));
  std::filesystem::create_directory(directory_.path("later"));
  EXPECT_TRUE(object_store.probe(1s).has_value());
  EXPECT_TRUE(object_store.write(Bucket::ActionCache, name_, {"x"}, 1s).has_value());
}

TEST_F(DirectoryObjectStoreTest, SpecialFileIsCorruptAndDoesNotBlock) {
  make_shard();
  ASSERT_EQ(mkfifo(place().c_str(), 0666), 0);
  // Without a writer, a FIFO is at its end, which is an empty object. A FIFO with a silent writer is not an object.
  const auto empty = read();
  EXPECT_TRUE(empty.has_value() && *empty && (*empty)->empty());
  const Fd writer(open(place().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(static_cast<bool>(writer));
  expect_no_body();
  ASSERT_EQ(unlink(place().c_str()), 0);

  write_text(directory_.path("elsewhere"), "a body");
  std::filesystem::create_symlink(directory_.path("elsewhere"), place());
  expect_no_body();
  ASSERT_EQ(unlink(place().c_str()), 0);
  std::filesystem::create_symlink("/dev/zero", place());
  expect_no_body();
  ASSERT_EQ(unlink(place().c_str()), 0);
  std::filesystem::create_directory(place());
  expect_no_body();
}

TEST_F(DirectoryObjectStoreTest, FileInsteadOfShardIsErrorNotMiss) {
  std::filesystem::create_directories(directory_.path("ac"));
  write_text(parent_path(place()), "in the way");
  expect_no_body();
  const Status written = object_store_.write(Bucket::ActionCache, name_, {"x"}, 10s);
  EXPECT_FALSE(written.has_value());
  EXPECT_TRUE(object_store_.remove(Bucket::ActionCache, name_, 10s).has_value());
}

TEST_F(DirectoryObjectStoreTest, HugeFileIsReadUpToLimit) {
  make_shard();
  write_text(place(), "x");
  std::filesystem::resize_file(place(), std::uintmax_t{1} << 40);
  const auto body = read(1 << 20);
  ASSERT_FALSE(body.has_value());
  EXPECT_EQ(body.error().code, Code::Corrupt);
}

TEST_F(DirectoryObjectStoreTest, CreatedDirectoriesInheritModeOfRoot) {
  ASSERT_EQ(chmod(directory_.path().c_str(), 02775), 0);
  const mode_t before = umask(077);
  EXPECT_TRUE(object_store_.write(Bucket::ActionCache, name_, {"x"}, 10s).has_value());
  umask(before);
  EXPECT_EQ(mode_of(directory_.path("ac")), 02775u);
  EXPECT_EQ(mode_of(parent_path(place())), 02775u);
  EXPECT_EQ(mode_of(place()), 0644u);  // replaced by rename, never modified
}

TEST_F(DirectoryObjectStoreTest, ReadOnlyDirectoryRejectsWritesAndServesReads) {
  ASSERT_TRUE(object_store_.write(Bucket::ActionCache, name_, {"x"}, 10s).has_value());
  ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(directory_.path("ac").c_str(), 0755), 0);
  ASSERT_EQ(chmod(parent_path(place()).c_str(), 0755), 0);
  ASSERT_EQ(chmod(place().c_str(), 0644), 0);
  const int code = run_in_child([&] {
    if (geteuid() == 0 && !become(4242)) return 2;
    DirectoryObjectStore object_store(directory_.path());
    const Status written = object_store.write(Bucket::ActionCache, name_, {"y"}, 10s);
    if (written || written.error().code != Code::Denied) return 3;
    const Status made = object_store.write(Bucket::Cas, name_, {"y"}, 10s);
    if (made || made.error().code != Code::Denied) return 4;
    const auto body = object_store.read(Bucket::ActionCache, name_, 10, 10s);
    return body && *body && (*body)->view() == "x" ? 0 : 5;
  });
  EXPECT_EQ(code, geteuid() == 0 ? 0 : 3);
}

TEST_F(DirectoryObjectStoreTest, RecreatedDirectoryIsWritable) {
  ASSERT_TRUE(object_store_.write(Bucket::ActionCache, name_, {"old"}, 10s).has_value());
  std::filesystem::remove_all(directory_.path());
  std::filesystem::create_directory(directory_.path());
  ASSERT_TRUE(object_store_.write(Bucket::ActionCache, name_, {"new"}, 10s).has_value());
  EXPECT_EQ(read_text(place()), "new");
  EXPECT_EQ((**read()).view(), "new");
}

TEST_F(DirectoryObjectStoreTest, TidyRemovesOnlyStaleTemporaryFiles) {
  ASSERT_TRUE(object_store_.write(Bucket::ActionCache, name_, {"x"}, 10s).has_value());
  const std::string old = parent_path(place()) + "/.tmp-" + std::string(32, '1') + "-2-3";
  const std::string young = parent_path(place()) + "/.tmp-" + std::string(32, '5') + "-6-7";
  write_text(old, "half");
  write_text(young, "half");
  for (const std::string& aged : {old, place()}) {
    std::filesystem::last_write_time(aged, std::filesystem::file_time_type::clock::now() - 48h);
  }
  ASSERT_TRUE(object_store_.remove_stale_uploads(10s).has_value());
  EXPECT_FALSE(exists(old));
  EXPECT_TRUE(exists(young));
  EXPECT_TRUE(exists(place()));
}

TEST_F(DirectoryObjectStoreTest, NoOperationWithoutTimeLeft) {
  ASSERT_TRUE(object_store_.write(Bucket::ActionCache, name_, {"x"}, 10s).has_value());
  for (const auto& error : {object_store_.read(Bucket::ActionCache, name_, 10, 0s).error(),
                            object_store_.write(Bucket::ActionCache, name_, {"y"}, 0s).error(),
                            object_store_.remove(Bucket::ActionCache, name_, 0s).error(),
                            object_store_.list(Bucket::ActionCache, 0s).error()}) {
    EXPECT_EQ(error.code, Code::TimedOut);
  }
  EXPECT_EQ(read_text(place()), "x");
}

}  // namespace
}  // namespace kiln::test
