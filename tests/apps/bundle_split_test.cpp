// SPDX-License-Identifier: Apache-2.0
// kiln bundle split, kiln bundle oci --by-arch and kiln bundle pull.
#include <sys/stat.h>

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

  // Writes images and returns the variables for a skopeo that copies them. It fails for an architecture, after it has
  // written a file, if there is a file such as fail-sm_90.
  Variables with_skopeo() {
    EXPECT_EQ(run({"bundle", "oci", "app.kiln", "-o", "app.oci", "--by-arch"}, kUnsigned).exit_code, 0);
    EXPECT_EQ(run({"bundle", "split", "app.kiln", "-o", "parts"}, kUnsigned).exit_code, 0);
    for (const std::string name : {"sm_80", "sm_90"}) {
      EXPECT_EQ(run({"bundle", "oci", "parts/app." + name + ".kiln", "-o", name + ".oci"}, kUnsigned).exit_code, 0);
    }
    const std::string program = write("bin/skopeo",
                                      "#!/bin/sh\n"
                                      "for each in \"$@\"; do\n"
                                      "  case \"$each\" in\n"
                                      "    oci:*:latest) to=${each#oci:}; to=${to%:latest};;\n"
                                      "    oci:*) from=${each##*-};;\n"
                                      "  esac\n"
                                      "done\n"
                                      "echo partial > \"$to/oci-layout\"\n"
                                      "if [ -e fail-$from ]; then exit 1; fi\n"
                                      "cp -r $from.oci/. \"$to\"\n");
    fs::permissions(program, fs::perms::owner_all);
    Variables variables = kUnsigned;
    variables["PATH"] = path("bin") + ":/usr/bin:/bin";
    return variables;
  }
  Strings names(const std::string& directory) const {
    Strings all;
    for (const auto& entry : fs::directory_iterator(path(directory))) all.push_back(entry.path().filename());
    std::sort(all.begin(), all.end());
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

TEST_F(SplitProgram, PullThatFailedCanBeRepeated) {
  const Variables variables = with_skopeo();
  const Strings both = {"bundle", "pull", "oci:app.oci:latest", "-o", "new/all.oci", "--arch", "sm_80,sm_90"};
  write("fail-sm_90", "");
  const mode_t before = umask(022);
  const Ran failed = run(both, variables);
  EXPECT_EQ(failed.exit_code, 1) << failed.err;
  EXPECT_TRUE(failed.says("skopeo cannot copy oci:app.oci:latest-sm_90")) << failed.err;
  EXPECT_EQ(names("new"), Strings{}) << "neither one of two images nor a temporary directory";
  fs::remove(path("fail-sm_90"));
  fs::create_directories(path("new/all.oci.kiln-pull-killed/content/sm_80"));
  const Ran pulled = run(both, variables);
  umask(before);
  ASSERT_EQ(pulled.exit_code, 0) << pulled.err;
  EXPECT_EQ(names("new"), Strings{"all.oci"});
  EXPECT_EQ(targets("new/all.oci/sm_90"), (Strings{"a.cu sm_90", "b.cu sm_90"}));
  struct stat status;
  for (const char* name : {"new", "new/all.oci", "new/all.oci/sm_80"}) {
    ASSERT_EQ(stat(path(name).c_str(), &status), 0) << name;
    EXPECT_EQ(status.st_mode & 07777, 0755U) << name << ": programs of other users read it";
  }
  const Ran again = run(both, variables);
  EXPECT_EQ(again.exit_code, 2) << again.err;
  EXPECT_TRUE(again.says("new/all.oci is not an empty directory")) << again.err;
}

// An empty directory can be a mount point, which cannot be replaced.
TEST_F(SplitProgram, PullFillsExistingEmptyDirectory) {
  const Variables variables = with_skopeo();
  const Strings one = {"bundle", "pull", "oci:app.oci:latest", "-o", "here/", "--arch", "sm_90"};
  fs::create_directory(path("here"));
  struct stat before;
  ASSERT_EQ(stat(path("here").c_str(), &before), 0);
  write("fail-sm_90", "");
  EXPECT_EQ(run(one, variables).exit_code, 1);
  EXPECT_EQ(names("here"), Strings{});
  fs::remove(path("fail-sm_90"));
  fs::create_directories(path("here/.kiln-pull-killed/content"));  // left by a killed command
  const Ran pulled = run(one, variables);
  ASSERT_EQ(pulled.exit_code, 0) << pulled.err;
  EXPECT_EQ(names("here"), (Strings{"blobs", "index.json", "oci-layout"}));
  EXPECT_EQ(targets("here"), (Strings{"a.cu sm_90", "b.cu sm_90"}));
  struct stat after;
  ASSERT_EQ(stat(path("here").c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino) << "the directory itself stays";
}

}  // namespace
}  // namespace kiln::test
