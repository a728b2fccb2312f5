// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include "apps/bundle_program.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

TEST_F(BundleProgram, LsListsArtifactsAndSigner) {
  create("app.kiln");
  const Ran text = run({"bundle", "ls", "app.kiln"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_EQ(text.out.find("app.kiln: acme/vision, epoch 3, unsigned, 2 artifacts\nUNIT"), 0U) << text.out;
  EXPECT_TRUE(text.says("would not be used on this machine: the bundle is not signed")) << text.err;
  EXPECT_EQ(run({"bundle", "ls", "app.kiln"}, kUnsigned).err, "");
  const auto json = run({"bundle", "ls", "app.kiln", "--json"}).json();
  ASSERT_EQ(json["artifacts"].size(), 2U);
  const auto& a = json["artifacts"][0];
  EXPECT_EQ(a["unit"], "a.cu");
  EXPECT_EQ(a["target"], "sm_80");
  EXPECT_EQ(a["compiler"], "nvrtc");
  EXPECT_EQ(a["entries"]["a"], "a");
  EXPECT_TRUE(std::any_of(a["files"].begin(), a["files"].end(), [](const auto& file) {
    return file["name"] == "a.h" && file["place"] == "root 0" && file["state"] == "read";
  })) << a["files"].dump();
}

TEST_F(BundleProgram, VerifyReportsIntegrityAndTrust) {
  const std::string ours = new_key("ours.key");
  const std::string other = new_key("other.key");
  create("unsigned.kiln");
  const std::string signer = create("app.kiln", {"--key", "ours.key"}).json()["signer"];

  const Ran unsigned_one = run({"bundle", "verify", "unsigned.kiln"});
  EXPECT_EQ(unsigned_one.exit_code, 4);
  EXPECT_TRUE(
      unsigned_one.says("unsigned.kiln is not trusted and its contents were not read: the bundle is not signed"))
      << unsigned_one.err;
  const auto unread = run({"bundle", "verify", "unsigned.kiln", "--json"}).json()["bundles"][0];
  EXPECT_TRUE(unread["intact"].is_null()) << unread.dump();
  EXPECT_EQ(unread["trusted"], false);
  const Ran looked = run({"bundle", "verify", "unsigned.kiln", "--untrusted"});
  EXPECT_EQ(looked.exit_code, 4);
  EXPECT_TRUE(looked.says("unsigned.kiln is intact but not trusted: the bundle is not signed")) << looked.err;
  EXPECT_EQ(run({"bundle", "verify", "unsigned.kiln"}, kUnsigned).exit_code, 0);

  const Ran with_key = run({"bundle", "verify", "app.kiln", "--public-key", ours});
  EXPECT_EQ(with_key.exit_code, 0) << with_key.err;
  EXPECT_NE(with_key.out.find("signed by " + signer.substr(0, 16)), std::string::npos) << with_key.out;
  EXPECT_EQ(run({"bundle", "verify", "app.kiln", "--public-key", other}, kUnsigned).exit_code, 4);
  EXPECT_EQ(run({"bundle", "verify", "app.kiln", "--public-key", "nonsense"}).exit_code, 2);
  EXPECT_EQ(run({"bundle", "verify", "app.kiln"}).exit_code, 4);
  EXPECT_EQ(run({"bundle", "verify", "app.kiln"}, {{"KILN_TRUST", policy_for(ours, "acme/*")}}).exit_code, 0);
  EXPECT_EQ(run({"bundle", "verify", "app.kiln"}, {{"KILN_TRUST", policy_for(ours, "zeta")}}).exit_code, 4);

  std::string bytes = read_text("unsigned.kiln");
  bytes[bytes.size() - 100] ^= 1;
  write("damaged.kiln", bytes);
  const Ran corrupt = run({"bundle", "verify", "unsigned.kiln", "damaged.kiln", "--json"}, kUnsigned);
  EXPECT_EQ(corrupt.exit_code, 1) << corrupt.out;
  const auto bundles = corrupt.json()["bundles"];
  ASSERT_EQ(bundles.size(), 2U);
  EXPECT_EQ(bundles[0]["intact"], true);
  EXPECT_EQ(bundles[1]["intact"], false);
  EXPECT_TRUE(corrupt.says("damaged.kiln")) << corrupt.err;
}

TEST_F(BundleProgram, InvalidBundleIsRejectedWithPathAndReason) {
  create("app.kiln");
  write("cut.kiln", read_text("app.kiln").substr(0, 5000));
  for (const char* file : {"cut.kiln", "kiln.toml", "absent.kiln", "include"}) {
    for (const char* command : {"ls", "verify"}) {
      const Ran ran = run({"bundle", command, file}, kUnsigned);
      EXPECT_EQ(ran.exit_code, 1) << command << ' ' << file << ran.err;
      EXPECT_TRUE(ran.says(file)) << ran.err;
    }
  }
}

TEST_F(BundleProgram, ExtractAcceptsUnitNameOrKeyPrefix) {
  create("app.kiln", {"--arch", "sm_80,sm_90"});
  const Ran one = run({"bundle", "extract", "app.kiln", "a.cu", "--arch", "sm_90", "-o", "a.cubin", "--json"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(fs::file_size("a.cubin"), one.json()["bytes"].get<std::uint64_t>());
  ASSERT_EQ(run({"compile", "--manifest", "kiln.toml", "--arch", "sm_90", "-o", "out/"}).exit_code, 0);
  EXPECT_EQ(read_text("a.cubin"), read_text("out/a.sm_90.cubin"));
  const std::string key = one.json()["key"];
  EXPECT_EQ(run({"bundle", "extract", "app.kiln", key.substr(0, 16), "-o", "-"}).out, read_text("a.cubin"));

  const Ran several = run({"bundle", "extract", "app.kiln", "a.cu", "-o", "x"});
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_TRUE(several.says("add --arch")) << several.err;
  const Ran other = run({"bundle", "extract", "app.kiln", "a.cu", "--arch", "sm_75", "-o", "x"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_TRUE(other.says("sm_80, sm_90")) << other.err;
  EXPECT_EQ(run({"bundle", "extract", "app.kiln", "c.cu", "-o", "x"}).exit_code, 1);
  EXPECT_FALSE(fs::exists("x"));
}

TEST_F(BundleProgram, DiffListsChangesAndReasons) {
  create("old.kiln", {"--arch", "sm_80,sm_90"});
  const Ran equal = run({"bundle", "diff", "old.kiln", "old.kiln"}, kUnsigned);
  EXPECT_EQ(equal.exit_code, 0) << equal.out;
  EXPECT_EQ(equal.out, "0 added, 0 removed, 0 changed, 4 the same\n");

  create("later.kiln", {"--arch", "sm_80,sm_90", "--epoch", "4"});
  const Ran head = run({"bundle", "diff", "old.kiln", "later.kiln"}, kUnsigned);
  EXPECT_EQ(head.exit_code, 0) << "the artifacts are the same";
  EXPECT_NE(head.out.find("epoch 3, unsigned -> acme/vision, epoch 4"), std::string::npos) << head.out;

  write("include/a.h", "#define A 2\n");
  write("b.cu", "extern \"C\" __global__ void b(float* x) { x[threadIdx.x] *= 3; }\n");
  create("new.kiln", {"--arch", "sm_80,compute_80"});
  const Ran ran = run({"bundle", "diff", "old.kiln", "new.kiln"}, kUnsigned);
  EXPECT_EQ(ran.exit_code, 1);
  for (const char* part : {"changed  a.cu for sm_80: header a.h (root 0) changed\n",
                           "changed  b.cu for sm_80: source, options or entries\n", "removed  a.cu for sm_90\n",
                           "added    a.cu for compute_80\n", "2 added, 2 removed, 2 changed, 0 the same\n"}) {
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << "\n" << ran.out;
  }
  const auto json = run({"bundle", "diff", "old.kiln", "new.kiln", "--json"}, kUnsigned).json();
  EXPECT_EQ(json["equal"], false);
  EXPECT_EQ(json["differences"].size(), 6U);

  write("include/a.h", "#define A 2 // and a word\n");
  create("word.kiln", {"--arch", "sm_80,compute_80"});
  const Ran word = run({"bundle", "diff", "new.kiln", "word.kiln"}, kUnsigned);
  EXPECT_EQ(word.exit_code, 1);
  EXPECT_NE(word.out.find("a.cu for compute_80: header a.h (root 0) changed (same bytes)"), std::string::npos)
      << word.out;
}

TEST_F(BundleProgram, MergePrefersFirstBundleAndListsSkippedArtifacts) {
  create("first.kiln");
  write("include/a.h", "#define A 2\n");
  create("second.kiln", {"--arch", "sm_80,sm_90", "--epoch", "7"});
  const Ran ran = run({"bundle", "merge", "first.kiln", "second.kiln", "-o", "all.kiln"}, kUnsigned);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("skipped: a.cu for sm_80 of second.kiln"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("4 artifacts, acme/vision, epoch 7, unsigned"), std::string::npos) << ran.out;
  for (const char* bundle : {"first.kiln", "all.kiln"}) {
    ASSERT_EQ(run({"bundle", "extract", bundle, "a.cu", "--arch", "sm_80", "-o", std::string(bundle) + ".a"}).exit_code,
              0);
  }
  EXPECT_EQ(read_text("first.kiln.a"), read_text("all.kiln.a"));

  ASSERT_EQ(run({"bundle", "merge", "first.kiln", "-o", "alone.kiln"}, kUnsigned).exit_code, 0);
  EXPECT_EQ(read_text("alone.kiln"), read_text("first.kiln")) << "merging a single bundle does not change it";

  create("maths.kiln", {"--namespace", "acme/maths"});
  const Ran mixed = run({"bundle", "merge", "first.kiln", "maths.kiln", "-o", "x.kiln"}, kUnsigned);
  EXPECT_EQ(mixed.exit_code, 2);
  EXPECT_TRUE(mixed.says("--namespace")) << mixed.err;
  EXPECT_EQ(run({"bundle", "merge", "first.kiln", "maths.kiln", "-o", "x.kiln", "--namespace", "acme"}).exit_code, 0);
}

TEST_F(BundleProgram, MergeWithKeyRejectsUnsignedAndUntrustedBundles) {
  const std::string ours = new_key("ours.key");
  new_key("other.key");
  create("unsigned.kiln");
  create("ours.kiln", {"--key", "ours.key"});
  create("other.kiln", {"--key", "other.key"});
  const auto merge = [&](const char* input, const Variables& variables) {
    return run({"bundle", "merge", input, "-o", "x.kiln", "--key", "ours.key", "--json"}, variables);
  };
  const Ran unsigned_merge = merge("unsigned.kiln", kUnsigned);
  EXPECT_EQ(unsigned_merge.exit_code, 4) << "permission to use an unsigned bundle does not allow signing it";
  EXPECT_TRUE(unsigned_merge.says("the bundle is not signed")) << unsigned_merge.err;
  EXPECT_EQ(merge("other.kiln", kUnsigned).exit_code, 4);
  EXPECT_FALSE(fs::exists("x.kiln"));
  const Ran own = merge("ours.kiln", {});
  EXPECT_EQ(own.exit_code, 0) << own.err;
  EXPECT_EQ(run({"bundle", "verify", "x.kiln", "--public-key", ours}).exit_code, 0);
}

TEST_F(BundleProgram, ExplainListsProfileUnitsMissingFromBundle) {
  create("app.kiln", {"--arch", "sm_80,compute_80"});
  const std::string unknown_unit(64, '7');
  write("profile.jsonl", asked("app.kiln", "a.cu", "sm_80") + asked("app.kiln", "a.cu", "sm_86") +
                             asked("app.kiln", "a.cu", "sm_90") + asked("app.kiln", "a.cu", "sm_75") +
                             line("gone.cu", unknown_unit, "sm_80") + line("b.cu", std::string(64, '8'), "sm_80"));
  const Strings command = {"explain", "--profile", "profile.jsonl", "--bundle", "app.kiln"};
  const Ran ran = run(command, kUnsigned);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const Strings lines = {"a.cu     sm_80  served   exact, by app.kiln",
                         "a.cu     sm_86  served   sm_80 for sm_86, by app.kiln",
                         "a.cu     sm_90  served   compute_80 (PTX) for sm_90, by app.kiln",
                         "a.cu     sm_75  missing  app.kiln has it for ",
                         "gone.cu  sm_80  missing  the unit is unknown",
                         "b.cu     sm_80  missing  the unit with this name has a different source, options, entries "
                         "or number of include directories",
                         "3 missing of 6 requested"};
  for (const std::string& text : lines) EXPECT_NE(ran.out.find(text), std::string::npos) << text << "\n" << ran.out;

  Strings check = command;
  check.insert(check.end(), {"--check", "--json"});
  const Ran checked = run(check, kUnsigned);
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_EQ(checked.json()["missing"], 3);
  EXPECT_EQ(checked.json()["results"][1]["built_for"], "sm_80");

  write("profile.jsonl", asked("app.kiln", "b.cu", "sm_80"));
  const Ran configured = run({"explain", "--profile", "profile.jsonl", "--check"},
                             {{"KILN_TRUST_UNSIGNED", "1"}, {"KILN_BUNDLES", path("app.kiln")}});
  EXPECT_EQ(configured.exit_code, 0) << configured.err;
  EXPECT_NE(configured.out.find("0 missing of 1 requested"), std::string::npos) << configured.out;
  EXPECT_EQ(run({"explain", "--profile", "profile.jsonl"}).exit_code, 2);
  EXPECT_EQ(run({"explain", "a.cu", "--profile", "profile.jsonl", "--bundle", "app.kiln"}).exit_code, 2);
}

TEST_F(BundleProgram, CompileAndExplainUseBundlesFirstAndReportBuiltTarget) {
  create("app.kiln");
  const Variables bundled = {{"KILN_TRUST_UNSIGNED", "1"},
                             {"KILN_BUNDLES", path("app.kiln")},
                             {"KILN_COMPILE", "never"},
                             {"KILN_CACHE_DIR", path("empty")}};
  const Ran compiled = run({"compile", "b.cu", "-e", "b", "--arch", "sm_86", "--json"}, bundled);
  EXPECT_EQ(origins(compiled), Strings{"bundle"}) << compiled.err;
  EXPECT_EQ(compiled.json()["results"][0]["built_for"], "sm_80");
  const Ran explained = run({"explain", "b.cu", "-e", "b", "--arch", "sm_86", "--check"}, bundled);
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_EQ(explained.out.find("b.cu for sm_86: hit in bundle, for sm_80 by nvrtc"), 0U) << explained.out;

  Variables rejected = bundled;
  rejected.erase("KILN_TRUST_UNSIGNED");
  const Ran warned = run({"compile", "b.cu", "-e", "b", "--arch", "sm_86"}, rejected);
  EXPECT_EQ(warned.exit_code, 4);
  EXPECT_TRUE(warned.says("warning: ") && warned.says("[bundle_rejected]")) << warned.err;
}

TEST_F(BundleProgram, LayoutCanBeReadAsBundle) {
  create("app.kiln");
  const Ran ran = run({"bundle", "oci", "app.kiln", "-o", "app.oci", "--reference", "v3"}, kUnsigned);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("skopeo copy --all --preserve-digests oci:app.oci:v3"), std::string::npos) << ran.out;
  EXPECT_TRUE(fs::exists("app.oci/oci-layout"));
  EXPECT_EQ(run({"bundle", "verify", "app.oci"}, kUnsigned).exit_code, 0);
  EXPECT_EQ(run({"bundle", "diff", "app.kiln", "app.oci"}, kUnsigned).exit_code, 0);
  EXPECT_EQ(run({"bundle", "merge", "app.oci", "-o", "back.kiln"}, kUnsigned).exit_code, 0);
  EXPECT_EQ(read_text("back.kiln"), read_text("app.kiln"));
  EXPECT_NE(run({"bundle", "oci", "app.kiln", "-o", "app.oci"}, kUnsigned).exit_code, 0)
      << "the output directory is not empty";
}

TEST_F(BundleProgram, HelpAndCompletionsListBundleCommands) {
  const Ran help = run({"help", "bundle"});
  EXPECT_EQ(help.exit_code, 0);
  const Ran completions = run({"completions", "bash"});
  for (const char* command : {"create", "ls", "verify", "extract", "diff", "merge", "split", "oci", "pull"}) {
    EXPECT_NE(help.out.find(command), std::string::npos) << command;
    EXPECT_NE(completions.out.find(command), std::string::npos) << command;
    const Ran each = run({"bundle", command, "--help"});
    EXPECT_EQ(each.exit_code, 0);
    EXPECT_NE(each.out.find("Example"), std::string::npos) << each.out;
    EXPECT_NE(each.out.find("--json"), std::string::npos) << each.out;
  }
  EXPECT_TRUE(run({"bundle", "creat", "kiln.toml"}).says("did you mean 'create'?"));
}

}  // namespace
}  // namespace kiln::test
