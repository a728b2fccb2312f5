// kiln bundle split, kiln bundle oci --by-arch and kiln bundle pull.
#include <filesystem>

#include "apps/bundle_program.hpp"
#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class SplitProgram : public BundleProgram {
 protected:
  void SetUp() override {
    BundleProgram::SetUp();
    create("app.kiln", {"--arch", "sm_80,sm_90"}, kUnsigned);
  }

  Strings targets(const std::string& bundle) {
    Strings all;
    const auto json = run({"bundle", "ls", bundle, "--json"}, kUnsigned).json();
    for (const auto& artifact : json["artifacts"])
      all.push_back(artifact["unit"].get<std::string>() + ' ' + artifact["target"].get<std::string>());
    return all;
  }
};

TEST_F(SplitProgram, SplitWritesBundleForEachArchitecture) {
  const Ran ran = run({"bundle", "split", "app.kiln", "-o", "parts", "--json"}, kUnsigned);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto json = ran.json();
  ASSERT_EQ(json["parts"].size(), 2U) << ran.out;
  EXPECT_EQ(json["parts"][0]["architecture"], "sm_80");
  EXPECT_EQ(json["parts"][0]["path"], "parts/app.sm_80.kiln");
  EXPECT_EQ(json["parts"][1]["namespace"], "acme/vision");
  EXPECT_EQ(json["parts"][1]["epoch"], 3);
  EXPECT_EQ(targets("parts/app.sm_80.kiln"), (Strings{"a.cu sm_80", "b.cu sm_80"}));
  EXPECT_EQ(targets("parts/app.sm_90.kiln"), (Strings{"a.cu sm_90", "b.cu sm_90"}));
  EXPECT_EQ(run({"bundle", "verify", "parts/app.sm_90.kiln"}, kUnsigned).exit_code, 0);
  EXPECT_LT(fs::file_size("parts/app.sm_90.kiln"), fs::file_size("app.kiln"));
  ASSERT_EQ(
      run({"bundle", "merge", "parts/app.sm_90.kiln", "parts/app.sm_80.kiln", "-o", "back.kiln"}, kUnsigned).exit_code,
      0);
  EXPECT_EQ(read_text("back.kiln"), read_text("app.kiln")) << "the parts are the whole bundle";
  // A device of 8.9 uses the part for 8.0.
  Variables bundled = kUnsigned;
  bundled["KILN_BUNDLES"] = path("parts/app.sm_80.kiln");
  EXPECT_EQ(origins(run({"compile", "b.cu", "-e", "b", "--arch", "sm_89", "--json"}, bundled)), Strings{"bundle"});
  const Ran text = run({"bundle", "split", "app.kiln", "-o", "parts"}, kUnsigned);
  EXPECT_NE(text.out.find("a node with one kind of device needs "), std::string::npos) << text.out;
}

TEST_F(SplitProgram, PartsAreSignedWithGivenKeyOnly) {
  const std::string key = new_key("kiln.key");
  const Ran denied = run({"bundle", "split", "app.kiln", "-o", "parts", "--key", "kiln.key"}, kUnsigned);
  EXPECT_EQ(denied.exit_code, 4) << "an unsigned bundle is not signed here: " << denied.err;
  EXPECT_FALSE(fs::exists("parts"));
  create("signed.kiln", {"--arch", "sm_80,sm_90", "--key", "kiln.key"});
  const Variables trusting = {{"KILN_TRUST", policy_for(key, "acme/*")}};
  const Ran ran = run({"bundle", "split", "signed.kiln", "-o", "parts", "--key", "kiln.key", "--json"}, trusting);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_TRUE(ran.json()["parts"][0]["signer"].is_string()) << ran.out;
  EXPECT_EQ(run({"bundle", "verify", "parts/signed.sm_80.kiln"}, trusting).exit_code, 0);
}

TEST_F(SplitProgram, PullCopiesOnlyTheImageForTheArchitecture) {
  const Ran wrong = run({"bundle", "oci", "app.kiln", "-o", "no.oci", "--key", "kiln.key"}, kUnsigned);
  EXPECT_EQ(wrong.exit_code, 2) << "--key is for --by-arch: " << wrong.err;
  const Ran ran =
      run({"bundle", "oci", "app.kiln", "-o", "app.oci", "--by-arch", "--reference", "v3", "--json"}, kUnsigned);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.json()["parts"][1]["path"], "v3-sm_90") << ran.out;
  const Ran several = run({"bundle", "ls", "app.oci"}, kUnsigned);
  EXPECT_EQ(several.exit_code, 1);
  EXPECT_TRUE(several.says("has 2 images (v3-sm_80, v3-sm_90)")) << several.err;
  EXPECT_EQ(run({"bundle", "pull", "app.oci", "-o", "x"}, kUnsigned).exit_code, 2) << "no name of an image";
  const Ran none = run({"bundle", "pull", "oci:app.oci:v3", "-o", "x", "--arch", "sm_75"}, kUnsigned);
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_TRUE(none.says("for sm_75 (it has: sm_80, sm_90)")) << none.err;
  if (!fs::exists("/usr/bin/skopeo")) GTEST_SKIP() << "needs skopeo";
  const Ran pulled = run(
      {"bundle", "pull", "oci:app.oci:v3", "-o", "here.oci", "--arch", "sm_89", "--json", "--", "--insecure-policy"},
      kUnsigned);
  ASSERT_EQ(pulled.exit_code, 0) << pulled.err;
  EXPECT_EQ(pulled.json()["parts"][0]["image"], "oci:app.oci:v3-sm_80");
  EXPECT_EQ(targets("here.oci"), (Strings{"a.cu sm_80", "b.cu sm_80"}));
  Variables with_devices = kUnsigned;
  with_devices["LD_LIBRARY_PATH"] = FakeCudaDriver::directory();
  with_devices["KILN_FAKE_DRIVER_DEVICES"] = "sm_80,sm_90,sm_90";
  const Ran both = run({"bundle", "pull", "oci:app.oci:v3", "-o", "all.oci", "--", "--insecure-policy"}, with_devices);
  ASSERT_EQ(both.exit_code, 0) << both.err;
  EXPECT_NE(both.out.find("KILN_BUNDLES=all.oci/sm_80:all.oci/sm_90 uses them"), std::string::npos) << both.out;
}

}  // namespace
}  // namespace kiln::test
