// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "backends/cuda/nvjitlink_library.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class NvJitLinkSearchOrder : public testing::Test {
 protected:
  std::string place(const std::string& directory, const std::string& name) {
    fs::create_directories(directory_.path(directory));
    const std::string path = directory_.path(directory + "/" + name);
    write_text(path, "library");
    return path;
  }
  std::string chosen() { return choose_nvjitlink("", search_).value_or(NvJitLinkCandidate{}).path; }

  TemporaryDirectory directory_;
  NvrtcSearch search_;
};

TEST_F(NvJitLinkSearchOrder, PrefersLibraryNextToNvrtcThenSearchOrder) {
  search_.packages.own = directory_.path("site-packages");
  search_.toolkits = {directory_.path("toolkit")};
  search_.system_directories = {directory_.path("system")};
  place("toolkit/lib64", "libnvrtc.so.12");
  EXPECT_EQ(chosen(), "");
  const std::string system = place("system", "libnvJitLink.so.12");
  EXPECT_EQ(chosen(), system);
  const std::string package = place("site-packages/nvidia/nvjitlink/lib", "libnvJitLink.so.12");
  EXPECT_EQ(chosen(), package);
  const std::string beside = place("toolkit/lib64", "libnvJitLink.so.12");
  EXPECT_EQ(chosen(), beside);
  EXPECT_EQ(choose_nvjitlink("", search_)->found_via, "nvrtc");
  EXPECT_EQ(choose_nvjitlink("", search_)->major, 12);
}

TEST_F(NvJitLinkSearchOrder, SkipsOtherMajorVersionThanNvrtc) {
  search_.toolkits = {directory_.path("toolkit")};
  search_.system_directories = {directory_.path("system")};
  search_.mapped = {place("mapped", "libnvJitLink.so.13")};
  place("toolkit/lib64", "libnvrtc.so.12");
  place("toolkit/lib64", "libnvJitLink.so.13");
  EXPECT_EQ(chosen(), "");
  const std::string system = place("system", "libnvJitLink.so.12");
  EXPECT_EQ(chosen(), system);
}

TEST_F(NvJitLinkSearchOrder, AcceptsAnyVersionWithoutNvrtc) {
  search_.system_directories = {directory_.path("system")};
  const std::string system = place("system", "libnvJitLink.so.12");
  EXPECT_EQ(chosen(), system);
  search_.mapped = {place("mapped", "libnvJitLink.so.13")};
  EXPECT_EQ(chosen(), search_.mapped[0]);
}

TEST_F(NvJitLinkSearchOrder, UsesOnlyTheConfiguredLibrary) {
  search_.mapped = {place("mapped", "libnvJitLink.so.13")};
  const std::string named = place("named", "libnvJitLink.so.12");
  EXPECT_EQ(choose_nvjitlink(named, search_)->path, named);
  EXPECT_FALSE(choose_nvjitlink(directory_.path("nothing"), search_));
}

}  // namespace
}  // namespace kiln::test
