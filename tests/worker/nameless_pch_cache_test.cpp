// SPDX-License-Identifier: Apache-2.0
#include "worker/nameless_pch_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "pch_cache_fixture.hpp"
#include "support/processes/child.hpp"
#include "worker/worker_files.hpp"

namespace kiln::test {
namespace {

class NamelessPch : public PchCacheTest {
 protected:
  NamelessPch() { fs::create_directories(directory_); }
  std::unique_ptr<PchCache> open_nameless(std::uint64_t bound = 1 << 20) {
    return make_pch_cache({directory_, bound, "here", PchCache::Options::Storage::Nameless, scratch_.path("checks")});
  }
  static WorkerJob job_of(const PchRequest& order) {
    return {{Unit::cuda("k.cu", "source"), Target::sm(80), {}, "/"}, order};
  }
  // Opens a file for a worker, as its host does.
  static Fd opened(const PchRequest& order, FileRequest::Purpose purpose) {
    const WorkerJob job = job_of(order);
    FileReply reply = WorkerFiles(job).open({purpose, order.path});
    EXPECT_EQ(reply.error, 0);
    return std::move(reply.file);
  }
  static PchRequest use_of(const Pch& pch) {
    return {PchRequest::Mode::Use, pch.path, pch.size, pch.checksum, {}, false, pch.file};
  }
  // Acts like a compiler and its host process.
  static bool make_in(PchCache& cache, int number, const std::string& content) {
    const auto making = cache.try_begin_write(key(number));
    if (making == nullptr) return false;
    const Fd file = opened(making->order(), FileRequest::Purpose::Write);
    if (!write_all(file.get(), content, "a test")) return false;
    return making->publish(described(content)).has_value();
  }
  static std::string text_of(const Pch& pch) {
    const Fd file = opened(use_of(pch), FileRequest::Purpose::Other);
    const auto bytes = read_all(file.get(), pch.size, "a test");
    return bytes ? std::string(bytes->view()) : "";
  }
};

TEST_F(NamelessPch, IsFoundAndReadByWorkersAndHasNoName) {
  const auto cache = open_nameless();
  EXPECT_FALSE(cache->find(key(1)).has_value());
  ASSERT_TRUE(make_in(*cache, 1, "headers"));
  const auto found = cache->find(key(1));
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(is_nameless_pch(found->path));
  EXPECT_EQ(found->checksum, described("headers").checksum);
  EXPECT_EQ(found->observations.size(), 1U);
  EXPECT_EQ(text_of(*found), "headers");
  EXPECT_EQ(text_of(*found), "headers") << "the second worker has its own position";
  EXPECT_EQ(cache->usage().files, 1U);
  EXPECT_EQ(cache->usage().bytes, 7U);
  EXPECT_TRUE(files_below(scratch_.path()).empty());
}

TEST_F(NamelessPch, WorkersCannotWriteToFinishedOne) {
  const auto cache = open_nameless();
  ASSERT_TRUE(make_in(*cache, 1, "headers"));
  const WorkerJob job = job_of(use_of(*cache->find(key(1))));
  EXPECT_EQ(WorkerFiles(job).open({FileRequest::Purpose::Write, job.pch.path}).error, EACCES);
  const FileReply other = WorkerFiles(job).open({FileRequest::Purpose::Other, job.pch.path + "0"});
  EXPECT_NE(other.error, 0) << "not the file of this job";
  const Fd file = opened(job.pch, FileRequest::Purpose::Other);
  EXPECT_EQ(write(file.get(), "x", 1), -1);
}

TEST_F(NamelessPch, HasOneWriterAtATime) {
  const auto cache = open_nameless();
  auto first = cache->try_begin_write(key(1));
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(cache->try_begin_write(key(1)), nullptr);
  EXPECT_NE(cache->try_begin_write(key(2)), nullptr);
  first.reset();
  EXPECT_NE(cache->try_begin_write(key(1)), nullptr);
}

TEST_F(NamelessPch, RejectsFileOfWrongSizeAndOneLargerThanLimit) {
  const auto cache = open_nameless(10);
  {
    const auto making = cache->try_begin_write(key(1));
    ASSERT_NE(making, nullptr);
    EXPECT_FALSE(making->publish(described("headers")).has_value());
  }
  const auto making = cache->try_begin_write(key(1));
  const Fd file = opened(making->order(), FileRequest::Purpose::Write);
  ASSERT_TRUE(write_all(file.get(), "long headers", "a test"));
  const Status published = making->publish(described("long headers"));
  ASSERT_FALSE(published.has_value());
  EXPECT_NE(published.error().message.find("exceed the limit of 10 bytes"), std::string::npos);
  EXPECT_EQ(cache->usage().files, 0U);
}

TEST_F(NamelessPch, EvictsLeastRecentlyUsed) {
  const auto cache = open_nameless(8);
  ASSERT_TRUE(make_in(*cache, 1, "one."));
  ASSERT_TRUE(make_in(*cache, 2, "two."));
  const auto in_use = cache->find(key(2));
  EXPECT_TRUE(cache->find(key(1)).has_value());
  ASSERT_TRUE(make_in(*cache, 3, "3333"));
  EXPECT_FALSE(cache->find(key(2)).has_value());
  EXPECT_TRUE(cache->find(key(1)).has_value());
  EXPECT_EQ(text_of(*in_use), "two.") << "a running compile keeps its file";
  EXPECT_TRUE(cache->remove(key(1)));
  EXPECT_FALSE(cache->remove(key(1)));
  EXPECT_FALSE(cache->find(key(1)).has_value());
  cache->clear();
  EXPECT_EQ(cache->usage().files, 0U);
}

TEST_F(NamelessPch, StoresOnlyVerdictsForOtherProcesses) {
  const PchVerdict good{PchVerdict::Kind::Good, {}, system_clock().wall()};
  const auto cache = open_nameless();
  EXPECT_FALSE(cache->verdict(key(1)).has_value());
  ASSERT_TRUE(cache->try_begin_write(key(1))->publish(good).has_value());
  const auto other = open_nameless();
  ASSERT_TRUE(other->verdict(key(1)).has_value());
  EXPECT_EQ(other->verdict(key(1))->kind, PchVerdict::Kind::Good);
  EXPECT_FALSE(cache->requested_before(key(1)));
  EXPECT_FALSE(cache->requested_before(key(1)));
}

TEST_F(NamelessPch, RemembersVerdictWithoutDirectory) {
  NamelessPchCache cache({directory_, 1, "here", PchCache::Options::Storage::Nameless});
  ASSERT_TRUE(cache.try_begin_write(key(1))->publish({PchVerdict::Kind::Good, {}, system_clock().wall()}).has_value());
  ASSERT_TRUE(cache.verdict(key(1)).has_value());
  EXPECT_FALSE(cache.verdict(key(2)).has_value());
}

TEST_F(NamelessPch, RejectionExpiresAfterADay) {
  using namespace std::chrono_literals;
  const auto cache = open_nameless();
  const auto now = system_clock().wall();
  ASSERT_TRUE(cache->publish_verdict(key(1), {PchVerdict::Kind::Rejected, "a full disk", now - 23h}).has_value());
  EXPECT_TRUE(cache->verdict(key(1)).has_value());
  ASSERT_TRUE(cache->publish_verdict(key(1), {PchVerdict::Kind::Rejected, "a full disk", now - 25h}).has_value());
  EXPECT_FALSE(cache->verdict(key(1)).has_value());
}

TEST_F(NamelessPch, ChildUsesFilesOfItsParentAndCreatesItsOwn) {
  const auto cache = open_nameless();
  ASSERT_TRUE(make_in(*cache, 1, "headers"));
  const auto making = cache->try_begin_write(key(2));
  EXPECT_EQ(run_in_child([&] {
              if (making->publish(described("")).has_value()) return 1;
              const auto found = cache->find(key(1));
              if (!found || text_of(*found) != "headers") return 2;
              return make_in(*cache, 2, "its own") ? 0 : 3;
            }),
            0);
  EXPECT_FALSE(cache->find(key(2)).has_value());
}

TEST(NamelessFile, IsNotCreatedInMissingDirectory) {
  EXPECT_FALSE(make_nameless_file("/proc/kiln-pch"));
  EXPECT_FALSE(make_nameless_file("/sys/kernel"));
}

}  // namespace
}  // namespace kiln::test
