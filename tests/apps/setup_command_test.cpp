// SPDX-License-Identifier: Apache-2.0
// kiln init and kiln trust add, as a new user runs them.
#include <filesystem>
#include <sstream>

#include "apps/bundle_program.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class Setup : public BundleProgram {
 protected:
  std::string config() const { return path("home/.config/kiln/config.toml"); }
  static std::string text_in(const std::string& file) { return read_text(file); }
};

TEST_F(Setup, InitWritesManifestThatCompiles) {
  fs::create_directory("project");
  fs::current_path(path("project"));
  write("project/k.cu", kSmallKernel);
  write("project/kernels/k.cu", kSmallKernel);
  write("project/main.cu", "__global__ void m() {}\nint main() { m<<<1, 1>>>(); }\n");  // only nvcc compiles it
  const Ran made = run({"init", "--json"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.json()["units"], (nlohmann::json{"k.cu", "kernels/k.cu"})) << made.out;
  const Ran compiled = run({"compile", "--manifest", "kiln.toml", "--arch", "sm_80", "--json"});
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_EQ(origins(compiled), Strings(2, "compiled"));
}

TEST_F(Setup, InitOverwritesNothing) {
  fs::create_directories(fs::path(config()).parent_path());
  write("home/.config/kiln/config.toml", "# mine\n");
  const std::string manifest = text_in("kiln.toml");
  const Ran again = run({"init"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.out.find("kiln.toml: exists, not changed"), std::string::npos) << again.out;
  EXPECT_EQ(text_in("kiln.toml"), manifest);
  EXPECT_EQ(text_in(config()), "# mine\n");
  fs::remove("kiln.toml");
  fs::create_symlink(path("nowhere"), "kiln.toml");  // not followed
  EXPECT_EQ(run({"init"}).exit_code, 0);
  EXPECT_FALSE(fs::exists("nowhere"));
}

TEST_F(Setup, ConfigurationOfInitHasEverySettingAsValidComment) {
  ASSERT_EQ(run({"init"}).exit_code, 0);
  std::istringstream lines(text_in(config()));
  std::string uncommented;
  std::size_t settings = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool is_setting =
        line.starts_with("# ") && line.find(" = ") != std::string::npos && line.find(' ', 2) == line.find(" = ");
    EXPECT_TRUE(line.empty() || line.front() == '#') << line;
    if (!is_setting) continue;
    uncommented += line.substr(2) + '\n';
    ++settings;
  }
  EXPECT_EQ(settings, run({"config", "show", "--json"}).json()["settings"].size());
  write("all.toml", uncommented);
  const Ran shown = run({"config", "show"}, {{"KILN_CONFIG", path("all.toml")}});
  EXPECT_EQ(shown.err, "") << uncommented;
}

TEST_F(Setup, TrustedKeyMakesSignedBundleUsable) {
  const std::string key = new_key("ci.key");
  create("app.kiln", {"--key", "ci.key"});
  const Variables never = {
      {"KILN_CACHE_DIR", path("other")}, {"KILN_COMPILE", "never"}, {"KILN_BUNDLES", path("app.kiln")}};
  const Ran before = run({"compile", "--manifest", "kiln.toml"}, never);
  EXPECT_EQ(before.exit_code, 4) << before.err;
  EXPECT_TRUE(before.says("kiln trust add")) << before.err;

  const Ran added = run({"trust", "add", key, "--namespace", "acme/vision"});
  ASSERT_EQ(added.exit_code, 0) << added.err;
  const std::string policy = path("home/.config/kiln/trust.toml");
  EXPECT_NE(added.out.find("set KILN_TRUST=" + policy), std::string::npos) << added.out;
  Variables trusting = never;
  trusting["KILN_TRUST"] = policy;
  const Ran after = run({"compile", "--manifest", "kiln.toml", "--json"}, trusting);
  EXPECT_EQ(after.exit_code, 0) << after.err;
  EXPECT_EQ(origins(after), Strings(2, "bundle"));
}

TEST_F(Setup, TrustAddUsesConfiguredPolicyAndReportsRepetition) {
  new_key("ci.key");
  const Variables configured = {{"KILN_TRUST", path("policy.toml")}};
  const Ran first = run({"trust", "add", "ci.key", "--namespace", "acme/*,tools", "--json"}, configured);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.json()["added"], true);
  EXPECT_EQ(first.json()["used"], true);
  EXPECT_EQ(first.json()["policy"], path("policy.toml"));
  const Ran second = run({"trust", "add", "ci.key", "--namespace", "tools", "--json"}, configured);
  EXPECT_EQ(second.json()["added"], false) << second.out;
  const Ran given = run({"trust", "add", "ci.key", "--namespace", "tools", "--policy", "here.toml"}, configured);
  EXPECT_EQ(given.exit_code, 0) << given.err;
  EXPECT_TRUE(fs::exists("here.toml"));
  const Strings long_names = {"acme/a-long-name-of-a-team/vision", "tools/of-another-team"};
  const Ran several = run({"trust", "add", "ci.key", "--namespace", long_names[0] + "," + long_names[1], "--json"});
  EXPECT_EQ(several.exit_code, 0) << several.err;
  EXPECT_EQ(several.json()["namespaces"].get<Strings>(), long_names);
}

TEST_F(Setup, TrustAddRejectsWrongArguments) {
  new_key("ci.key");
  EXPECT_EQ(run({"trust", "add", "ci.key"}).exit_code, 2);
  EXPECT_EQ(run({"trust", "add", "absent.key", "--namespace", "acme"}).exit_code, 1);
  EXPECT_EQ(run({"trust", "add", "ci.key", "--namespace", "Not Valid"}).exit_code, 2);
  fs::create_symlink(path("elsewhere"), "link.toml");
  EXPECT_EQ(run({"trust", "add", "ci.key", "--namespace", "acme", "--policy", "link.toml"}).exit_code, 4);
  EXPECT_FALSE(fs::exists("elsewhere"));
}

// A bundle or fleet that is configured but not effective.

TEST_F(Setup, MissNamesUnsignedBundleAndItsCommand) {
  create("app.kiln");
  const Variables never = {
      {"KILN_CACHE_DIR", path("other")}, {"KILN_COMPILE", "never"}, {"KILN_BUNDLES", path("app.kiln")}};
  const Ran ran = run({"compile", "b.cu", "-e", "b", "--arch", "sm_80"}, never);
  EXPECT_EQ(ran.exit_code, 4) << ran.err;
  EXPECT_TRUE(ran.says("error: b.cu for sm_80: unit 'b.cu' for sm_80 is in no cache tier")) << ran.err;
  EXPECT_TRUE(ran.says("not used: " + path("app.kiln") +
                       ": the bundle is not signed; sign it with 'kiln bundle create "
                       "--key' or set trust.unsigned (KILN_TRUST_UNSIGNED=1)"))
      << ran.err;
}

TEST_F(Setup, MissNamesTargetsOfBundle) {
  create("app.kiln");
  Variables never = {{"KILN_CACHE_DIR", path("other")}, {"KILN_COMPILE", "never"}, {"KILN_BUNDLES", path("app.kiln")}};
  never["KILN_TRUST_UNSIGNED"] = "1";
  const Ran ran = run({"compile", "b.cu", "-e", "b", "--arch", "sm_75"}, never);
  EXPECT_EQ(ran.exit_code, 4) << ran.err;
  EXPECT_TRUE(ran.says("has it for sm_80; add sm_75 with 'kiln bundle create --arch sm_75'")) << ran.err;
  write("c.cu", kSmallKernel);
  const Ran other = run({"compile", "c.cu", "--arch", "sm_80"}, never);
  EXPECT_TRUE(other.says("; fill the cache with 'kiln warm', or use a bundle that has the unit")) << other.err;
}

// Without a compiler the request has no key; the bundle is the reason all the same.
TEST_F(Setup, MissWithoutCompilerNamesTheBundleToo) {
  create("app.kiln");
  const Variables never = {{"KILN_CACHE_DIR", path("other")},
                           {"KILN_COMPILE", "never"},
                           {"KILN_NVRTC", path("nowhere.so")},
                           {"KILN_BUNDLES", path("app.kiln")}};
  const Ran ran = run({"compile", "b.cu", "-e", "b", "--arch", "sm_80"}, never);
  EXPECT_EQ(ran.exit_code, 3) << ran.err;
  // In the error itself: a warning about the bundle comes before it.
  EXPECT_TRUE(ran.says("(not used: " + path("app.kiln") + ": the bundle is not signed; sign it with")) << ran.err;
}

TEST_F(Setup, DoctorListsTargetsOfBundlesAndTheReasonOfRejection) {
  create("app.kiln");
  const auto bundles = [&](Variables variables) {
    variables["KILN_BUNDLES"] = path("app.kiln");
    return run({"doctor", "--json"}, variables).finding("bundles");
  };
  const auto used = bundles({{"KILN_TRUST_UNSIGNED", "1"}});
  EXPECT_EQ(used["state"], "ok") << used;
  EXPECT_EQ(used["details"][0]["state"], "acme/vision, epoch 3, unsigned, for sm_80");
  const auto rejected = bundles({});
  EXPECT_EQ(rejected["state"], "problem");
  EXPECT_NE(rejected["advice"].get<std::string>().find("sign it with 'kiln bundle create --key'"), std::string::npos)
      << rejected;
}

}  // namespace
}  // namespace kiln::test
