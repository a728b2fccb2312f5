// SPDX-License-Identifier: Apache-2.0
// LibraryCheck: which results are remembered, where, and for which library.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "worker/library_check.hpp"

namespace kiln::test {
namespace {

class LibraryChecks : public testing::Test {
 protected:
  LibraryCheck fresh() {
    return LibraryCheck([this] { return directory_.path("checks"); }, events_.emitter());
  }
  static Recipe recipe(const char* library = "library") {
    Recipe recipe{Unit::of_kind("cccl", "unit", "source"), Target::sm(80), {}, "/"};
    recipe.compiler.path = "/lib/libcccl.so";
    recipe.compiler.digest = sha256(library);
    return recipe;
  }
  Status pass(LibraryCheck& check, const Result<CompileResult>& result, const char* library = "library") {
    return check.pass(recipe(library), Unit::of_kind("cccl-check", "reduce", "spec"),
                      [&] {
                        ++runs_;
                        return result;
                      },
                      {});
  }
  std::size_t files() const {
    std::size_t count = 0;
    for (const auto& file : std::filesystem::directory_iterator(directory_.path("checks")))
      count += file.path().extension() == ".kpcv" ? 1 : 0;
    return count;
  }

  const Result<CompileResult> good_ = CompileResult{};
  const Result<CompileResult> bad_ = make_error(Code::CompileFailed, "other kernels");
  TemporaryDirectory directory_;
  EventLog events_;
  std::atomic<int> runs_{0};
};

TEST_F(LibraryChecks, PassedCheckRunsOncePerLibraryAndHost) {
  {
    LibraryCheck check = fresh();
    EXPECT_TRUE(pass(check, good_).has_value());
    EXPECT_TRUE(pass(check, bad_).has_value());
  }
  LibraryCheck next = fresh();
  EXPECT_TRUE(pass(next, bad_).has_value()) << "another process finds the result";
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(files(), 1U);
  EXPECT_TRUE(pass(next, good_, "another library").has_value());
  EXPECT_EQ(runs_, 2);
  const auto said = events_.of(Event::Kind::LibraryChecked);
  ASSERT_EQ(said.size(), 4U) << "start and result of each check";
  EXPECT_EQ(said[1].selected, "passed");
}

TEST_F(LibraryChecks, FailedCheckIsUnavailableWithReasonAndRemembered) {
  for (int process = 0; process < 2; ++process) {
    LibraryCheck check = fresh();
    for (int i = 0; i < 2; ++i) {
      const Status passed = pass(check, bad_);
      ASSERT_FALSE(passed.has_value());
      EXPECT_EQ(passed.error().code, Code::Unavailable);
      for (const char* said : {"/lib/libcccl.so", "does not know", "other kernels", "install"})
        EXPECT_NE(passed.error().message.find(said), std::string::npos) << passed.error().message;
    }
  }
  EXPECT_EQ(runs_, 1);
}

TEST_F(LibraryChecks, InterruptedCheckRunsAgain) {
  LibraryCheck check = fresh();
  const Status interrupted = pass(check, make_error(Code::Cancelled, "stopped"));
  ASSERT_FALSE(interrupted.has_value());
  EXPECT_EQ(interrupted.error().code, Code::Cancelled);
  EXPECT_EQ(files(), 0U);
  EXPECT_TRUE(pass(check, good_).has_value());
  EXPECT_EQ(runs_, 2);
}

TEST_F(LibraryChecks, CorruptResultIsCheckedAgain) {
  {
    LibraryCheck check = fresh();
    EXPECT_FALSE(pass(check, bad_).has_value());
  }
  for (const auto& file : std::filesystem::directory_iterator(directory_.path("checks"))) {
    if (file.path().extension() == ".kpcv") write_text(file.path().string(), "KILNPCV1 and nothing valid");
  }
  LibraryCheck next = fresh();
  EXPECT_TRUE(pass(next, good_).has_value());
  EXPECT_EQ(runs_, 2);
}

TEST_F(LibraryChecks, ThreadsWaitForOneCheck) {
  LibraryCheck check = fresh();
  std::vector<std::thread> threads;
  std::atomic<int> passed{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const Status status = check.pass(recipe(), Unit::of_kind("cccl-check", "reduce", "spec"),
                                       [&] {
                                         ++runs_;
                                         std::this_thread::sleep_for(std::chrono::milliseconds(50));
                                         return good_;
                                       },
                                       {});
      passed += status.has_value() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(passed, 4);
}

TEST_F(LibraryChecks, WithoutDirectoryTheProcessRemembers) {
  LibraryCheck check([] { return std::string(); }, {});
  EXPECT_TRUE(pass(check, good_).has_value());
  EXPECT_TRUE(pass(check, good_).has_value());
  EXPECT_EQ(runs_, 1);
}

TEST_F(LibraryChecks, RemembersWorkerThatPassedTheCheckOfItsAccesses) {
  const Digest worker{{1}};
  {
    LibraryCheck check = fresh();
    EXPECT_EQ(check.access_check(recipe().compiler), Digest());
    check.remember_access_check(recipe().compiler, Digest());
    EXPECT_EQ(check.access_check(recipe().compiler), Digest()) << "zeros are no result";
    check.remember_access_check(recipe().compiler, worker);
    EXPECT_EQ(check.access_check(recipe().compiler), worker);
  }
  EXPECT_EQ(files(), 1U);
  LibraryCheck next = fresh();
  EXPECT_EQ(next.access_check(recipe().compiler), worker) << "another process finds the result";
  EXPECT_EQ(next.access_check(recipe("another library").compiler), Digest());
  next.remember_access_check(recipe().compiler, Digest{{2}});
  EXPECT_EQ(fresh().access_check(recipe().compiler), Digest{{2}}) << "another worker program replaces it";
}

TEST_F(LibraryChecks, IgnoresInvalidFilesOfAccessChecks) {
  fresh().remember_access_check(recipe().compiler, Digest{{1}});
  const std::string file = directory_.path("checks/" + access_check_key(recipe().compiler).hex() + ".kpcv");
  const std::string good = read_text(file);
  namespace fs = std::filesystem;
  fs::permissions(file, fs::perms::group_write, fs::perm_options::add);
  EXPECT_EQ(fresh().access_check(recipe().compiler), Digest()) << "a group can write to it";
  fs::remove(file);
  write_text(directory_.path("elsewhere"), good);
  fs::create_symlink(directory_.path("elsewhere"), file);
  EXPECT_EQ(fresh().access_check(recipe().compiler), Digest()) << "a link";
  fs::remove(file);
  for (const std::string& text :
       {std::string(), std::string("KILNPCV1"), good.substr(0, good.size() - 1), good + "x"}) {
    write_text(file, text);
    fs::permissions(file, fs::perms(0600));
    EXPECT_EQ(fresh().access_check(recipe().compiler), Digest()) << text.size();
  }
  write_text(file, good);
  fs::permissions(file, fs::perms(0600));
  EXPECT_EQ(fresh().access_check(recipe().compiler), Digest{{1}});
}

}  // namespace
}  // namespace kiln::test
