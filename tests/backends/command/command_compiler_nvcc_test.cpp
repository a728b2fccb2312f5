// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "backends/command/command_compiler.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

FileDigestCache& shared_digests() {
  static FileDigestCache shared{""};
  return shared;
}

// Files that changed less than one tick of the file system's clock before a compile are not trusted.
void let_files_settle() { std::this_thread::sleep_for(std::chrono::milliseconds(60)); }

class NvccTest : public ::testing::Test {
 protected:
  void make_roots() {
    for (const char* name : {"first", "second root#", "third"})
      std::filesystem::create_directory(directory_.path(name));
    write_text(directory_.path("second root#/h.h"), "#include \"beside.h\"\n#define FACTOR BESIDE\n");
    write_text(directory_.path("third/beside.h"), "#define BESIDE 3\n");
    let_files_settle();
  }
  Unit with_roots(const std::string& source) const {
    return Unit::command("k.cu", source, nvcc_template())
        .with_include_root(directory_.path("first"))
        .with_include_root(directory_.path("second root#"))
        .with_include_root(directory_.path("third"));
  }
  Recipe recipe(const Unit& unit, const Target& target = Target::sm(80)) { return recipe_for(compiler_, unit, target); }
  std::string temporary(const char* name) const {
    std::filesystem::create_directory(directory_.path(name));
    return directory_.path(name);
  }

  TemporaryDirectory directory_;
  CommandCompiler compiler_{"nvcc", shared_digests(), {std::chrono::minutes(2), temporary("tmp")}};
};

TEST_F(NvccTest, DependencySetDetectsEditedShadowingAndQueriedHeaders) {
  make_roots();
  const Recipe made = recipe(with_roots("#include <h.h>\n#if __has_include(<maybe.h>)\n#error no\n#endif\n"
                                        "extern \"C\" __global__ void scale(float* x) { x[0] *= FACTOR; }\n")
                                 .with_entry("scale"));
  const auto compiled = compiler_.compile(made, {});
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message << compiled.error().log;
  ASSERT_EQ(compiled->uncacheable_reason, "");
  const DependencySet& dependency_set = *compiled->artifact.dependency_set;
  const auto mismatch = [&] {
    const auto found = check(dependency_set, made.path_roots(), shared_digests());
    return found ? found->description : std::string();
  };
  EXPECT_EQ(mismatch(), "");
  EXPECT_FALSE(dependency_set.embeds_paths);
  EXPECT_EQ(dependency_set, DependencySet::decode(dependency_set.encode()).value());

  const std::string before = read_text(directory_.path("third/beside.h"));
  write_text(directory_.path("third/beside.h"), "#define BESIDE 4\n");
  EXPECT_NE(mismatch().find("beside.h changed"), std::string::npos) << mismatch();
  write_text(directory_.path("third/beside.h"), before);
  EXPECT_EQ(mismatch(), "");
  for (const char* shadow : {"first/h.h", "first/beside.h", "second root#/beside.h", "first/maybe.h", "third/maybe.h",
                             "first/cuda_runtime.h", "first/vector_types.h"}) {
    write_text(directory_.path(shadow), "");
    EXPECT_NE(mismatch(), "") << shadow;
    std::filesystem::remove(directory_.path(shadow));
    EXPECT_EQ(mismatch(), "");
  }
  write_text(directory_.path("first/of_no_interest.h"), "");
  EXPECT_EQ(mismatch(), "");
}

TEST_F(NvccTest, OutputEqualsDirectNvccRunAndLeavesNoFiles) {
  const std::string source = "extern \"C\" __global__ void one(float* x) { x[0] = 1; }\n";
  const auto compiled =
      compiler_.compile(recipe(Unit::command("one.cu", source, nvcc_template()).with_entry("one")), {});
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message << compiled.error().log;
  write_text(directory_.path("one.cu"), source);
  ASSERT_EQ(std::system(("cd " + directory_.path() + " && nvcc -cubin -arch=sm_80 -o by_hand one.cu").c_str()), 0);
  EXPECT_EQ(compiled->artifact.bytes.view(), read_text(directory_.path("by_hand")));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path("tmp")));
}

TEST_F(NvccTest, OutputIsIndependentOfDirectory) {
  const Unit unit = Unit::command("k.cu",
                                  "namespace { __global__ void hidden(float* x) { x[0] = 1; } }\n"
                                  "void use(float* x) { hidden<<<1, 1>>>(x); }\n",
                                  nvcc_template());
  CommandCompiler elsewhere("nvcc", shared_digests(), {std::chrono::minutes(2), temporary("elsewhere")});
  const auto here = compiler_.compile(recipe(unit), {});
  const auto there = elsewhere.compile(recipe(unit), {});
  ASSERT_TRUE(here.has_value()) << here.error().message << here.error().log;
  ASSERT_TRUE(there.has_value());
  EXPECT_EQ(here->artifact.bytes, there->artifact.bytes);
  EXPECT_NE(here->artifact.bytes.view().find("hidden"), std::string::npos);
  EXPECT_EQ(here->artifact.dependency_set->encode(), there->artifact.dependency_set->encode());
}

TEST_F(NvccTest, CompilesPtxWithInMemoryHeadersAndOptions) {
  const Unit unit = Unit::command("k.cu",
                                  "#include <deep/h.h>\nextern \"C\" __global__ void one(float* x) { x[0] = H; }\n"
                                  "template <int N> __global__ void many(float* x) { x[0] = N; }\n"
                                  "template __global__ void many<4>(float*);\n",
                                  nvcc_template())
                        .with_header("deep/h.h", "#define H EIGHT\n")
                        .with_option("-DEIGHT=8")
                        .with_entry("one")
                        .with_entry("_Z4manyILi4EEvPf");
  const auto compiled = compiler_.compile(recipe(unit, {"sm_90", Form::Ptx}), {});
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message << compiled.error().log;
  EXPECT_EQ(compiled->uncacheable_reason, "");
  EXPECT_NE(compiled->artifact.bytes.view().find(".target sm_90"), std::string::npos);
  for (const DependencySet::Dependency& item : compiled->artifact.dependency_set->items) {
    EXPECT_EQ(item.name.find("deep"),
              item.state == DependencySet::State::Absent ? item.name.find("deep") : std::string::npos)
        << item.name;
  }
}

TEST_F(NvccTest, FailedUnitIsRetriedAfterHeaderChange) {
  make_roots();
  const Recipe made =
      recipe(with_roots("#include <h.h>\nextern \"C\" __global__ void scale(float* x) { x[0] = nothing; }\n"));
  EXPECT_TRUE(compiler_.should_retry(made));
  const auto rejected = compiler_.compile(made, {});
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, Code::CompileFailed);
  EXPECT_NE(rejected.error().log.find("nothing"), std::string::npos) << rejected.error().log;
  EXPECT_FALSE(compiler_.should_retry(made));
  write_text(directory_.path("first/h.h"), "#define FACTOR 1\n");
  EXPECT_TRUE(compiler_.should_retry(made));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path("tmp")));
}

TEST_F(NvccTest, TimeMacroIsNotCacheable) {
  const auto compiled = compiler_.compile(
      recipe(Unit::command("k.cu", "__device__ const char* when = __TIME__;\n", nvcc_template())), {});
  ASSERT_TRUE(compiled.has_value()) << compiled.error().log;
  EXPECT_NE(compiled->uncacheable_reason.find("__TIME__"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test
