// SPDX-License-Identifier: Apache-2.0
// A compile that starts before the digest of its compiler is known.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>

#include "support/fixtures/worker_fixture.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {
namespace {

// NVRTC with files whose state the test sets.
class NvrtcWithState final : public Compiler {
 public:
  explicit NvrtcWithState(FileDigestCache& digests) : nvrtc_(toolkit_nvrtc(), digests) {}
  std::string kind() const override { return nvrtc_.kind(); }
  Result<CompilerIdentity> identity(const RequestContext& context) override { return nvrtc_.identity(context); }
  std::optional<CompilerIdentity> undigested_identity() override { return nvrtc_.undigested_identity(); }
  std::optional<Digest> files_state() override { return state; }
  Status supports(const Target& target) override { return nvrtc_.supports(target); }
  bool is_self_contained(const Recipe& recipe) const override { return nvrtc_.is_self_contained(recipe); }
  Result<CompileResult> compile(const Recipe& recipe, const RequestContext& context) override {
    return nvrtc_.compile(recipe, context);
  }

  std::optional<Digest> state = Digest{{1}};

 private:
  NvrtcCompiler nvrtc_;
};

class EarlyJobs : public WorkerFixture {
 protected:
  void SetUp() override {
    WorkerFixture::SetUp();
    if (IsSkipped()) return;
    std::filesystem::create_directory(directory_.path("run"));
    std::filesystem::permissions(directory_.path("run"), std::filesystem::perms(0700));
    setenv("XDG_RUNTIME_DIR", directory_.path("run").c_str(), 1);
    open();
  }
  void TearDown() override { unsetenv("XDG_RUNTIME_DIR"); }
  // A worker that is still starting when its job ends becomes idle, and is retired after this time.
  void retire_idle_workers_early() {
    compiler_.reset();
    pool_options_.idle_timeout = std::chrono::milliseconds(200);
    open();
  }
  void use_settable_state() {
    auto inner = std::make_unique<NvrtcWithState>(digests_);
    settable_ = inner.get();
    WorkerCompiler::Options options;
    options.pool = pool_.get();
    compiler_ = std::make_unique<WorkerCompiler>(std::move(inner), digests_, options, log_.emitter());
  }
  std::unique_ptr<EarlyCompile> start_early(const Unit& unit) {
    const auto identity = compiler_->undigested_identity();
    if (!identity) return nullptr;
    return compiler_->start_early({unit, Target::sm(80), *identity, directory_.path()}, context_);
  }
  // Returns the only worker, once it has started.
  pid_t worker() {
    EXPECT_TRUE(eventually([&] { return pool_->workers().size() == 1; }));
    const auto workers = pool_->workers();
    return workers.size() == 1 ? workers[0] : 0;
  }
  Result<CompileResult> compile_after(EarlyCompile* early, const Unit& unit) {
    context_.early = early;
    return compiler_->compile(recipe(unit), context_);
  }

  std::stop_source stop_;
  RequestContext context_{.stop = stop_.get_token()};
  NvrtcWithState* settable_ = nullptr;
};

TEST_F(EarlyJobs, ResultIsUsedAndWorkerServesLaterUnits) {
  const auto early = start_early(header_unit(1));
  ASSERT_NE(early, nullptr);
  const pid_t first = worker();
  const auto compiled = compile_after(early.get(), header_unit(1));
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  EXPECT_EQ(compiled->uncacheable_reason, "");
  EXPECT_EQ(bytes(compiled), reference(header_unit(1)));
  EXPECT_EQ(worker(), first) << "the unit was compiled again";
  EXPECT_EQ(bytes(compile(header_unit(2))), reference(header_unit(2)));
  EXPECT_EQ(worker(), first);
}

TEST_F(EarlyJobs, IsNotNeededIfDigestIsCached) {
  ASSERT_TRUE(compiler_->undigested_identity().has_value());
  ASSERT_TRUE(compiler_->identity({}).has_value());
  EXPECT_FALSE(compiler_->undigested_identity().has_value());
  NvrtcCompiler other(toolkit_nvrtc(), digests_);
  EXPECT_FALSE(other.undigested_identity().has_value());
}

TEST_F(EarlyJobs, ResultIsNotUsedIfLibraryChangesBeforeItsEnd) {
  use_settable_state();
  const auto early = start_early(header_unit(1));
  ASSERT_NE(early, nullptr);
  const pid_t first = worker();
  settable_->state = Digest{{2}};
  const auto compiled = compile_after(early.get(), header_unit(1));
  EXPECT_EQ(bytes(compiled), reference(header_unit(1)));
  EXPECT_TRUE(eventually([&] {
    const auto workers = pool_->workers();
    return workers.size() == 1 && workers[0] != first;
  })) << "the worker that may have opened another library is still used";
}

TEST_F(EarlyJobs, DoesNotStartIfStateDoesNotProveContent) {
  use_settable_state();
  settable_->state.reset();
  EXPECT_EQ(start_early(header_unit(1)), nullptr);
  EXPECT_TRUE(pool_->workers().empty());
}

TEST_F(EarlyJobs, ResultOfAnotherUnitIsNotUsed) {
  const auto early = start_early(header_unit(1));
  ASSERT_NE(early, nullptr);
  EXPECT_EQ(bytes(compile_after(early.get(), header_unit(2))), reference(header_unit(2)));
}

TEST_F(EarlyJobs, DroppedJobLeavesNoWorker) {
  retire_idle_workers_early();
  auto early = start_early(time_eater());
  ASSERT_NE(early, nullptr);
  EXPECT_NE(worker(), 0);
  early.reset();
  EXPECT_TRUE(eventually([&] { return pool_->workers().empty(); }));
  EXPECT_EQ(log_.count(Event::Kind::WorkerLost), 0U);
}

TEST_F(EarlyJobs, OneRunsPerHost) {
  auto early = start_early(time_eater());
  ASSERT_NE(early, nullptr);
  EXPECT_EQ(start_early(header_unit(1)), nullptr);
  early.reset();
  EXPECT_NE(start_early(header_unit(1)), nullptr);
}

TEST_F(EarlyJobs, CancelEndsIt) {
  retire_idle_workers_early();
  const auto early = start_early(time_eater());
  ASSERT_NE(early, nullptr);
  EXPECT_NE(worker(), 0);
  stop_.request_stop();
  const auto compiled = compile_after(early.get(), time_eater());
  ASSERT_FALSE(compiled.has_value());
  EXPECT_EQ(compiled.error().code, Code::Cancelled);
  EXPECT_TRUE(eventually([&] { return pool_->workers().empty(); }));
}

TEST_F(EarlyJobs, FailingUnitHasTheSameError) {
  const Unit wrong = Unit::cuda("wrong.cu", "#include \"none.h\"\n").with_entry("k");
  const auto early = start_early(wrong);
  ASSERT_NE(early, nullptr);
  const auto compiled = compile_after(early.get(), wrong);
  ASSERT_FALSE(compiled.has_value());
  const auto usual = compile(wrong);
  ASSERT_FALSE(usual.has_value());
  EXPECT_EQ(compiled.error().code, Code::CompileFailed);
  EXPECT_EQ(compiled.error().message, usual.error().message);
  EXPECT_EQ(compiled.error().log, usual.error().log);
}

TEST_F(EarlyJobs, UnitIsCompiledAgainIfItsWorkerIsKilled) {
  const auto early = start_early(header_unit(1));
  ASSERT_NE(early, nullptr);
  const pid_t first = worker();
  ASSERT_EQ(kill(first, SIGKILL), 0);
  EXPECT_EQ(bytes(compile_after(early.get(), header_unit(1))), reference(header_unit(1)));
  EXPECT_EQ(log_.count(Event::Kind::Quarantined), 0U);
}

}  // namespace
}  // namespace kiln::test
