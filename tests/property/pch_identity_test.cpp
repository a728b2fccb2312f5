// SPDX-License-Identifier: Apache-2.0
// Precompiled headers change only the compile time: every unit of the project, for several architectures, gives equal
// bytes with and without them, in a worker and in this process. There is one exception. If headers have variable
// templates, NVRTC itself may reorder variables when it creates or uses precompiled headers
// (docs/internals/decisions/0006.md). Then everything else is equal, logs included.
//
// KILN_TEST_NVRTC selects another NVRTC than the toolkit's, and KILN_TEST_CUB_ROOTS its include directories of CUB,
// separated by colons.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "backends/source_scan.hpp"
#include "support/fixtures/cubin_sections.hpp"
#include "support/fixtures/project_units.hpp"
#include "support/processes/pch_process.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class PchIdentity : public testing::Test {
 protected:
  void SetUp() override {
    if (nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    fs::create_directories(directory_.path("here"));
  }
  static std::string nvrtc() { return tested_nvrtc(KILN_SOURCE_DIR); }
  std::unique_ptr<PchProcess> process(const std::string& bucket, bool headers = true) {
    return std::make_unique<PchProcess>(PchProcess::Options{.directory = directory_.path(bucket),
                                                            .working_directory = directory_.path("here"),
                                                            .nvrtc = nvrtc(),
                                                            .headers = headers});
  }

  // Returns a unit with the same beginning, a different end and a different name. Its precompiled headers fit the unit.
  static Unit sibling_of(const Unit& unit) {
    const std::string source = unit.full_source();
    Unit sibling = Unit::cuda("sibling.cu", std::string(leading_directives(source)) +
                                                "extern \"C\" __global__ void other(float* p) { *p += 1; }\n")
                       .with_options(unit.options());
    for (const IncludeRoot& root : unit.include_roots()) sibling = sibling.with_include_root(root.path, root.sentinel);
    return sibling.with_entry("other");
  }

  // Expects equal code or, if `may_reorder` is set, equal code in a different order.
  void expect_same_code(const ProjectUnit& one, const Seen& plain, Seen used, const std::string& what) {
    // Which units of CUB are reordered is known for the toolkit's NVRTC only.
    const bool may_reorder = one.may_reorder || (one.heavy && nvrtc() != toolkit_nvrtc());
    if (may_reorder && plain.ok && used.ok && used.bytes != plain.bytes) {
      EXPECT_TRUE(code_of(used.bytes) == code_of(plain.bytes)) << what << ": different code";
      ++reordered_;
      used.bytes = plain.bytes;
    }
    expect_same(plain, used, what);
  }

  static void expect_portable(const DependencySet& set) {
    EXPECT_FALSE(set.embeds_paths || set.embeds_mtimes) << "the result contains paths or times of this host";
    for (const DependencySet::Dependency& item : set.items) {
      EXPECT_NE(item.root, DependencySet::kAbsolute) << item.name << " is a path of this host";
    }
  }

  void check(const ProjectUnit& one, const Target& target) {
    const Unit& unit = one.unit;
    SCOPED_TRACE(unit.label() + " for " + target.name());
    const Seen plain(plain_->compile(unit, target));
    ASSERT_TRUE(plain.ok) << plain.log;
    expect_portable(*DependencySet::decode(plain.dependency_set));
    ++compared_;
    compiles_ += 2;
    if (!plain.log.empty()) ++with_log_;
    expect_same(plain, compile_here(plain_->recipe(unit, target), nvrtc()), "in this process", DependencySets::NotSeen);
    const auto headers = makers_->key_of(unit, target);
    if (!headers) return;
    ++sharing_;
    for (PchProcess* process : {makers_.get(), users_.get()})
      process->pch_cache().remove(*headers);  // those of another unit
    compiles_ += 4;
    makers_->expect_queued_similar(unit, target);
    expect_same_code(one, plain, Seen(makers_->compile(unit, target)), "creating its headers");
    expect_same_code(one, plain, Seen(makers_->compile(unit, target)), "using its own headers");
    users_->expect_queued_similar(sibling_of(unit), target);
    EXPECT_TRUE(users_->compile(sibling_of(unit), target).has_value());
    expect_same_code(one, plain, Seen(users_->compile(unit, target)), "using headers of another unit");
  }

  TemporaryDirectory directory_;
  std::unique_ptr<PchProcess> plain_ = process("plain", false);
  std::unique_ptr<PchProcess> makers_ = process("makers");
  std::unique_ptr<PchProcess> users_ = process("users");
  int compared_ = 0;
  int sharing_ = 0;
  int compiles_ = 0;
  int reordered_ = 0;
  int with_log_ = 0;
};

TEST_F(PchIdentity, EveryUnitIsEqualWithAndWithoutPchInWorkerAndInProcess) {
  const bool everything = std::getenv("KILN_TEST_ALL") != nullptr;
  const bool only_small = std::getenv("KILN_TEST_SMALL") != nullptr;
  const auto start = std::chrono::steady_clock::now();
  for (const int architecture : {80, 90, 120}) {
    for (const ProjectUnit& one : project_units()) {
      // In CI, one architecture represents three.
      if (!everything && (one.one_of_many || architecture != 80)) continue;
      if (only_small && one.heavy) continue;
      check(one, Target::sm(architecture));
      if (HasFatalFailure()) return;
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf(
      "figure: bit identity with %s: %d units × architectures, %d of them with headers to share, compiles=%d kept=%zu "
      "used=%zu dropped=%zu with warnings=%d variables reordered=%d other differences=%s seconds=%.0f\n",
      nvrtc().c_str(), compared_, sharing_, compiles_, makers_->kept() + users_->kept(),
      makers_->used() + users_->used(), makers_->dropped() + users_->dropped(), with_log_, reordered_,
      HasFailure() ? "some" : "0", seconds);
  EXPECT_EQ(makers_->kept(), static_cast<std::size_t>(sharing_));
  EXPECT_EQ(makers_->used(), static_cast<std::size_t>(sharing_));
  EXPECT_EQ(users_->used(), static_cast<std::size_t>(sharing_));
  EXPECT_GT(sharing_, 0);
}

TEST_F(PchIdentity, EveryCudaSourceOfProjectIsCovered) {
  std::vector<std::string> paths;
  for (const char* folder : {"/examples/kernels", "/examples/many_kernels/kernels", "/examples/spatial/kernels"}) {
    for (std::string& path : files_below(std::string(KILN_SOURCE_DIR) + folder)) paths.push_back(std::move(path));
  }
  for (const std::string& path : paths) {
    if (!path.ends_with(".cu")) continue;
    const std::string text = read_text(path);
    bool is_listed = false;
    for (const ProjectUnit& one : project_units()) {
      is_listed = is_listed || one.unit.source() == text || one.unit.preamble() == text;
    }
    EXPECT_TRUE(is_listed) << path;
  }
}

}  // namespace
}  // namespace kiln::test
