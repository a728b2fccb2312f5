// SPDX-License-Identifier: Apache-2.0
// A header is edited, or another one takes precedence over it, after it was precompiled. NVRTC itself does not notice
// and yields old code, which each case first shows. kiln notices and yields the same result as NVRTC without a
// precompiled header.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "backends/dependency_builder.hpp"
#include "property/bare_nvrtc.hpp"
#include "support/fixtures/pch_fixture.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class PchStale : public PchTest {
 protected:
  enum class Times { New, Kept };

  // Compiles with NVRTC alone, in this process, with an additional option.
  BareResult bare(const Unit& unit, const std::string& option = {}) {
    const auto before = fs::current_path();
    fs::current_path(directory_.path("here"));
    BareResult result =
        bare_.compile(toolkit_nvrtc(), option.empty() ? unit : unit.with_option(option), Target::sm(80));
    fs::current_path(before);
    return result;
  }

  // Writes a header, either normally or without changing the modification times of the file and its directory.
  void change(const std::string& name, const std::string& text, Times times) {
    const std::string path = directory_.path(name);
    const std::string directory = fs::path(path).parent_path().string();
    struct stat of_directory {};
    struct stat of_file {};
    (void)stat(directory.c_str(), &of_directory);
    if (stat(path.c_str(), &of_file) != 0) (void)stat(directory_.path("r2/deep.h").c_str(), &of_file);
    write(name, text);
    if (times == Times::New) return;
    const timespec file[2] = {of_file.st_atim, of_file.st_mtim};
    const timespec above[2] = {of_directory.st_atim, of_directory.st_mtim};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), file, 0), 0);
    ASSERT_EQ(utimensat(AT_FDCWD, directory.c_str(), above, 0), 0);
  }

  // The content of `name` determines the result of unit 3, before and after the change.
  void expect_noticed(const std::string& name, const std::string& text, Times times) {
    auto one = process_with_headers();
    const std::string file = directory_.path("bare.pch");
    const BareResult old = bare(unit(3), "--create-pch=" + file);
    ASSERT_TRUE(old.ok) << old.log;
    change(name, text, times);
    settle();

    const BareResult stale = bare(unit(3), "--use-pch=" + file);
    const BareResult fresh = bare(unit(3));
    ASSERT_TRUE(stale.ok && fresh.ok) << fresh.log;
    EXPECT_EQ(stale.bytes, old.bytes) << "NVRTC itself notices the change: is this test still needed?";
    EXPECT_NE(stale.bytes, fresh.bytes) << "the change must change the result";

    const Seen seen(one->compile(unit(3)));
    EXPECT_TRUE(seen.bytes == fresh.bytes) << (seen.bytes == stale.bytes ? "old code" : seen.log);
    EXPECT_EQ(one->dropped(), 1U);
    EXPECT_NE(one->dropped_reason().find(fs::path(name).filename().string()), std::string::npos)
        << one->dropped_reason();
    EXPECT_EQ(seen.not_cacheable, "");
    expect_rebuilt(*one, fresh);
    std::printf(
        "figure: %s, times %s: NVRTC with its old precompiled header yields old code, kiln yields new code; '%s'\n",
        name.c_str(), times == Times::Kept ? "kept" : "new", one->dropped_reason().c_str());
  }

  // That compile has created them again, or the next one does. They are then used, and no result is old.
  void expect_rebuilt(PchProcess& one, const BareResult& fresh) {
    EXPECT_EQ(one.kept(), 2U);
    const std::size_t used = one.used();
    EXPECT_TRUE(Seen(one.compile(unit(3))).bytes == fresh.bytes);
    EXPECT_EQ(one.used(), used + 1);
    EXPECT_EQ(one.dropped(), 1U);
  }

  BareNvrtc bare_;
};

constexpr const char* kOtherWide =
    "#include <deep.h>\nstatic __device__ __forceinline__ int wide(int x) { return x - Deep<9>::value; }\n";
constexpr const char* kOtherDeep =
    "#pragma once\ntemplate <int N> struct Deep { static constexpr int value = N + 200; };\n";

TEST_F(PchStale, DetectsEditedHeader) { expect_noticed("r2/deep.h", kOtherDeep, Times::New); }

TEST_F(PchStale, DetectsEditedHeaderWithSameTimeAndSize) {
  ASSERT_EQ(std::string(kOtherDeep).size(), fs::file_size(directory_.path("r2/deep.h")));
  expect_noticed("r2/deep.h", kOtherDeep, Times::Kept);
}

TEST_F(PchStale, DetectsHeaderAddedEarlierInIncludePath) { expect_noticed("r1/deep.h", kOtherDeep, Times::New); }

TEST_F(PchStale, DetectsHeaderAddedEarlierInIncludePathWithSameTimes) {
  expect_noticed("r1/deep.h", kOtherDeep, Times::Kept);
}

TEST_F(PchStale, DetectsHeaderAddedToWorkingDirectory) {
  start_ = "#include \"wide.h\"\n";
  expect_noticed("here/wide.h", kOtherWide, Times::New);
}

TEST_F(PchStale, DetectsHeaderAddedToWorkingDirectoryWithSameTimes) {
  start_ = "#include \"wide.h\"\n";
  expect_noticed("here/wide.h", kOtherWide, Times::Kept);
}

TEST_F(PchStale, HeaderReplacedDuringUseIsRecordedWithOldContent) {
  auto one = process_with_headers();
  const Recipe recipe = one->recipe(unit(3));
  PchManager::PchPlan plan = one->headers().plan(recipe, *one->key_of(unit(3)), {});
  ASSERT_EQ(plan.order.mode, PchRequest::Mode::Use);
  const auto observations = plan.observations;
  const DependencyResult before = build_dependency_set(recipe, observations, false, {}, shared_digests());
  change("r2/deep.h", kOtherDeep, Times::Kept);
  const DependencyResult built = build_dependency_set(recipe, observations, false, {}, shared_digests());
  EXPECT_EQ(built.uncacheable_reason, "");
  EXPECT_EQ(built.dependency_set, before.dependency_set) << "the compile used the content of the precompiled header";
  EXPECT_TRUE(check(built.dependency_set, recipe.path_roots(), shared_digests())) << "which is not the current content";
}

TEST_F(PchStale, DetectsRemovedHeader) {
  auto one = process_with_headers();
  fs::remove(directory_.path("r2/wide.h"));
  const Seen seen(one->compile(unit(3)));
  EXPECT_FALSE(seen.ok) << "NVRTC would have compiled it with the old precompiled header";
  EXPECT_EQ(one->dropped(), 1U);
  write("r2/wide.h", "#pragma once\nstatic __device__ int wide(int x) { return x; }\n");
  settle();
  const Seen again(one->compile(unit(3)));
  expect_same(again, truth(*one, unit(3)), "with a new one", DependencySets::NotSeen);
}

TEST_F(PchStale, IgnoresUnrelatedChanges) {
  auto one = process_with_headers();
  fs::last_write_time(directory_.path("r2/deep.h"), fs::file_time_type::clock::now() - std::chrono::hours(3));
  write("r1/unrelated.h", "#error this is not included\n");
  settle();
  EXPECT_TRUE(one->compile(unit(3)).has_value());
  EXPECT_EQ(one->used(), 2U);
  EXPECT_EQ(one->dropped(), 0U);
}

}  // namespace
}  // namespace kiln::test
