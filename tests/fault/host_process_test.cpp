// SPDX-License-Identifier: Apache-2.0
// kiln as an embedded library: the host's handling of children and signals must not affect compiles, and a worker sees
// only those parts of its host that docs/internals/worker-protocol.md lists.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "support/fixtures/host_fixture.hpp"
#include "support/fixtures/worker_fixture.hpp"
#include "support/fixtures/workers.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/hang_timeout.hpp"
#include "support/processes/processes.hpp"
#include "support/processes/sanitizer.hpp"
#include "worker/sandbox.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class HostProcess : public HostFixture {
 protected:
  // Expects that all units were compiled correctly by workers, and that no workers are left.
  void expect_served(GetProcess& process, const std::set<std::string>& right) {
    EXPECT_EQ(process.exit_code(), 0) << process.output();
    EXPECT_EQ(artifacts(process), right) << process.output();
    EXPECT_EQ(process.count("event worker_lost"), 0) << process.output();
    EXPECT_EQ(process.count("event worker_unavailable"), 0) << process.output();
    EXPECT_EQ(process.count("event published"), static_cast<int>(right.size())) << "not compiled by workers";
    EXPECT_TRUE(says(process, "zombies 0")) << process.output();
    EXPECT_TRUE(says(process, "children 0")) << process.output();
  }
};

TEST_F(HostProcess, CompilesSucceedWhenHostReapsAllChildren) {
  GetProcess process = start("reaps", 0, 12);
  expect_served(process, reference(0, 12));
}

TEST_F(HostProcess, CompilesSucceedWhenHostIgnoresSigchld) {
  GetProcess process = start("ignores", 0, 12);
  expect_served(process, reference(0, 12));
}

TEST_F(HostProcess, CompilesSucceedWhenHostIsPid1) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, for a PID namespace";
  GetProcess process = start({{"plain", "0", "12"}, {}, {"unshare", "--pid", "--fork", "--mount-proc"}, {}});
  expect_served(process, reference(0, 12));
  EXPECT_TRUE(says(process, "process 1"));
}

TEST_F(HostProcess, CompilesSucceedWhenHostHandlesCtrlC) {
  GetProcess process = start({{"catches", "0", "40"}, {}, {}, [] { return setpgid(0, 0) == 0; }});
  ASSERT_TRUE(eventually([&] { return says(process, "event miss"); }));
  int sent = 0;
  // The whole process group, as a terminal does.
  for (; process.count("artifact ") < 40 && process.count("error") == 0 && sent < 2000; ++sent) {
    kill(-process.id(), SIGINT);
    std::this_thread::sleep_for(5ms);
  }
  expect_served(process, reference(0, 40));
  EXPECT_FALSE(says(process, "interrupts 0"));
  std::printf("figure: %d x Ctrl-C during 40 compiles: 40 artifacts, 0 workers lost\n", sent);
}

TEST_F(HostProcess, CompilesInProcessWithoutJobs) {
  GetProcess process = start("stays", 0, 3, {{"KILN_JOBS", "0"}});
  ASSERT_TRUE(eventually([&] { return says(process, "done"); }, kHangTimeout)) << process.output();
  EXPECT_TRUE(children_of(process.id()).empty());
  EXPECT_EQ(artifacts(process).size(), 3u);
  EXPECT_EQ(process.count("event compiled"), 3) << process.output();
}

TEST_F(HostProcess, IdleWorkerYieldsOnlySlotToOtherProcess) {
  GetProcess first = start("stays", 0, 3, {{"KILN_JOBS", "1"}});
  ASSERT_TRUE(eventually([&] { return says(first, "done"); }, kHangTimeout)) << first.output();
  // One on the only slot and, if that was busy, one on the slot that is reserved for waiting callers.
  ASSERT_GE(workers_of(first.id()).size(), 1u);
  ASSERT_LE(workers_of(first.id()).size(), 2u);
  const auto begun = std::chrono::steady_clock::now();
  GetProcess second = start("plain", 10, 3, {{"KILN_JOBS", "1"}});
  EXPECT_EQ(second.exit_code(), 0) << second.output();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  EXPECT_EQ(artifacts(second).size(), 3u);
  EXPECT_LT(seconds, 15) << "it waited for the idle timeout of the worker";
  std::printf("figure: one slot, held by an idle worker: another process got its three units after %.1f s\n", seconds);
}

TEST_F(HostProcess, KilledHostLeavesNoIdleWorkersAndFreesSlot) {
  for (const std::string mode : {"stays", "sleepy"}) {
    const int first_unit = mode == "stays" ? 0 : 100;
    GetProcess first = start(mode, first_unit, 3, {{"KILN_JOBS", "1"}});
    ASSERT_TRUE(eventually([&] { return says(first, "done"); }, kHangTimeout)) << first.output();
    const pid_t id = first.id();
    const std::vector<pid_t> workers = workers_of(id);
    ASSERT_GE(workers.size(), 1u);
    ASSERT_LE(workers.size(), 2u) << "one slot, and the reserved one";
    GetProcess second = start("stays", first_unit + 50, 3, {{"KILN_JOBS", "1"}});
    ASSERT_TRUE(eventually([&] { return says(second, "event miss"); }, kHangTimeout));
    first.kill_now();
    const auto killed = std::chrono::steady_clock::now();
    for (const pid_t worker : workers) {
      EXPECT_TRUE(eventually([&] { return !process_line(worker).runs(); })) << "an orphan";
    }
    EXPECT_TRUE(eventually([&] { return !workers_of(second.id()).empty(); }));
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - killed).count();
    std::printf("figure: %s host with an idle worker killed: another has a worker after %.0f ms\n", mode.c_str(), ms);
    EXPECT_LT(ms, 10'000) << "it waited for the idle timeout of the worker";
    EXPECT_TRUE(eventually([&] { return second.count("artifact ") == 3; }, kHangTimeout)) << second.output();
  }
}

// A worker of this process that is idle after one compile.
class WorkersView : public WorkerFixture {
 protected:
  void SetUp() override {
    WorkerFixture::SetUp();
    if (IsSkipped()) return;
    setenv("KILN_TEST_SECRET", "1", 1);
    setenv("TMPDIR", directory_.path().c_str(), 1);
    leak_ = ::open("/dev/null", O_RDWR);  // inherited by every child of a host that does not close descriptors
    pool_options_.memory_limit = std::uint64_t{1} << 30;
    open();
    ASSERT_EQ(bytes(compile(header_unit(1))), reference(header_unit(1)));
    ASSERT_EQ(pool_->workers().size(), 1u);
    id_ = pool_->workers()[0];
  }
  void TearDown() override {
    unsetenv("KILN_TEST_SECRET");
    unsetenv("TMPDIR");
    if (leak_ >= 0) close(leak_);
  }
  std::string place(const std::string& file) const { return "/proc/" + std::to_string(id_) + "/" + file; }

  pid_t id_ = 0;
  int leak_ = -1;
};

TEST_F(WorkersView, EnvironmentIsDocumentedList) {
  std::set<std::string> expected{"CUDA_CACHE_DISABLE=1"};
  for (const char* name : {"LD_LIBRARY_PATH", "PATH", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = getenv(name)) expected.insert(std::string(name) + "=" + value);
  }
  std::set<std::string> seen;
  std::istringstream all(read_text(place("environ")));
  for (std::string one; std::getline(all, one, '\0');) seen.insert(one);
  EXPECT_EQ(seen, expected);
}

TEST_F(WorkersView, DescriptorsAreDocumentedList) {
  std::map<std::string, std::string> seen;
  for (const auto& entry : fs::directory_iterator(place("fd"))) {
    const std::string target = fs::read_symlink(entry.path()).string();
    seen[entry.path().filename().string()] = target.substr(0, target.find(":["));
  }
  const std::string ours = fs::read_symlink("/proc/self/fd/2").string();
  const std::map<std::string, std::string> expected{
      {"0", "/dev/null"}, {"1", "/dev/null"}, {"2", ours.substr(0, ours.find(":["))}, {"3", "socket"}};
  EXPECT_EQ(seen, expected);
}

TEST_F(WorkersView, PrioritiesLimitsAndPrivilegesAreReduced) {
  EXPECT_EQ(getsid(id_), id_);
  EXPECT_EQ(getpgid(id_), id_);
  EXPECT_EQ(getpriority(PRIO_PROCESS, static_cast<id_t>(id_)), getpriority(PRIO_PROCESS, 0) + 5);
  EXPECT_EQ(read_text(place("oom_score_adj")), "500\n");
  rlimit core{1, 1};
  rlimit data{1, 1};
  ASSERT_EQ(prlimit(id_, RLIMIT_CORE, nullptr, &core), 0);
  ASSERT_EQ(prlimit(id_, RLIMIT_DATA, nullptr, &data), 0);
  EXPECT_EQ(core.rlim_cur, 0u);
  EXPECT_EQ(core.rlim_max, 0u);
  EXPECT_EQ(data.rlim_max, kShadowMemory ? RLIM_INFINITY : rlim_t{1} << 30);
  const std::string status = read_text(place("status"));
  // Only SIGINT; signals from 32 on belong to the C library.
  const std::size_t ignored = status.find("SigIgn:\t");
  ASSERT_NE(ignored, std::string::npos) << status;
  EXPECT_EQ(std::stoull(status.substr(ignored + 8, 16), nullptr, 16) & 0x7fffffff, 1u << (SIGINT - 1)) << status;
  EXPECT_NE(status.find("SigBlk:\t0000000000000000"), std::string::npos) << status;
  EXPECT_NE(status.find("Threads:\t1\n"), std::string::npos) << status;
  EXPECT_NE(status.find("NoNewPrivs:\t1\n"), std::string::npos) << status;
  const bool is_filtered = status.find("Seccomp:\t2\n") != std::string::npos;
  EXPECT_EQ(is_filtered, available_sandbox().seccomp) << status;
  const std::size_t capabilities = status.find("CapPrm:\t");
  ASSERT_NE(capabilities, std::string::npos) << status;
  const std::uint64_t may_read_files = 1U << 2;  // CAP_DAC_READ_SEARCH, if the worker belongs to root
  EXPECT_EQ(std::stoull(status.substr(capabilities + 8, 16), nullptr, 16) & ~may_read_files, 0U) << status;
}

}  // namespace
}  // namespace kiln::test
