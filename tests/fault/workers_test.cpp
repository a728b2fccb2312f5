// SPDX-License-Identifier: Apache-2.0
// Workers that are killed: at random, by canceling a request, and with their program. CI kills 60 of them; `cmake
// --build --preset release --target campaign_workers` more.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include <kiln/kiln.hpp>

#include "backends/cuda/nvrtc_compiler.hpp"
#include "base/process/environment.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/header_units.hpp"
#include "support/fixtures/host_fixture.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/workers.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/hang_timeout.hpp"
#include "support/processes/processes.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// This process is the host.
class Killed : public HostFixture {
 protected:
  void SetUp() override {
    HostFixture::SetUp();
    setenv("XDG_RUNTIME_DIR", directory_.path("run").c_str(), 1);
    setenv("TMPDIR", directory_.path("tmp").c_str(), 1);
  }
  void TearDown() override {
    unsetenv("XDG_RUNTIME_DIR");
    unsetenv("TMPDIR");
  }
  Session open() {
    SessionOptions options;
    options.settings = {{"cache.dir", cache()}, {"pch.mode", "on"}, {"jobs", "2"}};
    options.on_event = log_.callback();
    return Session::open(std::move(options)).value();
  }
  static int kills() {
    const auto asked = environment_variable("KILN_TEST_KILLS");
    return asked ? std::max(1, std::atoi(asked->c_str())) : 60;
  }
  // Returns the output of NVRTC in this process.
  std::string bare(const Unit& unit) {
    const auto compiled = bare_.compile(recipe_for(bare_, unit, Target::sm(80)), {});
    return compiled ? std::string(compiled->artifact.bytes.view()) : "no reference: " + compiled.error().message;
  }
  // Requests a unit whose compile does not end. Returns its worker once the compile has used CPU time; 0 if it does
  // not.
  static pid_t compiling(Session& session, const Unit& endless) {
    session.request({endless}, Target::sm(80));
    pid_t worker = 0;
    const bool compiles = eventually([&] {
      const std::vector<pid_t> workers = workers_of(getpid());
      worker = workers.size() == 1 ? workers[0] : 0;
      return worker != 0 && process_line(worker).cpu_time >= kStartedCompile;
    });
    return compiles ? worker : 0;
  }
  static constexpr std::chrono::milliseconds kStartedCompile = 500ms;  // the start of a worker takes far less CPU time
  EventLog log_;
  FileDigestCache digests_{std::string()};
  NvrtcCompiler bare_{toolkit_nvrtc(), digests_};
};

// Kills random workers, at most twice as many as compiles were started: `minimum` of them, and more until half as many
// compiles were hit. On a busy machine more of the workers are starting or idle.
class Killer {
 public:
  Killer(int minimum, const std::atomic<int>& begun, const EventLog& log)
      : thread_([this, minimum, &begun, &log] { work(minimum, begun, log); }) {}
  ~Killer() { thread_.join(); }
  int killed() const { return killed_; }
  bool done() const { return done_; }

 private:
  void work(int minimum, const std::atomic<int>& begun, const EventLog& log) {
    const auto hits = [&log] { return static_cast<int>(log.count(Event::Kind::WorkerLost)); };
    while (killed_ < minimum || (2 * hits() < minimum && killed_ < 5 * minimum)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 60));
      if (killed_ >= 2 * begun) continue;
      const std::vector<pid_t> workers = workers_of(getpid());
      if (workers.empty()) continue;
      const pid_t victim = workers[random_() % workers.size()];
      if (!process_line(victim).runs() || kill(victim, SIGKILL) != 0) continue;
      ++killed_;
      // A busy machine ends it later: it must not be killed, and counted, twice.
      EXPECT_TRUE(eventually([&] { return !process_line(victim).runs(); }));
    }
    done_ = true;
  }
  std::mt19937 random_{20261115};
  std::atomic<int> killed_{0};
  std::atomic<bool> done_{false};
  std::thread thread_;  // last member: it uses the others
};

TEST_F(Killed, RandomWorkerKillsDoNotAffectResults) {
  const int minimum = kills();
  int killed = 0;
  const auto start = Clock::now();
  std::mutex mutex;
  std::map<int, std::string> got;
  {
    Session session = open();
    std::atomic<int> begun{0};
    Killer killer(minimum, begun, log_);
    const auto get = [&] {
      while (begun < minimum / 2 || !killer.done()) {
        const int number = begun++;
        const auto artifact = session.artifact(half_unit(number), Target::sm(80));
        const std::lock_guard lock(mutex);
        got[number] = artifact ? std::string(artifact->bytes.view()) : "nothing: " + artifact.error().message;
      }
    };
    std::thread other(get);
    get();
    other.join();
    killed = killer.killed();
  }
  const double seconds = ms_since(start) / 1000;
  int wrong = 0;
  for (const auto& [number, bytes] : got) {
    const bool is_right = bytes == bare(half_unit(number));
    wrong += is_right ? 0 : 1;
    EXPECT_TRUE(is_right) << number << ": " << bytes.substr(0, 300);
  }
  const int zombies = zombies_of(getpid());
  const std::size_t left = children_of(getpid()).size();
  GetProcess next = HostFixture::start("plain", 0, 4);
  EXPECT_EQ(next.exit_code(), 0) << next.output();
  std::printf(
      "figure: killed=%d compiles=%zu hit_a_compile=%zu wrong=%d quarantined=%zu zombies=%d children=%zu "
      "temporary_files=%zu seconds=%.1f\n",
      killed, got.size(), log_.count(Event::Kind::WorkerLost), wrong, log_.count(Event::Kind::Quarantined), zombies,
      left, temporary_files().size(), seconds);
  EXPECT_GE(log_.count(Event::Kind::WorkerLost) * 2, static_cast<std::size_t>(minimum))
      << "the kills hit too few compiles";
  EXPECT_EQ(log_.count(Event::Kind::Quarantined), 0u);
  EXPECT_EQ(left, 0u);
  EXPECT_EQ(temporary_files(), std::vector<std::string>{});
}

TEST_F(Killed, KilledProgramLeavesNoWorkersOrFiles) {
  const int rounds = kills() / 10;
  constexpr int kUnits = 200;  // not all of them are compiled before the kill
  std::mt19937 random{7};
  double slowest = 0;
  for (int i = 0; i < rounds; ++i) {
    GetProcess host = HostFixture::start("plain", i * kUnits, kUnits);
    const pid_t id = host.id();
    ASSERT_TRUE(eventually([&] { return !workers_of(id).empty(); }, kHangTimeout)) << host.output();
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 300));
    const std::vector<pid_t> workers = workers_of(id);
    host.kill_now();
    const auto killed = Clock::now();
    for (const pid_t worker : workers) {
      EXPECT_TRUE(eventually([&] { return !process_line(worker).runs(); })) << "an orphan";
    }
    slowest = std::max(slowest, ms_since(killed));
    EXPECT_TRUE(eventually([&] { return workers_of(id).empty(); })) << "a worker started at the time of the kill";
  }
  const std::size_t before = temporary_files().size();
  // Units that no program has compiled: only a process that compiles removes the files of dead ones.
  GetProcess next = HostFixture::start("plain", rounds * kUnits, 20);
  EXPECT_EQ(next.exit_code(), 0) << next.output();
  EXPECT_EQ(artifacts(next), reference(rounds * kUnits, 20));
  std::printf(
      "figure: %d programs killed with -9 while they compiled: workers ended after at most %.0f ms, %zu temporary "
      "files then, %zu after the next start\n",
      rounds, slowest, before, temporary_files().size());
  EXPECT_EQ(temporary_files(), std::vector<std::string>{});
}

TEST_F(Killed, WorkersCreateNoNamedTemporaryFiles) {
  if (access("/usr/bin/strace", X_OK) != 0) GTEST_SKIP() << "needs strace, which records the opened files";
  const std::string seen = directory_.path("seen");
  GetProcess host = HostFixture::start(
      {{"plain", "0", "4"}, {}, {"strace", "-f", "-o", seen, "-e", "trace=open,openat,creat,memfd_create"}, {}});
  ASSERT_EQ(host.exit_code(), 0) << host.output();
  ASSERT_GE(host.count("event pch_created"), 1) << "no precompiled header was created\n" << host.output();
  std::istringstream calls(read_text(seen));
  int without_name = 0;
  for (std::string call; std::getline(calls, call);) {
    const bool is_there = call.find('"' + directory_.path("tmp") + "/") != std::string::npos;
    if (call.find("memfd_create(\"kiln-edg\"") != std::string::npos) ++without_name;
    EXPECT_FALSE(is_there && call.find("O_CREAT") != std::string::npos) << call;
  }
  EXPECT_GE(without_name, 1) << "NVRTC no longer creates such a file: the worker need not handle it";
}

TEST_F(Killed, CancelFreesCoreImmediately) {
  double fastest = 1e9;
  double slowest = 0;
  double sum = 0;
  for (int i = 0; i < 5; ++i) {
    Session session = open();
    const Unit unit = time_eater();
    const pid_t worker = compiling(session, unit);
    ASSERT_GT(worker, 0);
    const auto start = Clock::now();
    session.cancel({unit}, Target::sm(80));
    EXPECT_TRUE(eventually([&] { return !process_line(worker).runs(); }));
    const double ms = ms_since(start);
    sum += ms;
    fastest = std::min(fastest, ms);
    slowest = std::max(slowest, ms);
    EXPECT_TRUE(eventually([&] { return session.status().pending == 0; }));
  }
  std::printf("figure: cancel of a running compile frees its core after %.1f ms, at most %.1f ms (5 times)\n", sum / 5,
              slowest);
  EXPECT_LT(fastest, 1000) << "a busy machine delays some of five cancels, not all";
  EXPECT_TRUE(children_of(getpid()).empty());
}

TEST_F(Killed, SessionEndDoesNotWaitForCompiles) {
  pid_t worker = 0;
  Clock::time_point start;
  {
    Session session = open();
    worker = compiling(session, time_eater());
    ASSERT_GT(worker, 0);
    start = Clock::now();
  }
  const double ms = ms_since(start);
  std::printf("figure: the end of a session in the middle of a compile took %.1f ms\n", ms);
  EXPECT_EQ(process_line(worker).state, 'X');
  EXPECT_LT(ms, 10'000) << "the compile does not end by itself";
}

}  // namespace
}  // namespace kiln::test
