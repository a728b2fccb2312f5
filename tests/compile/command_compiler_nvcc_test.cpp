#include <gtest/gtest.h>
#include <sys/stat.h>

#include "compile/command_compiler.hpp"
#include "support/files.hpp"
#include "support/recipes.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

FileDigests& shared_digests() {
  static FileDigests shared{""};
  return shared;
}

// Files that changed less than a tick of the file system's clock before a compile are not trusted.
void let_files_settle() { std::this_thread::sleep_for(std::chrono::milliseconds(60)); }

class NvccTest : public ::testing::Test {
 protected:
  void make_roots() {
    for (const char* name : {"first", "second root#", "third"}) std::filesystem::create_directory(folder_.path(name));
    spit(folder_.path("second root#/h.h"), "#include \"beside.h\"\n#define FACTOR BESIDE\n");
    spit(folder_.path("third/beside.h"), "#define BESIDE 3\n");
    let_files_settle();
  }
  Unit with_roots(const std::string& source) const {
    return Unit::command("k.cu", source, nvcc_template())
        .include_root(folder_.path("first"))
        .include_root(folder_.path("second root#"))
        .include_root(folder_.path("third"));
  }
  Recipe recipe(const Unit& unit, const Target& target = Target::sm(80)) { return recipe_for(compiler_, unit, target); }
  std::string temporary(const char* name) const {
    std::filesystem::create_directory(folder_.path(name));
    return folder_.path(name);
  }

  TemporaryDirectory folder_;
  CommandCompiler compiler_{"nvcc", shared_digests(), {std::chrono::minutes(2), temporary("tmp")}};
};

TEST_F(NvccTest, ItsClosureSeesEditedShadowingAndAskedForHeadersAndNoOthers) {
  make_roots();
  const Recipe made = recipe(with_roots("#include <h.h>\n#if __has_include(<maybe.h>)\n#error no\n#endif\n"
                                        "extern \"C\" __global__ void scale(float* x) { x[0] *= FACTOR; }\n")
                                 .entry("scale"));
  const auto compiled = compiler_.compile(made);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message << compiled.error().log;
  ASSERT_EQ(compiled->not_cacheable, "");
  const Closure& closure = *compiled->artifact.closure;
  const auto mismatch = [&] {
    const auto found = check(closure, made.places(), shared_digests());
    return found ? found->text : std::string();
  };
  EXPECT_EQ(mismatch(), "");
  EXPECT_FALSE(closure.located);
  EXPECT_EQ(closure, Closure::decode(closure.encode()).value());

  const std::string before = slurp(folder_.path("third/beside.h"));
  spit(folder_.path("third/beside.h"), "#define BESIDE 4\n");
  EXPECT_NE(mismatch().find("beside.h changed"), std::string::npos) << mismatch();
  spit(folder_.path("third/beside.h"), before);
  EXPECT_EQ(mismatch(), "");
  for (const char* shadow : {"first/h.h", "first/beside.h", "second root#/beside.h", "first/maybe.h", "third/maybe.h",
                             "first/cuda_runtime.h", "first/vector_types.h"}) {
    spit(folder_.path(shadow), "");
    EXPECT_NE(mismatch(), "") << shadow;
    std::filesystem::remove(folder_.path(shadow));
    EXPECT_EQ(mismatch(), "");
  }
  spit(folder_.path("first/of_no_interest.h"), "");
  EXPECT_EQ(mismatch(), "");
}

TEST_F(NvccTest, GivesWhatNvccGivesByHandAndLeavesNothingBehind) {
  const std::string source = "extern \"C\" __global__ void one(float* x) { x[0] = 1; }\n";
  const auto compiled = compiler_.compile(recipe(Unit::command("one.cu", source, nvcc_template()).entry("one")));
  ASSERT_TRUE(compiled.ok()) << compiled.error().message << compiled.error().log;
  spit(folder_.path("one.cu"), source);
  ASSERT_EQ(std::system(("cd " + folder_.path() + " && nvcc -cubin -arch=sm_80 -o by_hand one.cu").c_str()), 0);
  EXPECT_EQ(compiled->artifact.bytes.view(), slurp(folder_.path("by_hand")));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path("tmp")));
}

TEST_F(NvccTest, GivesTheSameBytesInEveryFolderAlsoOfWhatIsInAnonymousNamespaces) {
  const Unit unit = Unit::command("k.cu",
                                  "namespace { __global__ void hidden(float* x) { x[0] = 1; } }\n"
                                  "void use(float* x) { hidden<<<1, 1>>>(x); }\n",
                                  nvcc_template());
  CommandCompiler elsewhere("nvcc", shared_digests(), {std::chrono::minutes(2), temporary("elsewhere")});
  const auto here = compiler_.compile(recipe(unit));
  const auto there = elsewhere.compile(recipe(unit));
  ASSERT_TRUE(here.ok()) << here.error().message << here.error().log;
  ASSERT_TRUE(there.ok());
  EXPECT_EQ(here->artifact.bytes, there->artifact.bytes);
  EXPECT_NE(here->artifact.bytes.view().find("hidden"), std::string::npos);
  EXPECT_EQ(here->artifact.closure->encode(), there->artifact.closure->encode());
}

TEST_F(NvccTest, MakesPtxWithHeadersFromMemoryAndFurtherOptions) {
  const Unit unit = Unit::command("k.cu",
                                  "#include <deep/h.h>\nextern \"C\" __global__ void one(float* x) { x[0] = H; }\n"
                                  "template <int N> __global__ void many(float* x) { x[0] = N; }\n"
                                  "template __global__ void many<4>(float*);\n",
                                  nvcc_template())
                        .header("deep/h.h", "#define H EIGHT\n")
                        .option("-DEIGHT=8")
                        .entry("one")
                        .entry("_Z4manyILi4EEvPf");
  const auto compiled = compiler_.compile(recipe(unit, {"sm_90", Form::Ptx}));
  ASSERT_TRUE(compiled.ok()) << compiled.error().message << compiled.error().log;
  EXPECT_EQ(compiled->not_cacheable, "");
  EXPECT_NE(compiled->artifact.bytes.view().find(".target sm_90"), std::string::npos);
  for (const Closure::Item& item : compiled->artifact.closure->items) {
    EXPECT_EQ(item.name.find("deep"), item.state == Closure::State::Absent ? item.name.find("deep") : std::string::npos)
        << item.name;
  }
}

TEST_F(NvccTest, ARefusedUnitIsWorthAnotherTryWhenItsHeadersChanged) {
  make_roots();
  const Recipe made =
      recipe(with_roots("#include <h.h>\nextern \"C\" __global__ void scale(float* x) { x[0] = nothing; }\n"));
  EXPECT_TRUE(compiler_.worth_another_try(made));
  const auto refused = compiler_.compile(made);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::CompileFailed);
  EXPECT_NE(refused.error().log.find("nothing"), std::string::npos) << refused.error().log;
  EXPECT_FALSE(compiler_.worth_another_try(made));
  spit(folder_.path("first/h.h"), "#define FACTOR 1\n");
  EXPECT_TRUE(compiler_.worth_another_try(made));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path("tmp")));
}

TEST_F(NvccTest, DoesNotKeepWhatHasTheTimeOfTheCompileInIt) {
  const auto compiled =
      compiler_.compile(recipe(Unit::command("k.cu", "__device__ const char* when = __TIME__;\n", nvcc_template())));
  ASSERT_TRUE(compiled.ok()) << compiled.error().log;
  EXPECT_NE(compiled->not_cacheable.find("__TIME__"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test
