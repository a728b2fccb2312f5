#include <gtest/gtest.h>

#include <filesystem>

#include "backends/cuda/nvrtc_library.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class NvrtcSearchOrder : public testing::Test {
 protected:
  // Creates a directory that looks like one with this NVRTC.
  std::string place(const std::string& directory, int major, int minor) {
    fs::create_directories(directory_.path(directory));
    const std::string path = directory_.path(directory + "/libnvrtc.so." + std::to_string(major));
    write_text(path, "library");
    write_text(directory_.path(directory + "/libnvrtc-builtins.so." + CudaVersion{major, minor}.text()), "builtins");
    return path;
  }
  TemporaryDirectory directory_;
};

TEST_F(NvrtcSearchOrder, ChoosesFirstInOrderWithoutDriver) {
  NvrtcSearch search;
  search.system_directories = {directory_.path("system")};
  const std::string system = place("system", 13, 1);
  EXPECT_EQ(choose_nvrtc(search)->path, system);
  EXPECT_EQ(choose_nvrtc(search)->version, (CudaVersion{13, 1}));

  search.toolkits = {directory_.path("toolkit")};
  const std::string toolkit = place("toolkit/lib64", 12, 8);
  EXPECT_EQ(choose_nvrtc(search)->path, toolkit);

  search.package = directory_.path("site-packages");
  const std::string package = place("site-packages/nvidia/cu13/lib", 13, 4);
  EXPECT_EQ(choose_nvrtc(search)->path, package);

  search.mapped = {place("mapped", 12, 2), "/usr/lib/libc.so.6"};
  EXPECT_EQ(choose_nvrtc(search)->path, search.mapped[0]);

  search.explicit_path = place("explicit", 12, 0);
  EXPECT_EQ(choose_nvrtc(search)->path, search.explicit_path);
  EXPECT_EQ(nvrtc_candidates(search).size(), 5U);
}

// Otherwise a directory that is temporarily inaccessible would result in another compiler and in other keys.
TEST_F(NvrtcSearchOrder, InaccessibleBuiltinsStillCount) {
  NvrtcSearch search;
  search.explicit_path = place("toolkit", 13, 2);
  const std::string builtins = directory_.path("toolkit/libnvrtc-builtins.so.13.2");
  fs::remove(builtins);
  fs::create_symlink(builtins, builtins);  // a link to itself
  EXPECT_EQ(choose_nvrtc(search)->builtins, builtins);
  EXPECT_EQ(choose_nvrtc(search)->version, (CudaVersion{13, 2}));
}

TEST_F(NvrtcSearchOrder, ChoosesNewestThatDriverSupports) {
  NvrtcSearch search;
  search.package = directory_.path("site-packages");
  search.toolkits = {directory_.path("toolkit")};
  search.system_directories = {directory_.path("system")};
  const std::string newest = place("site-packages/nvidia/cu13/lib", 13, 4);
  const std::string older = place("toolkit/lib64", 13, 0);
  const std::string oldest = place("system", 12, 8);
  const struct {
    CudaVersion driver;
    std::string expected;
  } rows[] = {{{13, 5}, newest}, {{13, 4}, newest}, {{13, 1}, older}, {{12, 9}, oldest}, {{11, 8}, newest}};
  for (const auto& row : rows) {
    search.driver = row.driver;
    const auto chosen = choose_nvrtc(search);
    ASSERT_TRUE(chosen);
    EXPECT_EQ(chosen->path, row.expected) << row.driver.text();
    EXPECT_FALSE(chosen->reason.empty());
  }
  search.explicit_path = newest;
  search.driver = CudaVersion{12, 9};
  EXPECT_EQ(choose_nvrtc(search)->found_via, "explicit");
}

TEST_F(NvrtcSearchOrder, FindsNothingInEmptySearch) { EXPECT_FALSE(choose_nvrtc(NvrtcSearch{})); }

TEST(DriverVersion, ParsesCudaVersionFromKernelModuleBranch) {
  const auto of = [](const std::string& number) {
    return driver_cuda_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + number + "  Sun Jul 27\n");
  };
  EXPECT_EQ(of("580.65.06"), (CudaVersion{13, 0}));
  EXPECT_EQ(of("570.86"), (CudaVersion{12, 8}));
  EXPECT_EQ(of("470.1"), (CudaVersion{11, 8}));
  EXPECT_FALSE(driver_cuda_version("").has_value());
}

}  // namespace
}  // namespace kiln::test
