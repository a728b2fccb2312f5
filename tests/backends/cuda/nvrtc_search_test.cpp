// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

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

  search.packages.own = directory_.path("site-packages");
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
  search.packages.own = directory_.path("site-packages");
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

TEST_F(NvrtcSearchOrder, UsesPackageOfActiveEnvironmentOnlyIfThereIsNoOther) {
  NvrtcSearch search;
  search.packages = {directory_.path("own"), {{directory_.path("active"), "VIRTUAL_ENV"}}};
  search.system_directories = {directory_.path("system")};
  EXPECT_FALSE(choose_nvrtc(search));
  const std::string active = place("active/nvidia/cuda_nvrtc/lib", 12, 9);
  EXPECT_EQ(choose_nvrtc(search)->path, active);
  EXPECT_EQ(choose_nvrtc(search)->found_via, "VIRTUAL_ENV");
  const std::string system = place("system", 12, 8);
  EXPECT_EQ(choose_nvrtc(search)->path, system);
  search.driver = CudaVersion{13, 0};
  EXPECT_EQ(choose_nvrtc(search)->path, system) << "the newest of the others";
  const std::string own = place("own/nvidia/cu13/lib", 13, 0);
  EXPECT_EQ(choose_nvrtc(search)->path, own);
  EXPECT_EQ(nvrtc_candidates(search).size(), 3U);
}

TEST_F(NvrtcSearchOrder, ListsEveryPlaceWithItsResult) {
  NvrtcSearch search;
  search.packages = {directory_.path("none"), {{directory_.path("active"), "VIRTUAL_ENV"}}};
  search.system_directories = {directory_.path("system"), directory_.path("empty"), directory_.path("missing")};
  fs::create_directories(directory_.path("empty"));
  place("active/nvidia/cu13/lib", 13, 4);
  place("system", 12, 8);
  std::vector<std::string> lines;
  for (const SearchedPlace& each : nvrtc_places(search)) {
    lines.push_back(each.found_by + " " + fs::relative(each.path, directory_.path()).string() + ": " + each.result);
  }
  EXPECT_EQ(lines,
            (std::vector<std::string>{
                "system system: has libnvrtc.so.12", "system empty: has no libnvrtc.so.13 or libnvrtc.so.12",
                "system missing: does not exist", "VIRTUAL_ENV active/nvidia/cu13/lib: has libnvrtc.so.13",
                "VIRTUAL_ENV active/nvidia/cuda_nvrtc/lib: does not exist", "package none: has no directory nvidia"}));
}

TEST_F(NvrtcSearchOrder, ListsSkippedDirectoriesWithTheReason) {
  NvrtcSearch search;
  search.packages.skipped = {{directory_.path("active"), "VIRTUAL_ENV", "other users can write to it"}};
  place("active/nvidia/cu13/lib", 13, 4);
  EXPECT_FALSE(choose_nvrtc(search));
  const std::vector<SearchedPlace> places = nvrtc_places(search);
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0].found_by, "VIRTUAL_ENV");
  EXPECT_EQ(places[0].path, directory_.path("active"));
  EXPECT_EQ(places[0].result, "skipped: other users can write to it");
}

class PackageSearch : public testing::Test {
 protected:
  // Creates a directory. Returns its path.
  std::string make(const std::string& name) const {
    fs::create_directories(directory_.path(name));
    return directory_.path(name);
  }

  // Returns the directories relative to that of the test, the own one first and skipped ones last.
  std::vector<std::string> of(const std::string& file, const std::string& environment = {}) const {
    const std::string root = directory_.path("");
    const PackageDirectories all =
        PackageDirectories::of(root + file, environment.empty() ? environment : root + environment);
    std::vector<std::string> found;
    if (!all.own.empty()) found.push_back("own " + all.own.substr(root.size()));
    for (const PackageDirectory& each : all.installed) {
      found.push_back(std::string(each.found_by) + " " + each.path.substr(root.size()));
    }
    for (const PackageDirectory& each : all.skipped) {
      EXPECT_FALSE(each.reason.empty());
      found.push_back("skipped " + each.path.substr(root.size()));
    }
    return found;
  }
  TemporaryDirectory directory_;
};

TEST_F(PackageSearch, IsNextToTheModuleAndTheProgramOfTheWheel) {
  const std::vector<std::string> expected = {"own env/lib/python3.12/site-packages"};
  make("env/lib/python3.12/site-packages/kiln");
  EXPECT_EQ(of("env/lib/python3.12/site-packages/kiln/_kiln.so"), expected);
  EXPECT_EQ(of("env/lib/python3.12/site-packages/kiln/bin/kiln"), expected);
  make("build/python/kiln");
  write_text(directory_.path("build/python/kiln/__init__.py"), "");
  EXPECT_EQ(of("build/python/kiln/_kiln.so"), std::vector<std::string>{"own build/python"});
}

TEST_F(PackageSearch, IsNotNextToOtherPrograms) {
  make("build/nvidia");
  make("kiln");
  EXPECT_TRUE(of("build/app").empty());
  EXPECT_TRUE(of("kiln/app").empty());
  EXPECT_TRUE(of("lib/libkiln.so").empty());
  make("opt/kiln/lib/python3.12/site-packages");
  EXPECT_EQ(of("opt/kiln/bin/kiln"), std::vector<std::string>{"prefix opt/kiln/lib/python3.12/site-packages"});
}

TEST_F(PackageSearch, SkipsEnvironmentsThatOtherUsersCanChange) {
  const std::string site = "env/lib/python3.12/site-packages";
  const std::vector<std::string> skipped = {"skipped " + site};
  make(site + "/nvidia");
  make(site + "/cuda");
  for (const std::string& name : {std::string("env"), std::string("env/lib"), site, site + "/nvidia", site + "/cuda"}) {
    for (const mode_t mode : {0775, 0757}) {
      ASSERT_EQ(chmod(directory_.path(name).c_str(), mode), 0);
      EXPECT_EQ(of("build/bin/kiln", "env"), skipped) << name;
      EXPECT_EQ(of("env/bin/kiln", "env"), skipped) << name;
    }
    ASSERT_EQ(chmod(directory_.path(name).c_str(), 0755), 0);
  }
  EXPECT_EQ(of("build/bin/kiln", "env"), std::vector<std::string>{"VIRTUAL_ENV " + site});
  if (geteuid() != 0) GTEST_SKIP() << "needs root to change the owner of directories";
  ASSERT_EQ(chown(directory_.path(site + "/cuda").c_str(), 12345, 12345), 0);
  EXPECT_EQ(of("build/bin/kiln", "env"), skipped);
}

TEST_F(PackageSearch, SkipsTheOwnDirectoryIfUsersWithoutAccessToKilnCanAddPackages) {
  const std::string module = "site-packages/kiln/_kiln.so";
  const std::vector<std::string> own = {"own site-packages"};
  const std::vector<std::string> skipped = {"skipped site-packages"};
  const std::string nvidia = make("site-packages/nvidia");
  const std::string package = make("site-packages/kiln");
  for (const std::string& path : {directory_.path("site-packages"), nvidia}) {
    ASSERT_EQ(chmod(path.c_str(), 0775), 0);
    EXPECT_EQ(of(module), own) << "the group can replace kiln too";
    ASSERT_EQ(chmod(path.c_str(), 01777), 0);
    EXPECT_EQ(of(module), skipped);
    ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  }
  if (geteuid() != 0) GTEST_SKIP() << "needs root to change the owner of directories";
  ASSERT_EQ(chown(nvidia.c_str(), 12345, 12345), 0);
  EXPECT_EQ(of(module), skipped);
  ASSERT_EQ(chown(package.c_str(), 12345, 12345), 0);
  EXPECT_EQ(of(module), own) << "kiln and NVRTC have the same owner";
}

TEST_F(PackageSearch, IsInThePrefixOfTheProgram) {
  fs::create_directories(directory_.path("usr/lib/python3.12/site-packages"));
  fs::create_directories(directory_.path("usr/lib/python3.13/dist-packages"));
  fs::create_directories(directory_.path("usr/lib/perl5/site-packages"));
  EXPECT_EQ(of("usr/bin/kiln"), (std::vector<std::string>{"prefix usr/lib/python3.12/site-packages",
                                                          "prefix usr/lib/python3.13/dist-packages"}));
}

TEST_F(PackageSearch, IsInTheActiveEnvironment) {
  make("env/lib/python3.12/site-packages/kiln");
  EXPECT_EQ(of("build/bin/kiln", "env"), std::vector<std::string>{"VIRTUAL_ENV env/lib/python3.12/site-packages"});
  EXPECT_EQ(of("env/bin/kiln", "env"), std::vector<std::string>{"prefix env/lib/python3.12/site-packages"});
  EXPECT_EQ(of("env/lib/python3.12/site-packages/kiln/bin/kiln", "env"),
            std::vector<std::string>{"own env/lib/python3.12/site-packages"});
  EXPECT_TRUE(of("build/bin/kiln", "removed").empty());
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
