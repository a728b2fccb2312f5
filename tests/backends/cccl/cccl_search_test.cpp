// SPDX-License-Identifier: Apache-2.0
// The search for the CCCL library and the choice among several, in copies of the real package.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "backends/cccl/cccl_compiler.hpp"
#include "support/fixtures/cccl_packages.hpp"
#include "support/fixtures/cccl_tree.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/nvrtc12_tree.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

class CcclSearch : public testing::Test {
 protected:
  void SetUp() override {
    if (cccl_package().empty()) GTEST_SKIP() << "no cuda-cccl (tools/setup.sh)";
  }
  static std::string build_of(const Result<CcclCandidate>& chosen) {
    const std::filesystem::path path = chosen ? chosen->path : "";
    return path.parent_path().parent_path().filename().string();
  }

  TemporaryDirectory directory_;
};

TEST_F(CcclSearch, LibraryIsForCudaVersionOfNvrtc) {
  EXPECT_EQ(build_of(choose_cccl(cccl_package(), 12)), "cu12");
  EXPECT_EQ(build_of(choose_cccl(cccl_package(), 13)), "cu13");
  EXPECT_EQ(build_of(choose_cccl(cccl_package())), "cu13");
  FileDigestCache digests{std::string()};
  CcclCompiler compiler(cccl_package(), make_nvrtc12_tree(directory_.path("cuda")), digests);
  const auto identity = compiler.identity({});
  ASSERT_TRUE(identity.has_value()) << identity.error().message;
  EXPECT_NE(identity->path.find("/cu12/"), std::string::npos) << identity->path;
}

TEST_F(CcclSearch, OnlyCompilingNeedsHeaders) {
  const std::string site = directory_.path("site");
  const CcclTree tree(cccl_package(), site, CcclTree::Headers::Linked);
  std::filesystem::remove(site + "/cuda/cccl/headers");
  const auto chosen = choose_cccl(site);
  ASSERT_TRUE(chosen.has_value());
  EXPECT_NE(chosen->unusable_reason().find("has no headers"), std::string::npos) << chosen->unusable_reason();
  EXPECT_EQ(chosen->uncallable_reason(), "");
}

TEST_F(CcclSearch, VersionOfUnknownReleaseIsThatOfItsOnlyPackage) {
  const std::string site = directory_.path("site");
  const CcclTree tree(cccl_package(), site, CcclTree::Headers::Linked);
  tree.change_build_id();
  std::filesystem::create_directory(site + "/cuda_cccl-9.8.7.dist-info");
  EXPECT_EQ(choose_cccl(site)->version, "9.8.7");
  std::filesystem::create_directory(site + "/cuda_cccl-9.8.6.dist-info");
  EXPECT_EQ(choose_cccl(site)->version, "unknown") << "nothing states which one the library is of";
}

}  // namespace
}  // namespace kiln::test
