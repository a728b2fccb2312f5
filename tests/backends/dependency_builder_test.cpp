// SPDX-License-Identifier: Apache-2.0
#include "backends/dependency_builder.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "backends/cuda/nvrtc_compiler.hpp"
#include "base/hash.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "worker/worker_compiler.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class DependencyBuilding : public testing::Test {
 protected:
  DependencyBuilding() {
    fs::create_directories(directory_.path("first"));
    fs::create_directories(directory_.path("second/sub"));
    write_text(directory_.path("second/sub/h.h"), "int x;");
  }
  Recipe recipe() const {
    const Unit unit =
        Unit::cuda("k.cu", "").with_include_root(directory_.path("first")).with_include_root(directory_.path("second"));
    return {unit, Target::sm(80), {}, directory_.path()};
  }
  FileAccess read(const std::string& path) const { return read(path, recipe()); }
  static FileAccess read(const std::string& path, const Recipe& by) {
    const std::string text = read_text(path);
    FileContent content{sha256(text), TextScanner(by).facts_of(path, text), {}};
    return {path, FileAccess::State::Read, false, stamp_of(path.c_str()).value(), std::move(content)};
  }
  static FileAccess found(const std::string& path) {
    return {path, FileAccess::State::Exists, false, stamp_of(path.c_str()).value(), {}};
  }
  static FileAccess missing(const std::string& path) { return {path, FileAccess::State::Missing, false, {}, {}}; }
  DependencyResult build(const std::vector<FileAccess>& observations, bool debug = false, std::string_view bytes = {}) {
    return build_dependency_set(recipe(), observations, debug, bytes, digests_);
  }

  TemporaryDirectory directory_;
  FileDigestCache digests_{std::string()};
};

TEST_F(DependencyBuilding, RecordsFilesByRootAndContent) {
  const DependencyResult built = build({read(directory_.path("second/sub/h.h"))});
  EXPECT_EQ(built.uncacheable_reason, "");
  ASSERT_EQ(built.dependency_set.items.size(), 1u);
  const DependencySet::Dependency& item = built.dependency_set.items[0];
  EXPECT_EQ(item.root, 1);
  EXPECT_EQ(item.name, "sub/h.h");
  EXPECT_EQ(item.digest, sha256(std::string_view("int x;")));
  EXPECT_FALSE(built.dependency_set.embeds_paths);
}

TEST_F(DependencyBuilding, MissingDirectoryReplacesMissingFilesInIt) {
  const DependencyResult built =
      build({missing(directory_.path("first/cub/a.h")), missing(directory_.path("first/cub/b/c.h")),
             missing(directory_.path("second/sub/none.h"))});
  ASSERT_EQ(built.dependency_set.items.size(), 2u);
  EXPECT_EQ(built.dependency_set.items[0].name, "cub/");
  EXPECT_EQ(built.dependency_set.items[0].state, DependencySet::State::Absent);
  EXPECT_EQ(built.dependency_set.items[1].name, "sub/none.h");
  // After the directory appears, the dependency set no longer matches.
  EXPECT_FALSE(check(built.dependency_set, recipe().path_roots(), digests_).has_value());
  fs::create_directories(directory_.path("first/cub"));
  EXPECT_TRUE(check(built.dependency_set, recipe().path_roots(), digests_).has_value());
}

TEST_F(DependencyBuilding, RecordsContentThatWasRead) {
  const std::string path = directory_.path("second/sub/h.h");
  const FileAccess before = read(path);
  write_text(path, "int y;");
  fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(1));
  const DependencyResult built = build({before});
  EXPECT_EQ(built.uncacheable_reason, "");
  ASSERT_EQ(built.dependency_set.items.size(), 1u);
  EXPECT_EQ(built.dependency_set.items[0].digest, sha256(std::string_view("int x;")));
  EXPECT_TRUE(check(built.dependency_set, recipe().path_roots(), digests_).has_value()) << "the next lookup misses";
}

TEST_F(DependencyBuilding, UnreadableContentIsNotCacheable) {
  FileAccess device = read(directory_.path("second/sub/h.h"));
  device.content.problem = "is not a regular file";
  EXPECT_EQ(build({device}).uncacheable_reason, directory_.path("second/sub/h.h") + " is not a regular file");
}

TEST_F(DependencyBuilding, TracksFilesInAnyDirectory) {
  const TemporaryDirectory shared("/dev/shm");
  write_text(shared.path("h.h"), "int x;");
  const DependencyResult built = build({read(shared.path("h.h")), missing("/sys/no.h"), missing("/proc/no.h")});
  EXPECT_EQ(built.uncacheable_reason, "");
  ASSERT_EQ(built.dependency_set.items.size(), 3u);
  EXPECT_FALSE(check(built.dependency_set, recipe().path_roots(), digests_).has_value());
  write_text(shared.path("h.h"), "int y;");
  EXPECT_TRUE(check(built.dependency_set, recipe().path_roots(), digests_).has_value());
}

TEST_F(DependencyBuilding, ResolvesProcSelfCwdInWorkingDirectory) {
  Recipe other = recipe();
  other.unit = Unit::cuda("k.cu", "").with_include_root("/proc/self/cwd/second");
  FileAccess seen = read(directory_.path("second/sub/h.h"));
  seen.path = "/proc/self/cwd/second/sub/h.h";
  FileAccess beside = read(directory_.path("second/sub/h.h"));
  beside.path = "/proc/self/cwd/second/../second/sub/h.h";
  const DependencyResult built = build_dependency_set(other, {seen, beside}, false, {}, digests_);
  EXPECT_EQ(built.uncacheable_reason, "");
  EXPECT_FALSE(check(built.dependency_set, other.path_roots(), digests_).has_value());
  write_text(directory_.path("second/sub/h.h"), "int y;");
  EXPECT_TRUE(check(built.dependency_set, other.path_roots(), digests_).has_value());
  FileAccess own = seen;
  own.path = "/proc/self/fd/7";
  EXPECT_EQ(build({own}).uncacheable_reason, "/proc/self/fd/7 is a different file in each process");
}

TEST_F(DependencyBuilding, NamesWithTheWorkingDirectoryAreNotCacheable) {
  EXPECT_EQ(build({missing("__nv_nvrtc_builtin_header.h")}).uncacheable_reason, "");
  EXPECT_EQ(build({missing(directory_.path("__nv_nvrtc_builtin_header.h"))}).uncacheable_reason,
            "the compiler adds the working directory to the names of files");
}

TEST_F(DependencyBuilding, RecordsDuplicateFilesOfTheCompile) {
  write_text(directory_.path("second/a.h"), "#pragma once\n");
  fs::create_hard_link(directory_.path("second/a.h"), directory_.path("second/b.h"));
  write_text(directory_.path("k.cu"), "the program's own name");
  std::vector<FileAccess> seen{found(directory_.path("k.cu")), read(directory_.path("second/a.h")),
                               found(directory_.path("second/b.h"))};
  seen[0].path = "k.cu";
  fs::remove(directory_.path("second/b.h"));
  const DependencyResult built = build(seen);
  ASSERT_EQ(built.dependency_set.items.size(), 2u);
  ASSERT_EQ(built.dependency_set.duplicate_files.size(), 1u);
  EXPECT_EQ(built.dependency_set.duplicate_files[0], (DependencySet::DuplicateFiles{0, 1, true}));
  EXPECT_EQ(built.dependency_set.items[1].digest, built.dependency_set.items[0].digest);
}

TEST_F(DependencyBuilding, InconsistentAccessIsNotCacheable) {
  FileAccess both = read(directory_.path("second/sub/h.h"));
  both.inconsistent = true;
  EXPECT_NE(build({both}).uncacheable_reason, "");
}

TEST_F(DependencyBuilding, ResultWithPathsInOutputIsBoundToItsPaths) {
  const std::vector<FileAccess> observations{read(directory_.path("second/sub/h.h"))};
  EXPECT_TRUE(build(observations, true).dependency_set.embeds_mtimes);
  EXPECT_TRUE(build(observations, false, "…" + directory_.path("second/sub/") + "h.h…").dependency_set.embeds_paths);
  write_text(directory_.path("second/sub/h.h"), "const char* f = __FILE__;");
  EXPECT_TRUE(build({read(directory_.path("second/sub/h.h"))}).dependency_set.embeds_paths);
}

// The compiler spells the paths of a root's files as the root is spelled. A source spelled this path.
TEST_F(DependencyBuilding, PathOfOtherSpellingIsNotARootsFile) {
  const std::string path = directory_.path("/second/sub/h.h");
  ASSERT_NE(path.find("//"), std::string::npos);
  const DependencyResult built = build({read(path), missing(directory_.path("/second/none.h"))});
  ASSERT_EQ(built.dependency_set.items.size(), 2u);
  for (const DependencySet::Dependency& item : built.dependency_set.items) {
    EXPECT_EQ(item.root, DependencySet::kAbsolute) << item.name;
  }
}

TEST_F(DependencyBuilding, NamesMadeByMacrosBindResultToItsPaths) {
  const auto is_bound = [&](const Unit& unit, const std::vector<FileAccess>& observations) {
    return build_dependency_set({unit, Target::sm(80), {}, directory_.path()}, observations, false, {}, digests_)
        .dependency_set.embeds_paths;
  };
  const std::string start = directory_.path().substr(0, directory_.path().find('/', 1));
  const Unit computes = Unit::cuda("k.cu", "#include NAME").with_option("-DDIRECTORY=" + start);
  const std::string root = directory_.path("second");
  const std::string header = root + "/sub/h.h";
  EXPECT_TRUE(is_bound(computes.with_include_root(root), {read(header)}));
  EXPECT_TRUE(is_bound(computes.with_include_root(root), {missing(root + "/none.h")}));
  EXPECT_TRUE(
      is_bound(Unit::cuda("k.cu", "#if __has_include(\"" + header + "\")").with_include_root(root), {found(header)}));
  EXPECT_FALSE(is_bound(Unit::cuda("k.cu", "#include <sub/h.h>").with_include_root(root), {read(header)}));
  EXPECT_FALSE(is_bound(computes, {read(header)})) << "no root whose path could change";
  EXPECT_FALSE(is_bound(Unit::cuda("k.cu", "#include NAME").with_include_root(root), {read(header)}))
      << "no text from which the path could be made";

  write_text(header, "#define DIRECTORY " + start + "\n#include NAME");
  const Recipe plain{Unit::cuda("k.cu", "").with_include_root(root), Target::sm(80), {}, directory_.path()};
  EXPECT_TRUE(is_bound(plain.unit, {read(header, plain)})) << "the name is made in a header";
}

TEST_F(DependencyBuilding, TimeMacroInHeaderIsNotCacheable) {
  write_text(directory_.path("second/sub/h.h"), "const char* t = __TIME__;");
  EXPECT_NE(build({read(directory_.path("second/sub/h.h"))}).uncacheable_reason.find("__TIME__"), std::string::npos);
}

TEST_F(DependencyBuilding, VendorDirectoriesDoNotExemptOtherHeaders) {
  fs::create_directories(directory_.path("second/cub"));
  fs::create_directories(directory_.path("second/cuda"));
  const std::string marked = "// (c) NVIDIA\n";
  write_text(directory_.path("second/cub/version.cuh"), marked + "#define ERR __FILE__\n");
  write_text(directory_.path("second/mine.h"), "#pragma once\n");
  const auto located = [&](const std::string& name, const std::string& text) {
    write_text(directory_.path("second/" + name), text);
    return build({read(directory_.path("second/cub/version.cuh")), read(directory_.path("second/" + name))})
        .dependency_set.embeds_paths;
  };
  EXPECT_FALSE(located("mine.h", "int x;"));
  EXPECT_TRUE(located("mine.h", "constexpr int n = sizeof(__FILE__);"));
  EXPECT_TRUE(located("mine.h", marked + "constexpr int n = sizeof(__FILE__);"));
  EXPECT_TRUE(located("cuda/mine.h", "constexpr int n = sizeof(__FILE__);"));
  EXPECT_FALSE(located("cuda/theirs.h", marked + "#define ERR __FILE__"));
  EXPECT_FALSE(located("cuda_fp8.hpp", marked + "#define ERR __FILE__"));
  fs::create_directories(directory_.path("second/cuda/std"));
  EXPECT_FALSE(located("cuda/std/extents.h", "// (c) Sandia\n_CCCL_BEGIN\n#define ERR __FILE__"));
  EXPECT_TRUE(located("cuda_check.h", "#ifdef _CCCL_DEVICE\n#endif\nconstexpr int n = sizeof(__FILE__);"));
}

// The directory of the headers that NVRTC 13.3 bundles has no cuda_runtime_api.h; CUB is in another directory.
TEST_F(DependencyBuilding, BundledHeadersAreVendorHeaders) {
  write_text(directory_.path("second/cuda_fp8.hpp"), "// (c) NVIDIA\n#define ERR __FILE__\n");
  EXPECT_TRUE(build({read(directory_.path("second/cuda_fp8.hpp"))}).dependency_set.embeds_paths);
  write_text(directory_.path("second/cooperative_groups.h"), "// (c) NVIDIA\n");
  EXPECT_FALSE(build({read(directory_.path("second/cuda_fp8.hpp"))}).dependency_set.embeds_paths);
}

TEST_F(DependencyBuilding, DetectsTimeMacrosNextToVendorHeaders) {
  for (const std::string mark : {"nv/target", "cub/version.cuh", "cuda_runtime_api.h"}) {
    const TemporaryDirectory root;
    fs::create_directories(fs::path(root.path(mark)).parent_path());
    write_text(root.path(mark), "// NVIDIA\n");
    write_text(root.path("mine.h"), "const char* t = __TIME__;");
    Recipe beside = recipe();
    beside.unit = Unit::cuda("k.cu", "").with_include_root(root.path());
    const DependencyResult built =
        build_dependency_set(beside, {read(root.path("mine.h"), beside)}, false, {}, digests_);
    EXPECT_EQ(built.uncacheable_reason, root.path("mine.h") + " uses __TIME__");
  }
}

TEST_F(DependencyBuilding, DetectsTimeMacrosPastedAcrossHeadersAndUnit) {
  write_text(directory_.path("second/sub/h.h"), "#define JOIN(a, b) a##b\n#define PART __TI\n");
  Recipe joining = recipe();
  joining.unit = Unit::cuda("k.cu", "JOIN(PART, ME__)").with_include_root(directory_.path("second"));
  const DependencyResult built =
      build_dependency_set(joining, {read(directory_.path("second/sub/h.h"))}, false, {}, digests_);
  EXPECT_NE(built.uncacheable_reason.find("__TIME__"), std::string::npos) << built.uncacheable_reason;
  EXPECT_EQ(build({read(directory_.path("second/sub/h.h"))}).uncacheable_reason, "") << "without the other part";
}

TEST(BlindWorker, UnrecordedInputsAreNotCacheable) {
  FileDigestCache digests{std::string()};
  WorkerPool::Options blind;
  blind.program = KILN_UNTRACED_WORKER;
  WorkerPool pool(blind);
  WorkerCompiler::Options options;
  options.pool = &pool;
  WorkerCompiler compiler(std::make_unique<NvrtcCompiler>("", digests), digests, options, {});
  const auto compiled =
      compiler.compile(recipe_for(compiler, Unit::cuda("k.cu", "#include <x.h>"), Target::sm(80)), {});
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
  EXPECT_EQ(compiled->artifact.bytes.view(), "bytes");
  EXPECT_NE(compiled->uncacheable_reason, "");
}

}  // namespace
}  // namespace kiln::test
