// SPDX-License-Identifier: Apache-2.0
// The first request on a host, where the digest of the compiler is not remembered.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <kiln/kiln.hpp>

#include "support/fixtures/event_log.hpp"
#include "support/fixtures/header_units.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"
#include "support/fixtures/workers.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class NewHost : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    forget_digests();
  }
  void TearDown() override { unsetenv("XDG_RUNTIME_DIR"); }
  // Makes this process one of a host that has digested nothing.
  void forget_digests() {
    const std::string directory = directory_.path("run" + std::to_string(++hosts_));
    fs::create_directory(directory);
    fs::permissions(directory, fs::perms(0700));
    setenv("XDG_RUNTIME_DIR", directory.c_str(), 1);
    fs::remove(directory_.path("cache/v1/digests"));
  }
  Session open(const std::string& cache = "cache", const std::string& compile = "allowed") {
    SessionOptions options;
    options.settings = {{"cache.dir", directory_.path(cache)}, {"compile", compile}};
    options.on_event = log_.callback();
    return Session::open(std::move(options)).value();
  }

  const TemporaryDirectory directory_;
  EventLog log_;
  int hosts_ = 0;
};

TEST_F(NewHost, StoresUnderTheKeyOfAUsedHost) {
  const auto first = open().artifact(header_unit(1), Target::sm(80));
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_EQ(first->bytes.size() > 0, true);
  EXPECT_EQ(log_.count(Event::Kind::Compiled), 1U);
  ASSERT_EQ(log_.count(Event::Kind::Published), 1U);
  const auto used = open("other").artifact(header_unit(1), Target::sm(80));
  ASSERT_TRUE(used.has_value()) << used.error().message;
  EXPECT_EQ(used->bytes.view(), first->bytes.view());
  const auto published = log_.of(Event::Kind::Published);
  ASSERT_EQ(published.size(), 2U);
  EXPECT_EQ(published[0].key, published[1].key);
}

TEST_F(NewHost, HitIsNotCompiledAndLeavesNoWorker) {
  ASSERT_TRUE(open().artifact(header_unit(1), Target::sm(80)).has_value());
  forget_digests();
  Session session = open();
  const auto again = session.artifact(header_unit(1), Target::sm(80));
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(log_.count(Event::Kind::Compiled), 1U);
  EXPECT_EQ(log_.count(Event::Kind::Hit), 1U);
  EXPECT_EQ(log_.count(Event::Kind::WorkerLost), 0U);
  EXPECT_TRUE(eventually([] { return workers_of(getpid()).empty(); }));
}

TEST_F(NewHost, HitOnAUsedHostStartsNoWorker) {
  ASSERT_TRUE(open().artifact(header_unit(1), Target::sm(80)).has_value());
  ASSERT_TRUE(eventually([] { return workers_of(getpid()).empty(); }));
  Session session = open();
  ASSERT_TRUE(session.artifact(header_unit(1), Target::sm(80)).has_value());
  EXPECT_TRUE(workers_of(getpid()).empty());
}

TEST_F(NewHost, CompilesNothingEarlyIfCompilingIsDisabled) {
  Session session = open("cache", "never");
  const auto denied = session.artifact(header_unit(1), Target::sm(80));
  ASSERT_FALSE(denied.has_value());
  EXPECT_EQ(denied.error().code, Code::Denied);
  EXPECT_TRUE(workers_of(getpid()).empty());
}

}  // namespace
}  // namespace kiln::test
