// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/opencl_compiler.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

Unit saxpy() { return Unit::opencl("saxpy.cl", repository_text("examples/kernels/saxpy.cl")); }

Unit small() { return Unit::opencl("small.cl", "__kernel void k() {}"); }

Result<CompileResult> compiled(const Unit& unit) {
  OpenClCompiler compiler;
  return compiler.compile(recipe_for(compiler, unit, compiler.device().value().target), {});
}

// PoCL reads the directory for its temporary files once. Tests do not use the user's directory.
class PoclDirectory final : public ::testing::Environment {
 public:
  void SetUp() override { setenv("POCL_CACHE_DIR", directory_.path().c_str(), 1); }

 private:
  const TemporaryDirectory directory_;
};
[[maybe_unused]] const auto* const kPoclDirectory = ::testing::AddGlobalTestEnvironment(new PoclDirectory);

TEST(OpenClDevices, AreListedWithTheirProperties) {
  const auto devices = opencl_devices();
  ASSERT_TRUE(devices.has_value()) << devices.error().message;
  ASSERT_FALSE(devices->empty());
  for (const OpenClDeviceInfo& info : *devices) {
    EXPECT_EQ(info.target.form, Form::OpenClBinary);
    EXPECT_EQ(info.target.architecture.substr(info.target.architecture.find(':') + 1), info.device);
    EXPECT_FALSE(info.platform.empty() || info.driver.empty() || info.device_version.empty());
    EXPECT_GT(info.compute_units, 0u);
  }
  EXPECT_EQ(OpenClCompiler().device()->target, devices->front().target);
  EXPECT_EQ(OpenClCompiler(devices->back().target.architecture).device()->target, devices->back().target);
  const auto missing = OpenClCompiler("pocl:nothing").identity({});
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().message.find(devices->front().target.architecture), std::string::npos);
}

TEST(OpenClCompiler, ListsAllKernelsWithoutRequestedEntries) {
  const auto result = compiled(saxpy());
  ASSERT_TRUE(result.has_value()) << result.error().log;
  EXPECT_EQ(result->artifact.entries, (std::vector<EntryPoint>{{"saxpy", "saxpy"}, {"scale", "scale"}}));
}

TEST(OpenClCompiler, AppliesPreambleAndOptions) {
  const Unit unit = Unit::opencl("u.cl", "__kernel void NAME(__global T* x) { x[0] = VALUE; }")
                        .with_preamble("typedef int T;\n")
                        .with_options({"-DNAME=k", "-DVALUE=3"});
  const auto result = compiled(unit);
  ASSERT_TRUE(result.has_value()) << result.error().log;
  EXPECT_EQ(result->artifact.entries.at(0).name, "k");
  EXPECT_TRUE(result->artifact.dependency_set->empty());
}

TEST(OpenClCompiler, PrefersInMemoryHeadersToWorkingDirectory) {
  const TemporaryDirectory directory;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  std::ofstream("name.h") << "#define NAME from_disk\n";
  const Unit unit = Unit::opencl("u.cl", "#include \"sub/outer.h\"\n__kernel void NAME() {}")
                        .with_header("sub/outer.h", "#include \"name.h\"\n")
                        .with_header("name.h", "#define NAME from_memory\n");
  const auto result = compiled(unit);
  std::filesystem::current_path(before);
  ASSERT_TRUE(result.has_value()) << result.error().log;
  EXPECT_EQ(result->artifact.entries.at(0).name, "from_memory");
  EXPECT_EQ(result->uncacheable_reason, "");
}

TEST(OpenClCompiler, IncludeFromWorkingDirectoryIsNotCacheable) {
  const TemporaryDirectory directory;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  std::ofstream("name.h") << "#define NAME from_disk\n";
  const Unit unit = Unit::opencl("u.cl", "#include \"name.h\"\n__kernel void NAME() {}");
  const auto result = compiled(unit);
  std::filesystem::current_path(before);
  ASSERT_TRUE(result.has_value()) << result.error().log;
  EXPECT_EQ(result->artifact.entries.at(0).name, "from_disk");  // PoCL did read it from there
  EXPECT_NE(result->uncacheable_reason.find("name.h"), std::string::npos);
}

TEST(OpenClCompiler, RecipeOfAnotherCompilerIsNotCacheable) {
  OpenClCompiler compiler;
  Recipe recipe = recipe_for(compiler, small(), compiler.device()->target);
  EXPECT_TRUE(compiler.is_self_contained(recipe));
  recipe.compiler.digest = {};
  const auto result = compiler.compile(recipe, {});
  ASSERT_TRUE(result.has_value());
  EXPECT_NE(result->uncacheable_reason, "");
}

TEST(OpenClCompiler, RejectsIncludeDirectories) {
  const auto result = compiled(small().with_option("-I/usr/include"));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, Code::Unsupported);
}

TEST(OpenClCompiler, UnknownOptionIsCompileError) {
  const auto result = compiled(small().with_option("-no-such-option"));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, Code::CompileFailed);
  EXPECT_NE(result.error().log.find("-no-such-option"), std::string::npos) << result.error().log;
}

TEST(OpenClCompiler, LogNamesUnitInsteadOfTemporaryFile) {
  const auto result = compiled(Unit::opencl("broken.cl", "int a;\n__kernel void k() { x; }\n__kernel void l() { y; }"));
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().log.find("broken.cl:2:"), std::string::npos) << result.error().log;
  EXPECT_NE(result.error().log.find("broken.cl:3:"), std::string::npos) << result.error().log;
  EXPECT_EQ(result.error().log.find("tempfile"), std::string::npos) << result.error().log;
}

TEST(OpenClCompiler, LogContainsWarningsOfSuccessfulBuild) {
  const auto result = compiled(Unit::opencl("u.cl", "#warning look here\n__kernel void k() {}"));
  ASSERT_TRUE(result.has_value()) << result.error().log;
  EXPECT_NE(result->artifact.metadata.log.find("look here"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test
