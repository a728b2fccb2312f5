#include <gtest/gtest.h>

#include <filesystem>

#include "compile/nvjitlink_library.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class NvJitLinkSearchOrder : public testing::Test {
 protected:
  std::string place(const std::string& folder, const std::string& name) {
    fs::create_directories(folder_.path(folder));
    const std::string path = folder_.path(folder + "/" + name);
    spit(path, "library");
    return path;
  }
  std::string chosen() { return choose_nvjitlink("", search_).value_or(NvJitLinkCandidate{}).path; }

  TemporaryDirectory folder_;
  NvrtcSearch search_;
};

TEST_F(NvJitLinkSearchOrder, TheOneBesideTheChosenNvrtcComesFirstAndThenTheOrder) {
  search_.package = folder_.path("site-packages");
  search_.toolkits = {folder_.path("toolkit")};
  search_.system_folders = {folder_.path("system")};
  place("toolkit/lib64", "libnvrtc.so.12");
  EXPECT_EQ(chosen(), "");
  const std::string system = place("system", "libnvJitLink.so.12");
  EXPECT_EQ(chosen(), system);
  const std::string package = place("site-packages/nvidia/nvjitlink/lib", "libnvJitLink.so.12");
  EXPECT_EQ(chosen(), package);
  const std::string beside = place("toolkit/lib64", "libnvJitLink.so.12");
  EXPECT_EQ(chosen(), beside);
  EXPECT_EQ(choose_nvjitlink("", search_)->found_by, "nvrtc");
  EXPECT_EQ(choose_nvjitlink("", search_)->major, 12);
}

TEST_F(NvJitLinkSearchOrder, AnotherMajorThanNvrtcsIsPassedOver) {
  search_.toolkits = {folder_.path("toolkit")};
  search_.system_folders = {folder_.path("system")};
  search_.mapped = {place("mapped", "libnvJitLink.so.13")};
  place("toolkit/lib64", "libnvrtc.so.12");
  place("toolkit/lib64", "libnvJitLink.so.13");
  EXPECT_EQ(chosen(), "");
  const std::string system = place("system", "libnvJitLink.so.12");
  EXPECT_EQ(chosen(), system);
}

TEST_F(NvJitLinkSearchOrder, WithoutNvrtcAnyWillDo) {
  search_.system_folders = {folder_.path("system")};
  const std::string system = place("system", "libnvJitLink.so.12");
  EXPECT_EQ(chosen(), system);
  search_.mapped = {place("mapped", "libnvJitLink.so.13")};
  EXPECT_EQ(chosen(), search_.mapped[0]);
}

TEST_F(NvJitLinkSearchOrder, TheNamedOneIsTakenOrNone) {
  search_.mapped = {place("mapped", "libnvJitLink.so.13")};
  const std::string named = place("named", "libnvJitLink.so.12");
  EXPECT_EQ(choose_nvjitlink(named, search_)->path, named);
  EXPECT_FALSE(choose_nvjitlink(folder_.path("nothing"), search_));
}

}  // namespace
}  // namespace kiln::test
