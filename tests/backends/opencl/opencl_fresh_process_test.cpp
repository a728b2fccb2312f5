// SPDX-License-Identifier: Apache-2.0
// A separate program, because a process is fresh only as long as neither it nor its parent has opened OpenCL.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "backends/opencl/opencl_compiler.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/forked.hpp"
#include "support/processes/scoped_env.hpp"

namespace kiln::test {
namespace {

Result<CompileResult> compile_something() {
  OpenClCompiler compiler;
  const Unit unit = Unit::opencl("something.cl", "__kernel void k(__global int* x) { x[get_global_id(0)] = 1; }");
  return compiler.compile(recipe_for(compiler, unit, compiler.device().value().target), {});
}

std::size_t files_named(const std::string& directory, const std::string& part) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    count += entry.path().filename().string().find(part) != std::string::npos;
  }
  return count;
}

// Runs `body` in a process that has not opened OpenCL yet and returns its output.
template <class Body>
std::string in_fresh_process(Body body) {
  Forked child([&](const Forked::Side& side) { side.say(body()); });
  return child.line(std::chrono::seconds(60));
}

TEST(FreshOpenClProcess, CheckForInstalledDriverOpensNothing) {
  EXPECT_EQ(in_fresh_process([] {
              const TemporaryDirectory empty;
              const bool installed = opencl_installed().has_value();
              setenv("OCL_ICD_VENDORS", empty.path().c_str(), 1);
              OpenClCompiler compiler;
              const auto identity = compiler.identity({});
              if (identity.has_value() || identity.error().code != Code::Unavailable) return std::string("no error");
              for (const std::string& path : mapped_libraries()) {
                if (path.find("OpenCL") != std::string::npos || path.find("pocl") != std::string::npos) return path;
              }
              return std::string(installed ? "installed, then not" : "not installed");
            }),
            "installed, then not");
}

TEST(OpenClInstallation, PoclAloneIsRecognizedByIcdFiles) {
  const TemporaryDirectory vendors;
  ScopedEnv place("OCL_ICD_VENDORS", vendors.path().c_str());
  EXPECT_FALSE(opencl_is_pocl_only()) << "there is no driver";
  write_text(vendors.path("pocl.icd"), "/usr/lib/libpocl.so.2.10.0\n");
  EXPECT_TRUE(opencl_is_pocl_only());
  ScopedEnv devices("POCL_DEVICES", "cuda");
  EXPECT_FALSE(opencl_is_pocl_only()) << "its devices can be GPUs";
  devices.set(nullptr);
  ScopedEnv more("OCL_ICD_FILENAMES", "libnvidia-opencl.so.1");
  EXPECT_FALSE(opencl_is_pocl_only()) << "there is a further driver";
  more.set(nullptr);
  write_text(vendors.path("nvidia.icd"), "libnvidia-opencl.so.1");
  EXPECT_FALSE(opencl_is_pocl_only());
  write_text(vendors.path("nvidia.icd"), std::string(5000, 'x'));
  EXPECT_FALSE(opencl_is_pocl_only()) << "a file that is too long names no driver";
  place.set(vendors.path("pocl.icd").c_str());
  EXPECT_TRUE(opencl_is_pocl_only()) << "the loaders accept a file, too";
  place.set("libpocl.so.2.10.0");
  EXPECT_TRUE(opencl_is_pocl_only());
  place.set("libnvidia-opencl.so.1");
  EXPECT_FALSE(opencl_is_pocl_only());
}

TEST(FreshOpenClProcess, DisablesPoclCacheAndRestoresEnvironment) {
  const TemporaryDirectory cache;
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(in_fresh_process([&] {
                unsetenv("POCL_KERNEL_CACHE");
                setenv("POCL_CACHE_DIR", cache.path().c_str(), 1);
                for (int i = 0; i < 2; ++i) {
                  const auto result = compile_something();
                  if (!result) return result.error().message + result.error().log;
                }
                return std::string(std::getenv("POCL_KERNEL_CACHE") == nullptr ? "built" : "changed the environment");
              }),
              "built");
    EXPECT_EQ(files_named(cache.path(), "program.bc"), 0u);
    EXPECT_EQ(files_named(cache.path(), ".so"), 0u);
  }
}

TEST(FreshOpenClProcess, RespectsUserSettingOfPoclCache) {
  const TemporaryDirectory cache;
  EXPECT_EQ(in_fresh_process([&] {
              setenv("POCL_KERNEL_CACHE", "1", 1);
              setenv("POCL_CACHE_DIR", cache.path().c_str(), 1);
              if (!compile_something()) return std::string("failed");
              return std::string(std::getenv("POCL_KERNEL_CACHE"));
            }),
            "1");
  EXPECT_GT(files_named(cache.path(), "program.bc"), 0u);
}

}  // namespace
}  // namespace kiln::test
