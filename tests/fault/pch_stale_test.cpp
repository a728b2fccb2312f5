// A header is edited, or another one comes before it, after it was precompiled. NVRTC itself notices neither and gives
// old code, which each case shows first; kiln notices and gives what NVRTC gives without a precompiled header.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "compile/closure_builder.hpp"
#include "property/bare_nvrtc.hpp"
#include "support/pch_fixture.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class PchStale : public PchTest {
 protected:
  enum class Times { New, Kept };

  // NVRTC alone, in this process and with these options besides the unit's.
  BareResult bare(const Unit& unit, const std::string& option = {}) {
    const auto before = fs::current_path();
    fs::current_path(folder_.path("here"));
    BareResult result = bare_.compile(toolkit_nvrtc(), option.empty() ? unit : unit.option(option), Target::sm(80));
    fs::current_path(before);
    return result;
  }

  // Writes a header so that neither its times of modification nor those of its folder tell, or as anyone would.
  void change(const std::string& name, const std::string& text, Times times) {
    const std::string path = folder_.path(name);
    const std::string folder = fs::path(path).parent_path().string();
    struct stat of_folder {};
    struct stat of_file {};
    (void)stat(folder.c_str(), &of_folder);
    if (stat(path.c_str(), &of_file) != 0) (void)stat(folder_.path("r2/deep.h").c_str(), &of_file);
    write(name, text);
    if (times == Times::New) return;
    const timespec file[2] = {of_file.st_atim, of_file.st_mtim};
    const timespec above[2] = {of_folder.st_atim, of_folder.st_mtim};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), file, 0), 0);
    ASSERT_EQ(utimensat(AT_FDCWD, folder.c_str(), above, 0), 0);
  }

  // What is in `name` decides unit 3, before and after the change.
  void expect_noticed(const std::string& name, const std::string& text, Times times) {
    auto one = process_with_headers();
    const std::string file = folder_.path("bare.pch");
    const BareResult old = bare(unit(3), "--create-pch=" + file);
    ASSERT_TRUE(old.ok) << old.log;
    change(name, text, times);
    settle();

    const BareResult stale = bare(unit(3), "--use-pch=" + file);
    const BareResult fresh = bare(unit(3));
    ASSERT_TRUE(stale.ok && fresh.ok) << fresh.log;
    EXPECT_EQ(stale.bytes, old.bytes) << "NVRTC has noticed by itself: is this test still needed?";
    EXPECT_NE(stale.bytes, fresh.bytes) << "the change was to make a difference";

    const Seen seen(one->compile(unit(3)));
    EXPECT_TRUE(seen.bytes == fresh.bytes) << (seen.bytes == stale.bytes ? "old code" : seen.log);
    EXPECT_EQ(one->dropped(), 1U);
    EXPECT_NE(one->why_dropped().find(fs::path(name).filename().string()), std::string::npos) << one->why_dropped();
    EXPECT_EQ(seen.not_cacheable, "");
    expect_rebuilt(*one, fresh);
    std::printf("figure: %s, times %s: NVRTC with its old precompiled header gives old code, kiln gives new; '%s'\n",
                name.c_str(), times == Times::Kept ? "kept" : "new", one->why_dropped().c_str());
  }

  // That compile has made them anew, or the next one does; then they are used, and still nothing is old.
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

TEST_F(PchStale, EditedHeaderIsNoticed) { expect_noticed("r2/deep.h", kOtherDeep, Times::New); }

TEST_F(PchStale, EditedHeaderIsNoticedWhereItKeepsItsTimeAndSize) {
  ASSERT_EQ(std::string(kOtherDeep).size(), fs::file_size(folder_.path("r2/deep.h")));
  expect_noticed("r2/deep.h", kOtherDeep, Times::Kept);
}

TEST_F(PchStale, HeaderThatComesFirstInTheIncludePathIsNoticed) { expect_noticed("r1/deep.h", kOtherDeep, Times::New); }

TEST_F(PchStale, HeaderThatComesFirstInTheIncludePathIsNoticedWhereTimesAreKept) {
  expect_noticed("r1/deep.h", kOtherDeep, Times::Kept);
}

TEST_F(PchStale, HeaderThatComesIntoTheWorkingDirectoryIsNoticed) {
  start_ = "#include \"wide.h\"\n";
  expect_noticed("here/wide.h", kOtherWide, Times::New);
}

TEST_F(PchStale, HeaderThatComesIntoTheWorkingDirectoryIsNoticedWhereTimesAreKept) {
  start_ = "#include \"wide.h\"\n";
  expect_noticed("here/wide.h", kOtherWide, Times::Kept);
}

TEST_F(PchStale, HeaderThatIsSwappedWhileTheWorkerUsesTheOldOneIsNotPublished) {
  auto one = process_with_headers();
  const Recipe recipe = one->recipe(unit(3));
  PrecompiledHeaders::Plan plan = one->headers().plan(recipe, *one->key_of(unit(3)));
  ASSERT_EQ(plan.order.mode, PchOrder::Mode::Use);
  const auto observations = plan.observations;
  change("r2/deep.h", kOtherDeep, Times::Kept);
  const BuiltClosure built = build_closure(recipe, observations, false, {}, shared_digests());
  EXPECT_NE(built.not_cacheable.find("changed while the compiler ran"), std::string::npos) << built.not_cacheable;
}

TEST_F(PchStale, HeaderThatGoesIsNoticed) {
  auto one = process_with_headers();
  fs::remove(folder_.path("r2/wide.h"));
  const Seen seen(one->compile(unit(3)));
  EXPECT_FALSE(seen.ok) << "NVRTC would have compiled it with the old precompiled header";
  EXPECT_EQ(one->dropped(), 1U);
  write("r2/wide.h", "#pragma once\nstatic __device__ int wide(int x) { return x; }\n");
  settle();
  const Seen again(one->compile(unit(3)));
  expect_same(again, truth(*one, unit(3)), "with a new one", Closures::NotSeen);
}

TEST_F(PchStale, WhatChangesNothingIsNotMistakenForAChange) {
  auto one = process_with_headers();
  fs::last_write_time(folder_.path("r2/deep.h"), fs::file_time_type::clock::now() - std::chrono::hours(3));
  write("r1/unrelated.h", "#error nobody includes this\n");
  settle();
  EXPECT_TRUE(one->compile(unit(3)).ok());
  EXPECT_EQ(one->used(), 2U);
  EXPECT_EQ(one->dropped(), 0U);
}

}  // namespace
}  // namespace kiln::test
