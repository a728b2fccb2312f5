// Which worker a compile gets, and when one leaves. The programs are real, what they are asked is nothing: the pool
// does not look inside.
#include "compile/worker_pool.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <future>

#include "support/eventually.hpp"
#include "support/processes.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

class Pool : public testing::Test {
 protected:
  Pool() {
    options_.slots_folder = folder_.path();
    options_.most = 2;
    options_.program = KILN_MISBEHAVING_WORKER;
  }
  void open() { pool_ = std::make_unique<WorkerPool>(options_); }
  WorkerPool::Lease take(const WorkerPool::Wish& wish) { return std::move(pool_->take(wish, {}).value()); }
  static WorkerPool::Wish wish(const std::string& compiler, std::vector<std::string> environment = {},
                               std::uint8_t headers = 0) {
    WorkerPool::Wish made{compiler, std::move(environment), {}, false};
    made.headers.bytes[0] = headers;
    return made;
  }

  const TemporaryDirectory folder_;
  WorkerPool::Options options_;
  std::unique_ptr<WorkerPool> pool_;
};

TEST_F(Pool, AnIdleWorkerIsTakenAgainAndLeavesAfterAWhile) {
  options_.idle = 500ms;
  open();
  const pid_t first = take(wish("a")).worker().id();
  EXPECT_EQ(take(wish("a")).worker().id(), first);
  EXPECT_TRUE(process_line(first).runs());
  EXPECT_TRUE(eventually([&] { return process_line(first).state == 'X'; })) << "it is there, or a zombie";
  EXPECT_TRUE(pool_->workers().empty());
}

TEST_F(Pool, EndsAtOnceThoughNoDescriptorWasLeftForAnything) {
  open();
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const auto lease = pool_->take(wish("a"), {});
  EXPECT_FALSE(lease.ok());
  const auto began = std::chrono::steady_clock::now();
  pool_.reset();
  const auto took = std::chrono::steady_clock::now() - began;
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_LT(took, 3s);
}

TEST_F(Pool, AnIdleWorkerThatSomebodyKillsIsReapedAndNotLentAgain) {
  open();
  const pid_t first = take(wish("a")).worker().id();
  kill(first, SIGKILL);
  EXPECT_TRUE(eventually([&] { return process_line(first).state == 'X'; }));
  EXPECT_NE(take(wish("a")).worker().id(), first);
}

TEST_F(Pool, AWorkerForAnotherCompilerOrEnvironmentTakesThePlaceOfAnIdleOne) {
  options_.most = 1;
  open();
  const pid_t first = take(wish("a")).worker().id();
  const pid_t second = take(wish("b")).worker().id();
  const pid_t third = take(wish("b", {"X=1"})).worker().id();
  EXPECT_NE(first, second);
  EXPECT_NE(second, third);
  EXPECT_EQ(process_line(first).state, 'X');
  EXPECT_EQ(process_line(second).state, 'X');
  EXPECT_EQ(pool_->workers(), std::vector<pid_t>{third});
}

TEST_F(Pool, OfTwoIdleWorkersTheOneThatHadTheSameHeadersIsTaken) {
  open();
  pid_t ids[2];
  {
    WorkerPool::Lease one = take(wish("a", {}, 1));
    WorkerPool::Lease two = take(wish("a", {}, 2));
    ids[0] = one.worker().id();
    ids[1] = two.worker().id();
  }
  for (const int which : {1, 0, 0, 1, 0}) {
    EXPECT_EQ(take(wish("a", {}, static_cast<std::uint8_t>(which + 1))).worker().id(), ids[which]);
  }
}

TEST_F(Pool, ThereAreNeverMoreThanItMayHave) {
  open();
  std::vector<std::future<void>> takers;
  for (int i = 0; i < 8; ++i) {
    takers.push_back(std::async(std::launch::async, [&] {
      for (int turn = 0; turn < 20; ++turn) {
        const WorkerPool::Lease lease = take(wish("a"));
        EXPECT_LE(pool_->workers().size(), 2u);
      }
    }));
  }
}

TEST_F(Pool, AProgramThatIsNotThereIsUnavailable) {
  options_.program = folder_.path("none");
  open();
  const auto lease = pool_->take(wish("a"), {});
  ASSERT_FALSE(lease.ok());
  EXPECT_EQ(lease.error().code, Code::Unavailable);
}

TEST_F(Pool, InterruptingItEndsEveryWorkerAndWhoeverWaits) {
  options_.most = 1;
  open();
  WorkerPool::Lease held = take(wish("a"));
  const pid_t id = held.worker().id();
  auto waiting = std::async(std::launch::async, [&] { return pool_->take(wish("a"), {}).ok(); });
  pool_->interrupt();
  EXPECT_FALSE(waiting.get());
  EXPECT_TRUE(eventually([&] { return !process_line(id).runs(); }));
}

}  // namespace
}  // namespace kiln::test
