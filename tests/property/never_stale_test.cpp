// SPDX-License-Identifier: Apache-2.0
// After any change, kiln returns exactly the bytes that bare NVRTC returns for the current inputs, and neutral changes
// hit the cache. Compiles are real. Some changes are made between two lookups, some while the compiler runs.
//
//   KILN_TEST_CHANGES     number of changes
//   KILN_TEST_EDIT_EVERY  n: every n-th change is made while the compiler runs
//   KILN_TEST_FOLDER      directory of the projects and the cache, to test another file system
//   KILN_TEST_PREPARE     only creates the projects in that directory
//   KILN_TEST_NVRTC       NVRTC of the projects instead of the toolkit's; some changes switch to that of .venv
//   KILN_TEST_SEED, KILN_TEST_PCH
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <thread>

#include "asker.hpp"
#include "edits.hpp"
#include "project.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// In CI; the campaign makes 1000 changes (docs/internals/long-tests.md).
constexpr int kChanges = 200;
constexpr int kChangesPerProject = 50;
constexpr int kEditEvery = 3;
constexpr std::size_t kReportedMismatches = 5;  // the others are only counted
// More than one tick of the file system's clock: if a compiler reads a younger file, the result is not stored.
constexpr auto kSettled = 25ms;

// Returns a number from the environment, or `otherwise`.
int number_from(const char* variable, int otherwise) {
  const char* given = std::getenv(variable);
  return given != nullptr ? std::atoi(given) : otherwise;
}

class NeverStale : public testing::Test {
 protected:
  void SetUp() override {
    const std::string toolkit = tested_nvrtc(KILN_SOURCE_DIR);
    const std::string package = package_nvrtc(KILN_SOURCE_DIR);
    if (toolkit.empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    if (package.empty()) GTEST_SKIP() << "no second NVRTC in .venv: run tools/setup.sh";
    start_ = fs::current_path().string();
    const char* given = std::getenv("KILN_TEST_FOLDER");
    directory_ = given != nullptr ? given : temporary_.path();
    requester_ = std::make_unique<Requester>(directory_ + "/cache", std::array{toolkit, package}, pch_);
  }
  void TearDown() override {
    if (!start_.empty()) fs::current_path(start_);
    for (const char* variable : {"NVRTC_APPEND_FLAGS", "NVRTC_PREPEND_FLAGS", "PWD"}) unsetenv(variable);
  }

  Project make_project(int number) const {
    Random layout(seed_ + static_cast<unsigned>(number));
    return {directory_ + "/project-" + std::to_string(number), layout};
  }

  // Compares the results of kiln and of NVRTC.
  Got check(const Project& project, const std::string& what, Requester::Lookups lookups = Requester::Lookups::Any) {
    Got got = requester_->get(project, lookups);
    truth_ = requester_->bare(project);
    compare(got, {&truth_}, project, what);
    if (pch_) check_sibling(project, what);
    return got;
  }

  // Checks another unit with the same headers that was not compiled yet. It uses the precompiled headers if they are
  // valid.
  void check_sibling(Project sibling, const std::string& what) {
    sibling.constant = 100 + ++siblings_ % 900;
    const Got got = requester_->get(sibling);
    const BareResult truth = requester_->bare(sibling);
    compare(got, {&truth}, sibling, what + ", in another unit");
  }

  // Checks that kiln's result equals one of the truths.
  void compare(const Got& got, const std::vector<const BareResult*>& truths, const Project& project,
               const std::string& what) {
    for (const BareResult* truth : truths) {
      if (got.is(*truth)) return;
    }
    if (++mismatches_ > kReportedMismatches) return;
    const BareResult& truth = *truths.back();
    ADD_FAILURE() << "after " << what << " in " << project.directory() << " for " << project.targets_name << ": kiln "
                  << (got.ok ? got.origin + " " + std::to_string(got.bytes.size()) + " bytes" : got.reason)
                  << "; bare NVRTC " << (truth.ok ? std::to_string(truth.bytes.size()) + " bytes" : truth.log);
  }

  // Makes one change and checks it. Half of the time reverts it, which must hit if the earlier state was stored.
  void step(Project& project, const ChangeKind& kind, Random& random) {
    const Got before = requester_->get(project);
    // Only neutral changes were made since the last check, so its truth is still valid.
    const BareResult truth_before = truth_;
    const bool was_timed = project.timed();
    const Undo undo = kind.apply(project, random);
    ++by_kind_[kind.name];
    if (kind.settle) std::this_thread::sleep_for(kSettled);
    const Got after = check(project, kind.name);
    if (after.ok && random() % 2 != 0) return;
    undo();
    std::this_thread::sleep_for(kSettled);
    const Got back = was_timed ? check(project, std::string("the revert of ") + kind.name) : requester_->get(project);
    ++by_kind_["back"];
    if (was_timed) return;
    truth_ = truth_before;
    compare(back, {&truth_before}, project, std::string("the revert of ") + kind.name);
  }

  // Makes an edit at a random time during a compile. If the edit is atomic, a result from that time is of the old or of
  // the new files. Afterwards nothing changes, and the next result of a new `Components` is of the current files.
  void edit_during_compile(Project& project, Random& random) {
    const char* name = nullptr;
    Edit edit;
    while (!edit.apply) {  // an overwrite is always possible
      const EditKind& kind = edit_kinds()[random() % edit_kinds().size()];
      name = kind.name;
      edit = kind.prepare(project, random);
    }
    const bool comes_back = random() % 4 == 0;
    BareResult middle;
    ++project.scale;  // forces a compile
    const BareResult old_truth = requester_->bare(project);
    if (comes_back) {
      edit.apply();
      middle = requester_->bare(project);
      edit.revert();
    }
    // Half of the time the file was edited just before. With coarse timestamps, it then has the same timestamp that the
    // edit below gives it.
    if (random() % 2 != 0) {
      edit.apply();
      edit.revert();
    }
    std::this_thread::sleep_for(kSettled);

    const std::chrono::duration<double, std::milli> delay(requester_->typical_compile_ms() * 1.1 * chance(random));
    const std::chrono::duration<double, std::milli> stay(20 * chance(random));
    std::thread editor([=] {
      std::this_thread::sleep_for(delay);
      edit.apply();
      if (!comes_back) return;
      std::this_thread::sleep_for(stay);
      edit.revert();
    });
    const Got meanwhile = requester_->get(project, Requester::Lookups::Any, true);
    editor.join();
    ++edits_;
    ++by_kind_[std::string("edit:") + name + (comes_back ? "-and-back" : "")];
    if (random() % 2 != 0) std::this_thread::sleep_for(kSettled);

    const std::string what = std::string(name) + (comes_back ? " and back" : "") + " during the compile";
    const Got next = check(project, what, Requester::Lookups::NewOnly);
    // If the output contains file times, one edit makes two changes.
    if (edit.is_atomic && !project.timed()) {
      compare(meanwhile, {&old_truth, comes_back ? &middle : &truth_}, project, what + " (the result during the edit)");
    }
    // If the output contains file times, restoring a text does not restore its time. If both states give the same code,
    // the result does not show which state, or which mixture, it is of.
    const BareResult& other = comes_back ? middle : old_truth;
    const bool is_of_final_state = !project.timed() && meanwhile.is(truth_) && !meanwhile.is(other);
    if (next.compiles != 0 && meanwhile.published && is_of_final_state) {
      std::printf("needless: %s: %s\n", what.c_str(), next.miss.c_str());
      requester_->add_needless();
    }
  }

  static double chance(Random& random) { return std::uniform_real_distribution<double>(0, 1)(random); }

  // Makes a neutral change, which must hit.
  void neutral(Project& project, Random& random) {
    const Got before = requester_->get(project);
    if (!before.ok || !before.published || project.timed()) return;
    const auto expect_hit = [&](const Project& p, const char* what) {
      const std::size_t needless = requester_->needless;
      const Got after = requester_->get(p);
      ++by_kind_[what];
      if (after.compiles != 0 && requester_->needless == needless) requester_->add_needless();
      EXPECT_EQ(after.compiles, 0U) << what << " in " << project.directory() << ": " << after.reason;
      EXPECT_EQ(after.bytes, before.bytes) << what;
    };
    switch (random() % 4) {
      case 0: {
        const auto& header = project.headers[random() % project.headers.size()];
        const std::string path = project.at(header.directory + "/" + header.name);
        if (fs::exists(path)) fs::last_write_time(path, fs::file_time_type::clock::now() - 1h * (random() % 99));
        expect_hit(project, "neutral:mtime");
        break;
      }
      case 1: {
        const std::string unrelated = project.at("r1/unrelated_" + std::to_string(random() % 99) + ".h");
        write_file(unrelated, "#error this is never included\n");
        expect_hit(project, "neutral:unrelated-file");
        break;
      }
      case 2: {
        if (project.located() || project.shadowed_here || !project.working_directory.ends_with("here")) return;
        const std::string old = project.working_directory;
        project.working_directory = project.at("nowhere");
        expect_hit(project, "neutral:other-directory");
        project.working_directory = old;
        break;
      }
      default: {
        // A copy of a link is a separate file or a link to the old location, so the copy is a different project.
        if (project.located() || fs::equivalent(project.at("r1/duplicate_a.h"), project.at("r2/duplicate_b.h"))) return;
        const Project copy = project.copy_to(directory_ + "/copy-" + std::to_string(++copies_));
        expect_hit(copy, "neutral:other-checkout");
        project.enter();
        fs::remove_all(copy.directory());
      }
    }
  }

  TemporaryDirectory temporary_;
  std::string directory_;
  std::string start_;
  const bool pch_ = std::getenv("KILN_TEST_PCH") != nullptr;  // true if headers are precompiled
  const unsigned seed_ = static_cast<unsigned>(number_from("KILN_TEST_SEED", 20261115));
  std::unique_ptr<Requester> requester_;
  BareResult truth_;  // for the current state of the project
  std::map<std::string, int> by_kind_;
  std::size_t edits_ = 0;  // during a compile
  std::size_t mismatches_ = 0;
  int copies_ = 0;
  int siblings_ = 0;
};

TEST_F(NeverStale, RandomChangesNeverGiveOtherBytesThanBareNvrtc) {
  const int wanted = number_from("KILN_TEST_CHANGES", kChanges);
  const int edit_every = number_from("KILN_TEST_EDIT_EVERY", kEditEvery);
  if (std::getenv("KILN_TEST_PREPARE") != nullptr) {
    for (int number = 0; number * kChangesPerProject < wanted; ++number) (void)make_project(number);
    return;
  }
  Random random(seed_);
  const auto start = std::chrono::steady_clock::now();
  int changes = 0;
  for (int number = 0; changes < wanted; ++number) {
    Project project = make_project(number);
    std::this_thread::sleep_for(kSettled);
    (void)check(project, "the initial state");
    for (int i = 0; i < kChangesPerProject && changes < wanted; ++i, ++changes) {
      if (i % edit_every == edit_every - 1) {
        edit_during_compile(project, random);
      } else {
        // Each kind equally often over the whole run, in a different order for each project.
        const auto& kinds = change_kinds();
        step(project, kinds[random() % kinds.size()], random);
      }
      if (i % 3 == 0) neutral(project, random);
    }
  }
  std::printf(
      "figure: never stale with %s: seed=%u changes=%d edits=%zu mismatches=%zu compiles=%zu needless=%zu "
      "beyond_hints=%zu bare=%zu hits=%zu seconds=%.0f\n",
      tested_nvrtc(KILN_SOURCE_DIR).c_str(), seed_, changes, edits_, mismatches_, requester_->compiles,
      requester_->needless, requester_->beyond_hints, requester_->bare_compiles, requester_->hits,
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  for (const auto& [reason, count] : requester_->unstored) std::printf("not stored: %d: %s\n", count, reason.c_str());
  if (pch_) {
    std::printf("figure: never stale, precompiled headers: kept=%zu used=%zu dropped=%zu\n", requester_->pch_created,
                requester_->pch_used, requester_->pch_dropped);
    EXPECT_GT(requester_->pch_used, 0U) << "no precompiled header was used";
  }
  for (const auto& [kind, count] : by_kind_) std::printf("  %s=%d", kind.c_str(), count);
  std::printf("\n");
  EXPECT_EQ(mismatches_, 0U);
  EXPECT_EQ(requester_->needless, 0U) << "equal inputs were already compiled and stored";
}

}  // namespace
}  // namespace kiln::test
