// SPDX-License-Identifier: Apache-2.0
// Which worker a compile gets, and when a worker exits. The programs are real but get no jobs, because the pool does
// not inspect jobs.
#include "worker/worker_pool.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>
#include <future>
#include <thread>

#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/processes.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

class Pool : public testing::Test {
 protected:
  Pool() {
    options_.slots_directory = directory_.path();
    options_.max_workers = 2;
    options_.program = KILN_MISBEHAVING_WORKER;
  }
  void open() { pool_ = std::make_unique<WorkerPool>(options_); }
  WorkerPool::Handle take(const WorkerPool::WorkerRequest& request) {
    return std::move(pool_->take(request, {}).value());
  }
  static WorkerPool::WorkerRequest request(const std::string& compiler, std::vector<std::string> environment = {},
                                           std::uint8_t headers = 0) {
    WorkerPool::WorkerRequest made{compiler, std::move(environment), {}, {}};
    made.headers.bytes[0] = headers;
    return made;
  }

  const TemporaryDirectory directory_;
  WorkerPool::Options options_;
  std::unique_ptr<WorkerPool> pool_;
};

TEST_F(Pool, IdleWorkerIsReused) {
  open();
  const pid_t first = take(request("a")).worker().id();
  EXPECT_EQ(take(request("a")).worker().id(), first);
  EXPECT_TRUE(process_line(first).runs());
}

TEST_F(Pool, IdleWorkerExitsAfterIdleTime) {
  options_.idle_timeout = 100ms;
  open();
  const pid_t first = take(request("a")).worker().id();
  EXPECT_TRUE(eventually([&] { return process_line(first).state == 'X'; })) << "it still runs, or is a zombie";
  EXPECT_TRUE(pool_->workers().empty());
}

TEST_F(Pool, EndsImmediatelyWithoutFreeDescriptors) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  std::chrono::nanoseconds fastest = 1h;  // a busy machine delays some of three ends, not all
  for (int i = 0; i < 3; ++i) {
    open();
    setrlimit(RLIMIT_NOFILE, &none);
    const auto lease = pool_->take(request("a"), {});
    const auto began = std::chrono::steady_clock::now();
    pool_.reset();
    fastest = std::min<std::chrono::nanoseconds>(fastest, std::chrono::steady_clock::now() - began);
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_FALSE(lease.has_value());
  }
  EXPECT_LT(fastest, 3s) << "a lost wakeup costs 5 s";
}

TEST_F(Pool, KilledIdleWorkerIsReapedAndNotReused) {
  open();
  const pid_t first = take(request("a")).worker().id();
  kill(first, SIGKILL);
  EXPECT_TRUE(eventually([&] { return process_line(first).state == 'X'; }));
  EXPECT_NE(take(request("a")).worker().id(), first);
}

TEST_F(Pool, WorkerForOtherCompilerOrEnvironmentReplacesIdleWorker) {
  options_.max_workers = 1;
  open();
  const pid_t first = take(request("a")).worker().id();
  const pid_t second = take(request("b")).worker().id();
  const pid_t third = take(request("b", {"X=1"})).worker().id();
  EXPECT_NE(first, second);
  EXPECT_NE(second, third);
  EXPECT_EQ(process_line(first).state, 'X');
  EXPECT_EQ(process_line(second).state, 'X');
  EXPECT_EQ(pool_->workers(), std::vector<pid_t>{third});
}

TEST_F(Pool, PrefersIdleWorkerWithSameHeaders) {
  open();
  pid_t ids[2];
  {
    WorkerPool::Handle one = take(request("a", {}, 1));
    WorkerPool::Handle two = take(request("a", {}, 2));
    ids[0] = one.worker().id();
    ids[1] = two.worker().id();
  }
  for (const int which : {1, 0, 0, 1, 0}) {
    EXPECT_EQ(take(request("a", {}, static_cast<std::uint8_t>(which + 1))).worker().id(), ids[which]);
  }
}

TEST_F(Pool, NeverExceedsWorkerLimit) {
  open();
  std::vector<std::future<void>> takers;
  for (int i = 0; i < 8; ++i) {
    takers.push_back(std::async(std::launch::async, [&] {
      for (int turn = 0; turn < 20; ++turn) {
        const WorkerPool::Handle lease = take(request("a"));
        EXPECT_LE(pool_->workers().size(), 2u);
      }
    }));
  }
}

TEST_F(Pool, MissingWorkerProgramIsUnavailable) {
  options_.program = directory_.path("none");
  open();
  const auto lease = pool_->take(request("a"), {});
  ASSERT_FALSE(lease.has_value());
  EXPECT_EQ(lease.error().code, Code::Unavailable);
}

std::atomic<int> handled_on_the_pools_thread{0};

TEST_F(Pool, HostSignalHandlersDoNotRunOnPoolThread) {
  open();
  (void)take(request("a"));
  ASSERT_EQ(threads_named("kiln-workers"), 1);
  struct sigaction before {};
  struct sigaction counting {};
  counting.sa_handler = [](int) { ++handled_on_the_pools_thread; };
  sigaction(SIGUSR1, &counting, &before);
  sigset_t one;
  sigset_t mask;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &one, &mask);
  kill(getpid(), SIGUSR1);  // delivered to any thread that does not block it
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(handled_on_the_pools_thread, 0);
  siginfo_t info{};
  const timespec none{0, 0};
  EXPECT_EQ(sigtimedwait(&one, &info, &none), SIGUSR1) << "the signal is not pending: a thread of the pool received it";
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(Pool, InterruptEndsAllWorkersAndWaiters) {
  options_.max_workers = 1;
  open();
  WorkerPool::Handle held = take(request("a"));
  const pid_t id = held.worker().id();
  auto waiting = std::async(std::launch::async, [&] { return pool_->take(request("a"), {}).has_value(); });
  pool_->interrupt();
  EXPECT_FALSE(waiting.get());
  EXPECT_TRUE(eventually([&] { return !process_line(id).runs(); }));
}

}  // namespace
}  // namespace kiln::test
