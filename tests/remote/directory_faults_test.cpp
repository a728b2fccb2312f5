// SPDX-License-Identifier: Apache-2.0
// Errors of a file system that many hosts share, and the number of calls that kiln makes.
#include <gtest/gtest.h>

#include <cerrno>

#include "base/hash.hpp"
#include "remote/directory_leases.hpp"
#include "remote/directory_object_store.hpp"
#include "support/fakes/faulty_calls.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

using Bucket = ObjectStore::Bucket;
using namespace std::chrono_literals;

class DirectoryFaults : public testing::Test {
 protected:
  Status write(const std::string& body) { return object_store_.write(Bucket::ActionCache, name_, {body}, 10s); }
  std::string read() {
    const auto body = object_store_.read(Bucket::ActionCache, name_, 1'000, 10s);
    return body && *body ? std::string((*body)->view()) : std::string("nothing");
  }

  TemporaryDirectory directory_;
  DirectoryObjectStore object_store_{directory_.path()};
  const Digest name_ = sha256("a body");
};

TEST_F(DirectoryFaults, ReadIsOneOpenAndNoOtherMetadataCall) {
  ASSERT_TRUE(write("a body").has_value());
  ASSERT_EQ(read(), "a body");  // the root is now open
  const auto met = [&](Fault fault) {
    const FaultInjection injected(std::move(fault));
    EXPECT_EQ(read(), "a body");
    return injected.met();
  };
  EXPECT_EQ(met({.call = "fstat", .error = EIO, .times = -1}), 0);
  EXPECT_EQ(met({.call = "openat", .error = EIO, .skip = 1, .times = -1}), 0);
}

TEST_F(DirectoryFaults, WorksWithoutOpenat2) {
  for (const int error : {ENOSYS, EPERM}) {
    const FaultInjection fault({.call = "openat2", .error = error, .times = -1});
    EXPECT_TRUE(write(std::to_string(error)).has_value()) << error;
    EXPECT_EQ(read(), std::to_string(error));
    EXPECT_GE(fault.met(), 2);
  }
}

TEST_F(DirectoryFaults, TransientRenameErrorIsRetried) {
  ASSERT_TRUE(write("before").has_value());
  for (const int error : {ESTALE, EBUSY, ENOENT}) {
    const FaultInjection fault({.call = "renameat", .error = error});
    EXPECT_TRUE(write(std::to_string(error)).has_value()) << error;
    EXPECT_EQ(fault.met(), 1);
    EXPECT_EQ(read(), std::to_string(error));
  }
  EXPECT_EQ(files_below(directory_.path()).size(), 1u);
}

TEST_F(DirectoryFaults, LostRenameRaceSucceeds) {
  {
    const FaultInjection fault({.call = "renameat", .error = ENOENT, .times = -1, .done = true});
    EXPECT_TRUE(write("a body").has_value());
    EXPECT_GE(fault.met(), 1);
  }
  EXPECT_EQ(read(), "a body");
}

TEST_F(DirectoryFaults, TransientOpenOrReadErrorIsRetried) {
  ASSERT_TRUE(write("a body").has_value());
  for (const char* call : {"openat", "read"}) {
    for (const int error : {ESTALE, EBUSY, EINTR}) {
      const FaultInjection fault({.call = call, .error = error});
      EXPECT_EQ(read(), "a body") << call << error;
      EXPECT_EQ(fault.met(), 1);
    }
  }
}

TEST_F(DirectoryFaults, HedgeThatCannotBeCreatedIsAnError) {
  DirectoryLeases leases(directory_.path());
  const RequestKey request{sha256("request")};
  ASSERT_TRUE(leases.try_acquire(request, "a", 5s, 1s).value());
  const FaultInjection fault({.call = "openat", .error = ENOSPC, .skip = 1, .times = -1});  // not the directory's
  const auto drawn = leases.try_hedge(request, 2, 1s, 1s);
  ASSERT_FALSE(drawn.has_value());
  EXPECT_NE(drawn.error().message.find(".hedge-0"), std::string::npos) << drawn.error().message;
  EXPECT_EQ(fault.met(), 1);
}

TEST_F(DirectoryFaults, PersistentErrorIsErrorNotMiss) {
  ASSERT_TRUE(write("a body").has_value());
  const std::pair<int, Code> expected[] = {
      {EIO, Code::Io}, {ESTALE, Code::Unavailable}, {EACCES, Code::Denied}, {EMFILE, Code::Io}};
  for (const auto& [error, code] : expected) {
    const FaultInjection fault({.call = "openat", .error = error, .times = -1});
    const auto body = object_store_.read(Bucket::ActionCache, name_, 1'000, 10s);
    ASSERT_FALSE(body.has_value()) << error;
    EXPECT_EQ(body.error().code, code) << body.error().message;
  }
}

TEST_F(DirectoryFaults, FullDirectoryRejectsWritesAndServesReads) {
  ASSERT_TRUE(write("a body").has_value());
  for (const char* call : {"write", "close"}) {
    const FaultInjection fault({.call = call, .error = ENOSPC, .times = -1});
    const Status full = write("another");
    ASSERT_FALSE(full.has_value());
    EXPECT_EQ(full.error().code, Code::Denied) << full.error().message;
  }
  EXPECT_EQ(read(), "a body");
  EXPECT_EQ(files_below(directory_.path()).size(), 1u);
}

}  // namespace
}  // namespace kiln::test
