// SPDX-License-Identifier: Apache-2.0
// Misbehavior of a compile inside its worker, which must not affect other compiles.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <future>

#include "backends/cccl/cccl_check.hpp"
#include "base/error.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/worker_fixture.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/sanitizer.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class WorkerIsolation : public WorkerFixture {
 protected:
  // Opens a worker whose behavior is selected by the name of the unit.
  void open_misbehaving(std::chrono::milliseconds timeout = 20s) {
    pool_options_.program = KILN_MISBEHAVING_WORKER;
    open({.timeout = timeout});
  }
  static Unit unit_called(const std::string& name) {
    return Unit::cuda(name, "// include\nextern \"C\" __global__ void k() {}\n").with_entry("k");
  }
  std::vector<std::string> reported(Event::Kind kind) const {
    std::vector<std::string> texts;
    for (const Event& event : log_.of(kind)) texts.push_back(event.message);
    return texts;
  }
  // Compiles twenty units on another worker while `eater` runs. Each must be right. Returns the time they took.
  double others_beside(const Unit& eater, Result<CompileResult>& eaten) {
    std::vector<std::string> right;
    for (int i = 0; i < 20; ++i) right.push_back(reference(header_unit(i)));
    auto eating = std::async(std::launch::async, [&] { return compile(eater); });
    const auto start = Clock::now();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(bytes(compile(header_unit(i))), right[static_cast<std::size_t>(i)]);
    const double ms = ms_since(start);
    EXPECT_EQ(eating.wait_for(0s), std::future_status::timeout) << "the eater finished before the others";
    eaten = eating.get();
    return ms;
  }
  void expect_quarantined(const Unit& unit, const Result<CompileResult>& compiled,
                          const std::vector<std::string>& words) {
    ASSERT_FALSE(compiled.has_value());
    EXPECT_EQ(compiled.error().code, Code::CompileFailed);
    for (const std::string& word : words) {
      EXPECT_NE(compiled.error().message.find(word), std::string::npos) << word << " in " << compiled.error().message;
    }
    EXPECT_EQ(log_.count(Event::Kind::WorkerLost), 2u);
    ASSERT_EQ(log_.count(Event::Kind::Quarantined), 1u);
    EXPECT_EQ(reported(Event::Kind::Quarantined)[0], compiled.error().message);
    EXPECT_FALSE(compiler_->should_retry(recipe(unit)));
  }
};

TEST_F(WorkerIsolation, MemoryLimitStopsCompileWhileOthersFinish) {
  if (kShadowMemory) GTEST_SKIP() << "workers have no memory limit under a sanitizer";
  pool_options_.memory_limit = std::uint64_t{768} << 20;
  open();
  Result<CompileResult> eaten = make_error(Code::Internal, "");
  const auto start = Clock::now();
  const double others = others_beside(memory_eater(), eaten);
  std::printf("figure: memory eater in 768 MB stopped after %.1f s, two attempts; 20 others took %.1f s\n",
              ms_since(start) / 1000, others / 1000);
  expect_quarantined(memory_eater(), eaten, {"memory", "768 MB", "KILN_WORKER_MEMORY", "2 times"});
  EXPECT_EQ(bytes(compile(header_unit(99))), reference(header_unit(99)));
}

TEST_F(WorkerIsolation, TimeLimitStopsCompileWhileOthersFinish) {
  open({.timeout = 4s});
  Result<CompileResult> eaten = make_error(Code::Internal, "");
  const auto start = Clock::now();
  const double others = others_beside(time_eater(), eaten);
  std::printf("figure: time eater with a limit of 4 s stopped after %.1f s, two attempts; 20 others took %.1f s\n",
              ms_since(start) / 1000, others / 1000);
  expect_quarantined(time_eater(), eaten, {"4 s", "KILN_WORKER_TIME_LIMIT", "2 times"});
  EXPECT_LT(ms_since(start), 120'000) << "it does not end by itself";
}

TEST_F(WorkerIsolation, MisbehavingWorkerIsRetriedOnceThenUnitIsQuarantined) {
  const std::pair<const char*, const char*> limits[] = {
      {"crash", "signal 11"},        {"abort", "signal 6"},        {"leave", "code 3"},
      {"close", "without a reply"},  {"garbage", "invalid frame"}, {"half", "within a frame"},
      {"nonsense", "invalid reply"}, {"wrong", "invalid reply"},
  };
  for (const auto& [name, cause] : limits) {
    SCOPED_TRACE(name);
    const std::size_t lost = log_.count(Event::Kind::WorkerLost);
    const std::size_t aside = log_.count(Event::Kind::Quarantined);
    if (compiler_ == nullptr) open_misbehaving();
    const auto compiled = compile(unit_called(name));
    ASSERT_FALSE(compiled.has_value());
    EXPECT_EQ(compiled.error().code, Code::CompileFailed);
    EXPECT_NE(compiled.error().message.find(cause), std::string::npos) << compiled.error().message;
    EXPECT_EQ(log_.count(Event::Kind::WorkerLost), lost + 2);
    EXPECT_EQ(log_.count(Event::Kind::Quarantined), aside + 1);
    EXPECT_FALSE(compiler_->should_retry(recipe(unit_called(name))));
    EXPECT_EQ(bytes(compile(unit_called("good"))), "bytes");
  }
}

TEST_F(WorkerIsolation, RetryOnNewWorkerSucceeds) {
  for (const char* name : {"crash-once", "abort-once", "leave-once", "close-once", "garbage-once", "half-once",
                           "nonsense-once", "wrong-once"}) {
    SCOPED_TRACE(name);
    if (compiler_ == nullptr) open_misbehaving();
    const std::size_t lost = log_.count(Event::Kind::WorkerLost);
    EXPECT_EQ(bytes(compile(unit_called(name))), "bytes");
    EXPECT_EQ(log_.count(Event::Kind::WorkerLost), lost + 1);
    std::filesystem::remove(directory_.path("misbehaved"));
  }
  EXPECT_EQ(log_.count(Event::Kind::Quarantined), 0u);
}

TEST_F(WorkerIsolation, UnresponsiveWorkerIsKilledAtTimeLimit) {
  open_misbehaving(300ms);
  const auto start = Clock::now();
  expect_quarantined(unit_called("mute"), compile(unit_called("mute")), {"KILN_WORKER_TIME_LIMIT"});
  EXPECT_LT(ms_since(start), 30'000) << "two attempts of 300 ms";
}

TEST_F(WorkerIsolation, WorkerThatNeverReadsIsKilledAtTimeLimit) {
  std::filesystem::create_symlink(KILN_MISBEHAVING_WORKER, directory_.path("deaf"));
  pool_options_.program = directory_.path("deaf");
  open({.timeout = 300ms});
  const Unit large = Unit::cuda("large", "// include " + std::string(4 << 20, 'x') + "\n");
  const auto start = Clock::now();
  expect_quarantined(large, compile(large), {"KILN_WORKER_TIME_LIMIT"});
  EXPECT_LT(ms_since(start), 30'000) << "two attempts of 300 ms";
}

TEST_F(WorkerIsolation, ExternallyKilledWorkerDoesNotQuarantineUnit) {
  open_misbehaving();
  for (int i = 0; i < 5; ++i) {
    auto compiling = std::async(std::launch::async, [&] { return compile(unit_called("mute-once")); });
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(directory_.path("misbehaved")); }));
    for (const pid_t id : pool_->workers()) kill(id, SIGKILL);
    EXPECT_EQ(bytes(compiling.get()), "bytes");
    std::filesystem::remove(directory_.path("misbehaved"));
  }
  EXPECT_EQ(log_.count(Event::Kind::WorkerLost), 5u);
  EXPECT_EQ(log_.count(Event::Kind::Quarantined), 0u);
}

TEST_F(WorkerIsolation, UnitFailsOnlyAfterTwentyKilledWorkers) {
  open_misbehaving();
  const auto compiled = compile(unit_called("head"));  // dies by SIGKILL each time
  EXPECT_FALSE(compiled.has_value());
  EXPECT_EQ(log_.count(Event::Kind::WorkerLost), 20u) << "a unit fails only after twenty lost workers";
}

TEST_F(WorkerIsolation, HostMemoryIsNotCountedForWorker) {
  constexpr std::size_t kLarge = std::size_t{200} << 20;
  void* const held = mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(held, MAP_FAILED);
  pool_options_.memory_limit = std::uint64_t{256} << 20;
  open_misbehaving();
  (void)compile(unit_called("head"));
  munmap(held, kLarge);
  ASSERT_GE(log_.count(Event::Kind::WorkerLost), 3u);
  EXPECT_EQ(reported(Event::Kind::WorkerLost)[0].find("after using"), std::string::npos)
      << reported(Event::Kind::WorkerLost)[0];
}

/// A compiler of CCCL units whose library must be checked by a unit of this name.
class UncheckedCompiler final : public Compiler {
 public:
  explicit UncheckedCompiler(std::string check) : check_(std::move(check)) {}
  std::string kind() const override { return "cccl"; }
  Result<CompilerIdentity> identity(const RequestContext& /*context*/) override { return CompilerIdentity{}; }
  Status supports(const Target& /*target*/) override { return {}; }
  Result<CompileResult> compile(const Recipe& /*recipe*/, const RequestContext& /*context*/) override {
    return make_error(Code::Internal, "compiled in this process");
  }
  std::optional<Unit> check_before(const Recipe& /*recipe*/) override {
    return Unit::of_kind(kCcclCheckKind, check_, "");
  }

 private:
  const std::string check_;
};

class LibraryCheckInWorker : public WorkerIsolation {
 protected:
  Result<CompileResult> compile_after(const std::string& check) {
    pool_ = std::make_unique<WorkerPool>(pool_options_);
    LibraryCheck checks([this] { return directory_.path("checks"); }, log_.emitter());
    WorkerCompiler compiler(std::make_unique<UncheckedCompiler>(check), digests_,
                            {pool_.get(), nullptr, &checks, 1s, false}, log_.emitter());
    Recipe recipe{Unit::of_kind("cccl", "fine", ""), Target::sm(80), {}, directory_.path()};
    return compiler.compile(recipe, {});
  }
  std::size_t stored() const {
    std::size_t count = 0;
    std::error_code ignored;
    for (const auto& file : std::filesystem::directory_iterator(directory_.path("checks"), ignored))
      count += file.path().extension() == ".kpcv" ? 1 : 0;
    return count;
  }
};

TEST_F(LibraryCheckInWorker, CrashIsRejectionAndIsStored) {
  pool_options_.program = KILN_MISBEHAVING_WORKER;
  const auto compiled = compile_after("crash");
  ASSERT_FALSE(compiled.has_value());
  EXPECT_EQ(compiled.error().code, Code::Unavailable);
  EXPECT_NE(compiled.error().message.find("failed"), std::string::npos) << compiled.error().message;
  EXPECT_EQ(stored(), 1U);
}

TEST_F(LibraryCheckInWorker, LostWorkerIsNotRejection) {
  pool_options_.program = KILN_MISBEHAVING_WORKER;
  for (const char* check : {"mute", "head"}) {  // it times out, and it is killed
    const auto compiled = compile_after(check);
    ASSERT_FALSE(compiled.has_value());
    EXPECT_EQ(compiled.error().code, Code::Unavailable);
    EXPECT_NE(compiled.error().message.find("did not finish: the worker"), std::string::npos)
        << compiled.error().message;
  }
  EXPECT_EQ(stored(), 0U);
  EXPECT_EQ(log_.count(Event::Kind::Quarantined), 0U);
}

TEST_F(LibraryCheckInWorker, WorkerThatCannotStartIsReason) {
  pool_options_.program = directory_.path("worker");
  write_text(pool_options_.program, "#!/no/such/interpreter\n");
  std::filesystem::permissions(pool_options_.program, std::filesystem::perms::owner_all);
  const auto compiled = compile_after("fine");
  ASSERT_FALSE(compiled.has_value());
  EXPECT_EQ(compiled.error().code, Code::Unavailable);
  EXPECT_NE(compiled.error().message.find("KILN_WORKER"), std::string::npos) << compiled.error().message;
  EXPECT_EQ(stored(), 0U);
}

}  // namespace
}  // namespace kiln::test
