// SPDX-License-Identifier: Apache-2.0
#include "apps/fleet_program.hpp"
#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {
namespace {

class Warm : public FleetProgram {};

nlohmann::json summary(const Ran& ran) { return ran.json()["summary"]; }

TEST_F(Warm, FetchesUnitsCompiledByAnotherHost) {
  const Ran first = run({"warm", "--from", "kiln.toml"}, ci("a"));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.out.find("\n2 of 2 in "), std::string::npos) << "after a line for each unit: " << first.out;
  EXPECT_NE(first.out.find(": 2 compiled; 2 published\n"), std::string::npos) << first.out;
  EXPECT_EQ(first.err, "") << "a pipe gets only the result";

  const Ran second = run({"warm", "--from", "kiln.toml", "--json"}, host("b", {{"KILN_COMPILE", "never"}}));
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(summary(second)["hits"]["remote"], 2) << second.out;
  EXPECT_EQ(summary(second)["compiled"], 0);
  EXPECT_EQ(second.json()["kind"], "manifest");
  EXPECT_EQ(second.json()["results"].size(), 2U);

  std::filesystem::rename(path("shared"), path("gone"));
  const Ran again = run({"warm", "--from", "kiln.toml", "--json"}, host("b", {{"KILN_COMPILE", "never"}}));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(summary(again)["hits"]["disk"], 2) << "fetched entries are cached on this host: " << again.out;
}

TEST_F(Warm, MissingUnitIsAnErrorIfCompilingIsDisabled) {
  publish();
  const Ran ran =
      run({"warm", "--from", "kiln.toml", "--arch", "sm_80,sm_90", "--json"}, host("b", {{"KILN_COMPILE", "never"}}));
  EXPECT_EQ(ran.exit_code, 4) << ran.err;
  EXPECT_EQ(summary(ran)["hits"]["remote"], 2);
  EXPECT_EQ(summary(ran)["failed"], 2);
  EXPECT_EQ(ran.json()["errors"].size(), 2U);
}

TEST_F(Warm, ReaderPublishesNothing) {
  const Ran ran = run({"warm", "--from", "kiln.toml", "--json"}, host("b"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(summary(ran)["compiled"], 2);
  EXPECT_EQ(summary(ran)["published"], 0);
  EXPECT_EQ(summary(ran)["not_published"], 0);
}

TEST_F(Warm, ReportsWhyNothingIsPublished) {
  const auto problem = [](const Ran& ran) {
    const auto problems = ran.json()["problems"];
    return problems.empty() ? std::string() : problems.back().get<std::string>();
  };
  const Ran reader = run({"warm", "--from", "kiln.toml", "--json"}, host("b"));
  ASSERT_EQ(reader.exit_code, 0) << reader.err;
  EXPECT_NE(problem(reader).find("no signing key"), std::string::npos) << reader.out;
  EXPECT_TRUE(reader.says("kiln key generate")) << reader.err;

  Variables wrong = ci("c");
  wrong["KILN_REMOTE_SIGNING_KEY"] = path("absent.key");
  const Ran no_file = run({"warm", "--from", "kiln.toml", "--json"}, wrong);
  EXPECT_NE(problem(no_file).find("nothing was published to " + path("shared")), std::string::npos) << no_file.out;
  EXPECT_NE(problem(no_file).find("absent.key"), std::string::npos) << no_file.out;

  // What is in the cache of this host is not compiled again, so that it is not published.
  const Ran late = run({"warm", "--from", "kiln.toml", "--json"}, ci("c"));
  EXPECT_EQ(summary(late)["published"], 0);
  EXPECT_NE(problem(late).find("2 artifacts are in the cache of this host but not in"), std::string::npos) << late.out;
  EXPECT_NE(problem(late).find("kiln warm --from kiln.toml"), std::string::npos) << late.out;

  ASSERT_EQ(summary(run({"warm", "--from", "kiln.toml", "--json"}, ci("d")))["published"], 2);
  EXPECT_EQ(problem(run({"warm", "--from", "kiln.toml", "--json"}, ci("c"))), "") << "now the store has them";
}

TEST_F(Warm, ReportsStoreThatTakesNoUploads) {
  Variables wrong = ci("b");
  wrong["KILN_REMOTE"] = write("file", "") + "/below";
  const Ran ran = run({"warm", "--from", "kiln.toml", "--json"}, wrong);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(summary(ran)["published"], 0) << ran.out;
  EXPECT_TRUE(ran.says("of 2 artifacts were not published to " + path("file/below"))) << ran.err;
  EXPECT_TRUE(ran.says("with 'kiln doctor', the permissions of the store and the log of its server")) << ran.err;
  EXPECT_FALSE(ran.says(path("file/below") + ": " + path("file/below") + ": ")) << "once: " << ran.err;
}

TEST_F(Warm, ReportsBundleThatIsNotUsed) {
  create("app.kiln");
  const Ran ran = run({"warm", "--from", "kiln.toml", "--json"}, {{"KILN_BUNDLES", path("app.kiln")}});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  ASSERT_EQ(ran.json()["problems"].size(), 1U) << ran.out;
  EXPECT_NE(ran.json()["problems"][0].get<std::string>().find("the bundle is not signed"), std::string::npos);
  const Ran gone = run({"warm", "--from", "kiln.toml", "--json"}, {{"KILN_BUNDLES", path("absent.kiln")}});
  EXPECT_EQ(gone.json()["problems"].size(), 1U) << gone.out;
  EXPECT_TRUE(gone.says("there is no bundle " + path("absent.kiln") + "; check the path, or create it with"))
      << gone.err;
}

TEST_F(Warm, ProfileUsesBundlesAndManifestAndReportsUnmatched) {
  create("app.kiln");
  write("profile.jsonl", asked("app.kiln", "a.cu", "sm_80") + asked("app.kiln", "b.cu", "sm_90") +
                             line("gone.cu", std::string(64, '7'), "sm_80"));
  const Variables bundled = {{"KILN_BUNDLES", path("app.kiln")}, {"KILN_TRUST_UNSIGNED", "1"}};
  const Ran ran = run({"warm", "--from", "profile.jsonl", "--json"}, host("b", bundled));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.json()["kind"], "profile");
  EXPECT_EQ(summary(ran)["hits"]["bundle"], 1) << ran.out;
  EXPECT_EQ(summary(ran)["compiled"], 1) << "the bundle has b.cu only for sm_80, so the manifest is used for sm_90";
  EXPECT_EQ(summary(ran)["unmatched"], 1);
  EXPECT_TRUE(ran.says("gone.cu for sm_80 (key 777777777777)")) << ran.err;
}

TEST_F(Warm, ProfileWithoutManifestFails) {
  write("empty/x", "");
  write("profile.jsonl", line("gone.cu", std::string(64, '7'), "sm_80"));
  std::filesystem::current_path(path("empty"));
  const Ran none = run({"warm", "--from", path("profile.jsonl")}, host("b"));
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_TRUE(none.says("--manifest")) << none.err;
  EXPECT_NE(none.out.find("0 of 1 in "), std::string::npos) << none.out;
}

TEST_F(Warm, TrustedBundleIsAddedToFetchedEntries) {
  create("app.kiln", {"--key", "ci.key"});
  const Ran first = run({"warm", "--from", "app.kiln", "--json"}, host("b"));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(summary(first)["stored"], 2);
  EXPECT_EQ(summary(run({"warm", "--from", "app.kiln", "--json"}, host("b")))["already_cached"], 2);
  const Ran compiled = run({"warm", "--from", "kiln.toml", "--json"}, host("b", {{"KILN_COMPILE", "never"}}));
  EXPECT_EQ(summary(compiled)["hits"]["disk"], 2) << compiled.err;

  EXPECT_EQ(run({"warm", "--from", "app.kiln", "--arch", "sm_75"}, host("c")).exit_code, 3);
  create("unsigned.kiln");
  EXPECT_EQ(run({"warm", "--from", "unsigned.kiln"}, host("c")).exit_code, 4);
  const Ran alone = run({"warm", "--from", "app.kiln"}, host("c", {{"KILN_REMOTE", ""}}));
  EXPECT_EQ(alone.exit_code, 2);
  EXPECT_TRUE(alone.says("KILN_BUNDLES=app.kiln")) << alone.err;
}

std::string replaced(std::string text, const std::string& old, const std::string& now) {
  return text.replace(text.find(old), old.size(), now);
}

// The environment of a host with these devices.
Variables on_devices(const std::string& devices, Variables variables) {
  variables["KILN_DRIVER"] = FakeCudaDriver::path();
  variables["KILN_FAKE_DRIVER_DEVICES"] = devices;
  return variables;
}

TEST_F(Warm, HostFetchesOnlyWhatItsDevicesCanUse) {
  ASSERT_EQ(run({"warm", "--from", "kiln.toml", "--arch", "sm_80,sm_90,compute_75"}, ci("a")).exit_code, 0);
  write("kiln.toml", replaced(read_text(path("kiln.toml")), R"(["sm_80"])", R"(["sm_80", "sm_90", "compute_75"])"));
  const auto warmed = [&](const std::string& name, const std::string& devices, Strings more = {}) {
    more.insert(more.begin(), {"warm", "--from", "kiln.toml", "--json"});
    const Ran ran = run(more, on_devices(devices, host(name, {{"KILN_COMPILE", "never"}})));
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return ran;
  };
  const Ran hopper = warmed("b", "sm_90");
  EXPECT_EQ(summary(hopper)["hits"]["remote"], 4) << "sm_90, and PTX, which the driver compiles: " << hopper.out;
  EXPECT_EQ(summary(hopper)["not_for_devices"], 2);
  EXPECT_EQ(summary(warmed("c", "sm_80,sm_90"))["not_for_devices"], 0);
  const Ran minor = warmed("d", "sm_86");
  EXPECT_EQ(summary(minor)["not_for_devices"], 2) << "a device of 8.6 runs code for 8.0: " << minor.out;
  // --arch selects others.
  const Ran others = warmed("e", "sm_90", {"--arch", "sm_80"});
  EXPECT_EQ(summary(others)["hits"]["remote"], 2) << others.out;
  EXPECT_EQ(summary(others)["not_for_devices"], 0);
  const Ran text = run({"warm", "--from", "kiln.toml"}, on_devices("sm_90", host("f")));
  EXPECT_NE(text.out.find("4 of 4 in "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(", 2 not for the devices of this host"), std::string::npos) << text.out;
  // A host without devices, such as a node that prepares an image, fetches everything.
  EXPECT_EQ(summary(run({"warm", "--from", "kiln.toml", "--json"}, host("g")))["hits"]["remote"], 6);
}

TEST_F(Warm, PublisherWithDevicesPublishesForAllArchitectures) {
  const Ran ran = run({"warm", "--from", "kiln.toml", "--json"}, on_devices("sm_90", ci("a")));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(summary(ran)["published"], 2) << ran.out;
  EXPECT_EQ(summary(ran)["not_for_devices"], 0);
}

TEST_F(Warm, ReportsThatNothingIsForTheDevices) {
  publish();
  const Ran ran = run({"warm", "--from", "kiln.toml", "--json"}, on_devices("sm_90", host("b")));
  EXPECT_EQ(ran.exit_code, 0) << "other nodes of the fleet can use them: " << ran.err;
  EXPECT_EQ(summary(ran)["not_for_devices"], 2) << ran.out;
  EXPECT_EQ(ran.json()["results"].size(), 0U);
  EXPECT_TRUE(ran.says("kiln.toml has nothing for the devices of this host (sm_90); ")) << ran.err;
  EXPECT_EQ(ran.json()["problems"].back().get<std::string>().find("kiln.toml has nothing for"), 0U) << ran.out;
}

TEST_F(Warm, DevicesSelectIfTheManifestNamesNoArchitecture) {
  publish();
  write("kiln.toml", replaced(read_text(path("kiln.toml")), "architectures = [\"sm_80\"]\n", ""));
  const Ran ran = run({"warm", "--from", "kiln.toml", "--json"}, on_devices("sm_80", host("b")));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(summary(ran)["hits"]["remote"], 2) << ran.out;
  EXPECT_EQ(run({"warm", "--from", "kiln.toml"}, host("c")).exit_code, 2) << "without devices it must be named";
}

TEST_F(Warm, ProfileAndBundleAreLimitedToTheDevices) {
  create("app.kiln", {"--key", "ci.key", "--arch", "sm_80,sm_90"});
  write("profile.jsonl", asked("app.kiln", "a.cu", "sm_80") + asked("app.kiln", "b.cu", "sm_90"));
  const Variables bundled = host("b", {{"KILN_BUNDLES", path("app.kiln")}, {"KILN_COMPILE", "never"}});
  const Ran profile = run({"warm", "--from", "profile.jsonl", "--json"}, on_devices("sm_90", bundled));
  ASSERT_EQ(profile.exit_code, 0) << profile.err;
  EXPECT_EQ(summary(profile)["hits"]["bundle"], 1) << profile.out;
  EXPECT_EQ(summary(profile)["not_for_devices"], 1);

  const Ran bundle = run({"warm", "--from", "app.kiln", "--json"}, on_devices("sm_90", host("c")));
  ASSERT_EQ(bundle.exit_code, 0) << bundle.err;
  EXPECT_EQ(summary(bundle)["stored"], 2) << bundle.out;
  EXPECT_EQ(summary(bundle)["not_for_devices"], 2);
}

TEST_F(Warm, ArgumentErrorsAreReportedFirst) {
  EXPECT_EQ(run({"warm"}).exit_code, 2);
  EXPECT_EQ(run({"warm", "--from", "absent.toml"}).exit_code, 1);
  EXPECT_EQ(run({"warm", "--from", "absent.jsonl"}).exit_code, 1);
  EXPECT_EQ(run({"warm", "--from", "absent.kiln"}, host("b")).exit_code, 1);
  EXPECT_EQ(run({"warm", "--from", "kiln.toml", "--manifest", "kiln.toml"}).exit_code, 2);
}

}  // namespace
}  // namespace kiln::test
