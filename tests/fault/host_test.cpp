// SPDX-License-Identifier: Apache-2.0
// Host conditions: many processes at once, processes that die, unusable directories, and failing file systems. Every
// process is a real one with a real compiler.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"
#include "support/fixtures/workers.hpp"
#include "support/processes/child.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/get_process.hpp"
#include "support/processes/processes.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Host : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    fs::permissions(directory_.path(), fs::perms(0755));
    fs::create_directory(directory_.path("tmp"));
    fs::permissions(directory_.path("tmp"), fs::perms(01777));
  }
  GetProcess start(GetProcess::Start how) {
    how.environment.emplace("TMPDIR", directory_.path("tmp"));
    return {how, directory_.path("out-" + std::to_string(++outputs_))};
  }
  GetProcess start(const std::string& unit, std::map<std::string, std::string> environment) {
    return start({{unit}, std::move(environment), {}, {}});
  }
  std::string cache() const { return directory_.path("cache"); }

  // Expects that the artifact was served, and that an event names the reason why nothing was stored.
  void expect_served_and_said(GetProcess process, const std::string& reason) {
    EXPECT_EQ(process.exit_code(), 0) << process.output();
    EXPECT_EQ(process.count("artifact "), 1) << process.output();
    EXPECT_NE(process.output().find(reason), std::string::npos) << "no event names '" << reason << "':\n"
                                                                << process.output();
    EXPECT_GE(process.count("event cache_unavailable") + process.count("event not_published"), 1) << process.output();
  }

  TemporaryDirectory directory_;
  int outputs_ = 0;
};

TEST_F(Host, SixtyFourProcessesCompileOneKeyOnce) {
  std::vector<GetProcess> processes;
  for (int i = 0; i < 64; ++i) processes.push_back(start("cub", {{"KILN_CACHE_DIR", cache()}}));
  int compiles = 0;
  double winner = 0;
  double last = 0;
  std::string bytes;
  for (GetProcess& process : processes) {
    ASSERT_EQ(process.exit_code(), 0) << process.output();
    compiles += process.count("event compiled");
    if (bytes.empty()) bytes = process.word_after("artifact");
    EXPECT_EQ(process.word_after("artifact"), bytes);
    const double ms = std::stod(process.word_after("ms"));
    if (process.count("event compiled") > 0) winner = ms;
    last = std::max(last, ms);
  }
  std::printf("figure: 64 processes, one cold key: compiles=%d first=%.0f ms slowest=%.0f ms ratio=%.3f\n", compiles,
              winner, last, last / winner);
  EXPECT_EQ(compiles, 1);
  EXPECT_LT(last, winner * 1.10 + 10'000) << "a waiter learns late that the artifact is there";
}

TEST_F(Host, StoppedClaimHolderCostsOneExtraCompile) {
  const std::map<std::string, std::string> environment{{"KILN_CACHE_DIR", cache()}};
  const GetProcess winner = start({{"header", "stopped"}, environment, {}, {}});
  ASSERT_TRUE(eventually([&] { return winner.count("event compiled") > 0; })) << winner.output();
  std::vector<GetProcess> waiters;
  for (int i = 0; i < 12; ++i) waiters.push_back(start("header", environment));
  int compiles = 0;
  double slowest = 0;
  for (GetProcess& waiter : waiters) {
    ASSERT_EQ(waiter.exit_code(), 0) << waiter.output();
    compiles += waiter.count("event compiled");
    slowest = std::max(slowest, std::stod(waiter.word_after("ms")));
  }
  std::printf("figure: stopped claim holder, 12 waiters: compiles by waiters=%d slowest=%.0f ms\n", compiles, slowest);
  EXPECT_EQ(compiles, 1) << "the stopped process and one waiter compile";
}

// Kills the process that holds the claim during its compile. `arguments` select what survives it.
void take_over(const std::function<GetProcess(std::vector<std::string>)>& start,
               const std::vector<std::string>& arguments) {
  GetProcess winner = start(arguments);
  const pid_t id = winner.id();
  std::vector<pid_t> workers;
  const auto compiles = [&] {
    workers = workers_of(id);
    return !workers.empty() && process_line(workers[0]).cpu_time >= 100ms;
  };
  ASSERT_TRUE(eventually(compiles)) << winner.output();
  for (const pid_t worker : workers) kill(worker, SIGSTOP);  // the compile cannot end before its process is killed
  GetProcess other = start({"cub"});
  ASSERT_TRUE(eventually([&] { return other.count("event miss") > 0; })) << other.output();
  std::this_thread::sleep_for(500ms);
  ASSERT_EQ(winner.count("artifact "), 0) << "it finished before it could be killed";
  ASSERT_TRUE(workers_of(other.id()).empty()) << "two compile at once";
  winner.kill_now();
  const auto killed = std::chrono::steady_clock::now();
  ASSERT_TRUE(eventually([&] { return !workers_of(other.id()).empty(); })) << other.output();
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - killed).count();
  std::printf("figure: claim holder killed (%s): another compiles after %.0f ms\n", arguments.back().c_str(), ms);
  EXPECT_LT(ms, 10'000);
  EXPECT_TRUE(eventually([&] { return workers_of(id).empty(); }, 20s)) << "an orphaned worker is left";
  for (const pid_t worker : workers_of(id)) kill(worker, SIGKILL);
  EXPECT_EQ(other.exit_code(), 0) << other.output();
  EXPECT_EQ(other.count("event compiled"), 1);
}

TEST_F(Host, AnotherProcessTakesOverWhenClaimHolderDies) {
  take_over(
      [&](std::vector<std::string> a) {
        return start({std::move(a), {{"KILN_CACHE_DIR", cache()}}, {}, {}});
      },
      {"cub"});
}

TEST_F(Host, ForkedChildOfDeadClaimHolderDoesNotBlockTakeover) {
  take_over(
      [&](std::vector<std::string> a) {
        return start({std::move(a), {{"KILN_CACHE_DIR", cache()}}, {}, {}});
      },
      {"cub", "sleepy"});
}

// Returns why this test cannot run a process as another user; null if it can.
const char* exclusive_reason() {
  if (geteuid() != 0) return "needs root, to become another user";
  const std::string program = fs::read_symlink("/proc/self/exe");
  const int reached = run_in_child([&] { return become(12345) && access(program.c_str(), X_OK) == 0 ? 0 : 1; });
  return reached == 0 ? nullptr : "another user cannot reach this tree";
}

TEST_F(Host, UnwritableDirectoryDisablesOnlyCache) {
  if (const char* reason = exclusive_reason()) GTEST_SKIP() << reason;
  fs::create_directory(cache());
  fs::permissions(cache(), fs::perms(0555));
  fs::permissions(directory_.path(), fs::perms(0777));
  expect_served_and_said(start({{"header"}, {{"KILN_CACHE_DIR", cache()}}, {}, [] { return become(12345); }}), cache());
}

TEST_F(Host, FullDiskDisablesOnlyCache) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  fs::create_directory(cache());
  const auto full = [path = cache()] {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    if (mount("tmpfs", path.c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0) return false;
    write_text(path + "/filler", std::string(65536, 'x'));
    return true;
  };
  expect_served_and_said(start({{"header"}, {{"KILN_CACHE_DIR", cache()}}, {}, full}), "No space left");
}

TEST_F(Host, RejectsCacheRootThatIsLinkFifoOrWorldWritable) {
  fs::create_directory(directory_.path("elsewhere"));
  fs::permissions(directory_.path("elsewhere"), fs::perms(0777));
  fs::create_directory_symlink(directory_.path("elsewhere"), directory_.path("link"));
  expect_served_and_said(start("header", {{"KILN_CACHE_DIR", directory_.path("link")}}), directory_.path("link"));
  ASSERT_EQ(mkfifo((directory_.path("fifo")).c_str(), 0600), 0);
  expect_served_and_said(start("header", {{"KILN_CACHE_DIR", directory_.path("fifo")}}), directory_.path("fifo"));
  fs::create_directory(directory_.path("open"));
  fs::permissions(directory_.path("open"), fs::perms(0777));
  expect_served_and_said(start("header", {{"KILN_CACHE_DIR", directory_.path("open")}}), directory_.path("open"));
  EXPECT_TRUE(files_below(directory_.path("elsewhere")).empty());
  EXPECT_TRUE(files_below(directory_.path("open")).empty());
}

TEST_F(Host, ServesArtifactWithoutHome) {
  if (const char* reason = exclusive_reason()) GTEST_SKIP() << reason;
  fs::permissions(directory_.path(), fs::perms(0777));
  GetProcess process = start({{"header"}, {}, {}, [] { return become(12345); }});
  EXPECT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("artifact "), 1) << process.output();
}

// Like a service that root starts in its home directory.
TEST_F(Host, ServesArtifactInDirectoryThatUserCannotEnter) {
  if (const char* reason = exclusive_reason()) GTEST_SKIP() << reason;
  fs::create_directory(directory_.path("private"));
  fs::permissions(directory_.path("private"), fs::perms(0700));
  fs::permissions(directory_.path(), fs::perms(0777));
  const auto start_inside = [path = directory_.path("private")] { return chdir(path.c_str()) == 0 && become(12345); };
  GetProcess process = start({{"header"}, {{"KILN_DISABLE", "1"}}, {}, start_inside});
  EXPECT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("artifact "), 1) << process.output();
}

TEST_F(Host, ReadOnlyCacheOfRootServesOtherUserWithoutCompile) {
  if (const char* reason = exclusive_reason()) GTEST_SKIP() << reason;
  fs::permissions(directory_.path(), fs::perms(0755));
  for (const char* unit : {"closed", "header", "cub"}) {
    GetProcess filler = start(unit, {{"KILN_CACHE_DIR", cache()}});
    ASSERT_EQ(filler.exit_code(), 0) << filler.output();
    ASSERT_EQ(filler.count("event published"), 1) << filler.output();
  }
  // Like in an image: readable by all, and permanently read-only.
  fs::permissions(cache(), fs::perms(0755));
  for (const auto& entry : fs::recursive_directory_iterator(cache())) {
    fs::permissions(entry.path(), entry.is_directory() ? fs::perms(0555) : fs::perms(0444));
  }
  const std::pair<const char*, std::string> settings[] = {{"KILN_CACHE_DIR", cache()},
                                                          {"KILN_CACHE_PATH", "/nonexistent/kiln:" + cache()}};
  for (const auto& [variable, value] : settings) {
    for (const char* unit : {"closed", "header", "cub"}) {
      fs::permissions(directory_.path(), fs::perms(0777));
      GetProcess user = start({{unit}, {{variable, value}}, {}, [] { return become(12345); }});
      EXPECT_EQ(user.exit_code(), 0) << user.output();
      EXPECT_EQ(user.count("event compiled"), 0) << variable << " " << unit << "\n" << user.output();
      EXPECT_EQ(user.count("event hit"), 1) << variable << " " << unit << "\n" << user.output();
      fs::permissions(directory_.path(), fs::perms(0755));
    }
  }
}

TEST_F(Host, NetworkFileSystemErrorsCostAtMostOneExtraCompile) {
  if (access("/usr/bin/strace", X_OK) != 0) GTEST_SKIP() << "needs strace, which injects the errors";
  GetProcess first = start("header", {{"KILN_CACHE_DIR", cache()}});
  ASSERT_EQ(first.exit_code(), 0) << first.output();
  const std::string bytes = first.word_after("artifact");
  const char* const faults[] = {"fcntl:error=ENOLCK", "rename,renameat,renameat2:error=ESTALE",
                                "rename,renameat,renameat2:error=EBUSY", "link,linkat:error=EBUSY",
                                "fdatasync,fsync:error=EIO"};
  for (const char* fault : faults) {
    const std::string root = directory_.path("cold-" + std::to_string(outputs_));
    for (const char* state : {"cold", "warm"}) {
      const std::string where = std::string(state) == "cold" ? root : cache();
      GetProcess process = start({{"header"},
                                  {{"KILN_CACHE_DIR", where}},
                                  {"strace", "-o", "/dev/null", "-e", std::string("inject=") + fault},
                                  {}});
      EXPECT_EQ(process.exit_code(), 0) << fault << "\n" << process.output();
      EXPECT_EQ(process.word_after("artifact"), bytes) << fault << "\n" << process.output();
      EXPECT_LE(process.count("event compiled"), 1) << fault << " " << state;
      EXPECT_EQ(process.count("event hit"), where == cache() ? 1 : 0) << fault << process.output();
    }
    GetProcess after = start("header", {{"KILN_CACHE_DIR", root}});
    EXPECT_EQ(after.exit_code(), 0) << fault << "\n" << after.output();
    EXPECT_EQ(after.word_after("artifact"), bytes) << fault;
    EXPECT_LE(after.count("event compiled"), 1) << fault;
  }
}

TEST_F(Host, DisabledCacheCompilesEachTimeAndStoresNothing) {
  for (int i = 0; i < 2; ++i) {
    GetProcess process = start("header", {{"KILN_CACHE_DIR", cache()}, {"KILN_DISABLE", "1"}});
    EXPECT_EQ(process.exit_code(), 0) << process.output();
    EXPECT_EQ(process.count("event compiled"), 1) << process.output();
  }
  EXPECT_FALSE(fs::exists(cache()));
}

TEST_F(Host, CompileNeverFailsWithUnitTargetAndTiers) {
  GetProcess process = start("header", {{"KILN_CACHE_DIR", cache()}, {"KILN_COMPILE", "never"}});
  EXPECT_EQ(process.exit_code(), 1) << process.output();
  EXPECT_EQ(process.count("event compiled"), 0);
  for (const std::string& word : {std::string("header.cu"), std::string("sm_80"), cache()}) {
    EXPECT_NE(process.output().find(word), std::string::npos) << word << " is not in\n" << process.output();
  }
}

TEST_F(Host, WithoutWorkerOnlySelfContainedUnitsAreStored) {
  const std::map<std::string, std::string> none{{"KILN_CACHE_DIR", cache()}, {"KILN_WORKER", directory_.path("none")}};
  GetProcess closed = start("closed", none);
  EXPECT_EQ(closed.exit_code(), 0) << closed.output();
  EXPECT_EQ(closed.count("event published"), 1) << closed.output();
  GetProcess open = start("header", none);
  EXPECT_EQ(open.exit_code(), 0) << open.output();
  EXPECT_EQ(open.count("event worker_unavailable"), 1) << open.output();
  EXPECT_EQ(open.count("event not_published"), 1) << open.output();
}

}  // namespace
}  // namespace kiln::test
