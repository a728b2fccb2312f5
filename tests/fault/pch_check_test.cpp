// SPDX-License-Identifier: Apache-2.0
// Precompiled headers are used only with an NVRTC library that was verified to give the same results with them.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "support/fixtures/pch_fixture.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class PchCheck : public PchTest {
 protected:
  // Returns a process whose worker alters results; `altering_worker.cpp` has the modes.
  std::unique_ptr<PchProcess> altered(const std::string& mode, const std::string& nvrtc = toolkit_nvrtc()) {
    write_text(directory_.path("worker-" + mode), "#!/bin/sh\nexec '" KILN_ALTERING_WORKER "' " + mode + " '" +
                                                      directory_.path("jobs") + "' '" + find_worker({}) + "' \"$@\"\n");
    fs::permissions(directory_.path("worker-" + mode), fs::perms(0755));
    return process({.nvrtc = nvrtc, .worker = directory_.path("worker-" + mode)});
  }
  // Returns the number of jobs of the workers since the last call.
  std::size_t jobs() {
    const std::string text = read_text(directory_.path("jobs"));
    fs::resize_file(directory_.path("jobs"), 0);  // workers append to it
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  std::vector<std::string> verdict_files() const {
    std::vector<std::string> found = files_below(directory_.path("cache/pch"));
    std::erase_if(found, [](const std::string& name) { return !name.ends_with(".kpcv"); });
    return found;
  }
  Unit warned(int number) const {
    return unit(number, "#include <wide.h>\n__device__ int f(unsigned x) { int unused; return x < 0 ? 1 : 2; }\n");
  }
  // Runs three compiles that would create and use one. Each must give the same result as without.
  void expect_plain_results(PchProcess& one) {
    auto plain = process({.directory = directory_.path("plain"), .headers = false});
    one.expect_queued_similar(unit(1));
    for (int i = 1; i <= 3; ++i) {
      expect_same(Seen(plain->compile(unit(i))), Seen(one.compile(unit(i))), "unit " + std::to_string(i));
    }
    EXPECT_EQ(one.kept() + one.used() + one.dropped(), 0U);
    EXPECT_EQ(one.events.count(Event::Kind::WorkerLost), 0U);
    EXPECT_EQ(one.events.count(Event::Kind::Quarantined), 0U);
  }
  static std::string only_event(PchProcess& one) {
    const auto reported = one.events.of(Event::Kind::PchUnavailable);
    EXPECT_EQ(reported.size(), 1U) << "the event is emitted once";
    return reported.empty() ? std::string() : reported.front().message;
  }
  void expect_switched_off(const std::string& mode, const std::string& reason) {
    auto one = altered(mode);
    expect_plain_results(*one);
    const std::string reported = only_event(*one);
    for (const std::string& part :
         {toolkit_nvrtc(), std::string("they change its output"), reason, std::string("KILN_NVRTC")}) {
      EXPECT_NE(reported.find(part), std::string::npos) << reported;
    }
  }
};

TEST_F(PchCheck, DifferentOutputDisablesPchWithOneEvent) { expect_switched_off("use", "using one: "); }
TEST_F(PchCheck, DifferentLogDisablesPchWithOneEvent) { expect_switched_off("log", "using one: "); }
TEST_F(PchCheck, DifferentOutputOfNextUnitDisablesPch) {
  expect_switched_off("next", "compiling without one afterwards: ");
}

TEST_F(PchCheck, NextProcessReusesFailedVerdict) {
  expect_plain_results(*altered("use"));
  EXPECT_EQ(jobs(), 3U + 4U) << "three units, and the check up to the first difference";
  ASSERT_EQ(verdict_files().size(), 1U);
  auto next = altered("nothing");
  expect_plain_results(*next);
  EXPECT_EQ(jobs(), 3U) << "nothing is rechecked";
  EXPECT_NE(only_event(*next).find("they change its output"), std::string::npos);
}

TEST_F(PchCheck, CrashingWorkerDisablesPch) {
  auto one = altered("die");
  expect_plain_results(*one);
  EXPECT_NE(only_event(*one).find("they cannot be checked with it"), std::string::npos);
  auto next = altered("nothing");
  expect_plain_results(*next);
  EXPECT_EQ(only_event(*next), only_event(*one)) << "the verdict is stored for a day";
}

TEST_F(PchCheck, CancelledCompileLeavesNoVerdict) {
  auto one = altered("nothing");
  one->expect_queued_similar(unit(1));
  Recipe recipe = one->recipe(unit(1));
  const auto key = one->key_of(unit(1));
  PchManager::PchPlan plan = one->headers().plan(recipe, *key, {});
  ASSERT_NE(plan.check, nullptr);
  const AskWorker cancelled = [](const WorkerJob&) {
    return Result<WorkerReply>(make_error(Code::Cancelled, "ended"));
  };
  EXPECT_EQ(one->headers().plan(recipe, *key, {}).order.mode, PchRequest::Mode::None) << "only one thread checks";
  EXPECT_FALSE(one->headers().passes_check(plan, recipe, cancelled, {}));
  plan = {};
  EXPECT_TRUE(verdict_files().empty());
  EXPECT_EQ(one->events.count(Event::Kind::PchUnavailable), 0U);
  EXPECT_TRUE(one->compile(unit(1)).has_value());
  EXPECT_EQ(one->kept(), 1U) << "the next compile checks";
}

TEST_F(PchCheck, RealNvrtcPassesAndNextProcessReusesVerdict) {
  auto one = altered("nothing");
  one->expect_queued_similar(unit(1));
  ASSERT_TRUE(one->compile(unit(1)).has_value());
  EXPECT_EQ(one->kept(), 1U);
  EXPECT_EQ(jobs(), 1U + 6U);
  ASSERT_TRUE(one->compile(unit(2)).has_value());
  EXPECT_EQ(one->used(), 1U);
  EXPECT_EQ(jobs(), 1U);
  ASSERT_EQ(verdict_files().size(), 1U);
  auto next = altered("nothing");
  ASSERT_TRUE(next->compile(unit(3)).has_value());
  EXPECT_EQ(next->used(), 1U);
  EXPECT_EQ(jobs(), 1U);
  EXPECT_EQ(next->events.count(Event::Kind::PchUnavailable), 0U);
  EXPECT_EQ(next->pch_cache().usage().files, 2U) << "a verdict is not a precompiled header";
}

TEST_F(PchCheck, SecondNvrtcIsCheckedSeparately) {
  const std::string other = package_nvrtc(KILN_SOURCE_DIR);
  if (other.empty()) GTEST_SKIP() << "no second NVRTC in .venv: run tools/setup.sh";
  for (const std::string& nvrtc : {toolkit_nvrtc(), other}) {
    auto one = altered("nothing", nvrtc);
    one->expect_queued_similar(unit(1));
    ASSERT_TRUE(one->compile(unit(1)).has_value());
    EXPECT_EQ(jobs(), 1U + 6U) << nvrtc;
    EXPECT_EQ(one->events.count(Event::Kind::PchUnavailable), 0U) << nvrtc;
    EXPECT_EQ(one->kept(), 1U) << nvrtc;
  }
  EXPECT_EQ(verdict_files().size(), 2U);
}

TEST_F(PchCheck, CorruptVerdictIsRechecked) {
  auto first = altered("nothing");
  first->expect_queued_similar(unit(1));
  ASSERT_TRUE(first->compile(unit(1)).has_value());
  const std::string file = verdict_files().at(0);
  const std::string good = read_text(file);
  (void)jobs();
  write_text(file, good.substr(0, good.size() - 1));
  auto next = altered("nothing");
  ASSERT_TRUE(next->compile(unit(2)).has_value());
  EXPECT_EQ(jobs(), 1U + 6U) << "also before an existing header is used";
  EXPECT_EQ(next->used(), 1U);
  EXPECT_TRUE(altered("nothing")->compile(unit(3)).has_value());
  EXPECT_EQ(jobs(), 1U);
}

// Prints a number for docs/explanation/precompiled-headers.md.
TEST_F(PchCheck, CheckIsCheapAndRunsOnce) {
  using std::chrono::steady_clock;
  const auto compile_ms = [&](PchProcess& one, int number) {
    const auto start = steady_clock::now();
    EXPECT_TRUE(one.compile(unit(number)).has_value());
    return std::chrono::duration<double, std::milli>(steady_clock::now() - start).count();
  };
  auto one = process();
  (void)compile_ms(*one, 1);  // opens NVRTC
  const double with_check = compile_ms(*one, 2);
  ASSERT_EQ(one->kept(), 1U);
  one->pch_cache().remove(*one->key_of(unit(1)));
  const double without = compile_ms(*one, 3);
  ASSERT_EQ(one->kept(), 2U);
  std::printf("figure: creating precompiled headers took %.0f ms with the check of the library and %.0f without\n",
              with_check, without);
  EXPECT_LT(with_check - without, 20'000);
}

}  // namespace
}  // namespace kiln::test
