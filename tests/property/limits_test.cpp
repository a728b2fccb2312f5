// SPDX-License-Identifier: Apache-2.0
// Limits of the guarantee that a result is never stale (docs/internals/never-stale.md) that no other test covers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "backends/command/include_scan.hpp"
#include "base/files/file_digest_cache.hpp"
#include "base/hash.hpp"
#include "support/fakes/manual_clock.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

class NeverStaleLimits : public testing::Test {
 protected:
  void SetUp() override { write_text(header_, "one"); }

  Digest look() { return digests_.lookup(header_).value().digest; }

  TemporaryDirectory directory_;
  const std::string header_ = directory_.path("header.h");
  ManualClock clock_;
  FileDigestCache digests_{directory_.path("digests"), clock_};
};

TEST_F(NeverStaleLimits, MappedStoreIsDetectedWhenTimestampsChange) {
  const int fd = open(header_.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  void* const mapping = mmap(nullptr, 3, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  auto* const text = static_cast<volatile char*>(mapping);
  text[0] = 'O';  // the first store into a clean page updates the timestamps of the file; further ones do not
  clock_.advance(std::chrono::seconds(10));
  ASSERT_EQ(look(), sha256("One"));
  struct stat before;
  ASSERT_EQ(fstat(fd, &before), 0);
  text[1] = 'N';
  struct stat after;
  ASSERT_EQ(fstat(fd, &after), 0);
  if (before.st_ctim.tv_sec != after.st_ctim.tv_sec || before.st_ctim.tv_nsec != after.st_ctim.tv_nsec) {
    GTEST_SKIP() << "this file system updates the time for each mapped store, or wrote the page back during the test";
  }
  EXPECT_EQ(look(), sha256("One"))
      << "a store without a timestamp change was detected: update docs/internals/never-stale.md";

  // The workaround for a writer.
  ASSERT_EQ(futimens(fd, nullptr), 0);
  EXPECT_EQ(look(), sha256("ONe"));
  munmap(mapping, 3);
  close(fd);
}

TEST_F(NeverStaleLimits, FilesAreHashedAgainAfterClockIsSetBack) {
  clock_.advance(-std::chrono::hours(1));
  (void)look();
  (void)look();
  EXPECT_EQ(digests_.computed_count(), 2U) << "a file with timestamps in the future was cached";
  clock_.advance(std::chrono::hours(1) + std::chrono::seconds(10));
  (void)look();
  (void)look();
  EXPECT_EQ(digests_.computed_count(), 3U);
}

// NVRTC's file queries are recorded. For a command, only its dependency file and the source texts are available.
TEST(CommandLimits, MacroInHasIncludeHidesItsName) {
  EXPECT_EQ(scan_includes("#if __has_include(<maybe.h>)\n#endif\n").names.size(), 1U);
  const IncludeScan hidden = scan_includes("#define MAYBE <maybe.h>\n#if __has_include(MAYBE)\n#endif\n");
  EXPECT_TRUE(hidden.names.empty());
  EXPECT_FALSE(hidden.computed);
}

}  // namespace
}  // namespace kiln::test
