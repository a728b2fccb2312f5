// SPDX-License-Identifier: Apache-2.0
// The setup of docs/how-to/share-a-cache.md with a shared directory.
#include "apps/fleet_program.hpp"
#include "support/servers/nginx.hpp"

namespace kiln::test {
namespace {

class FleetSetup : public FleetProgram {
 protected:
  void SetUp() override {
    FleetProgram::SetUp();
    const std::string authority = new_key("authority.key");
    const std::string host_key = new_key("host.key");
    const Ran certified = run({"key", "certify", host_key, "--key", "authority.key", "--namespace", "acme/live",
                               "--days", "30", "-o", "host.cert"});
    EXPECT_EQ(certified.exit_code, 0) << certified.err;
    const std::string keys = "[[key]]\npublic = \"" + ci_public_ + "\"\nnamespaces = [\"acme/vision\"]\n" +
                             "[[key]]\npublic = \"" + authority + "\"\nnamespaces = [\"acme/live\"]\n";
    write("releases.toml", keys);
    write("policy.toml", keys + "[[live]]\nnamespace = \"acme/live\"\ndays = 7\n");
    live_ = {{"KILN_REMOTE_SIGNING_KEY", path("host.key")}, {"KILN_REMOTE_CERTIFICATE", path("host.cert")}};
  }

  Variables live_;
};

TEST_F(FleetSetup, LiveEntriesAreFetchedIfPolicyListsNamespace) {
  const Ran compiled = run({"warm", "--from", "kiln.toml", "--json"}, host("a", live_));
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_EQ(compiled.json()["summary"]["published"], 2) << compiled.out;

  const Variables reading = {{"KILN_COMPILE", "never"}};
  const Ran fetched = run({"warm", "--from", "kiln.toml", "--json"}, host("b", reading));
  EXPECT_EQ(fetched.exit_code, 0) << fetched.err;
  EXPECT_EQ(fetched.json()["summary"]["hits"]["remote"], 2);

  const Variables strict = {{"KILN_COMPILE", "never"}, {"KILN_TRUST", path("releases.toml")}};
  const Ran rejected = run({"warm", "--from", "kiln.toml", "--json"}, host("b", strict));
  EXPECT_EQ(rejected.exit_code, 4) << "a different policy does not reuse fetched entries: " << rejected.out;
  EXPECT_TRUE(rejected.says("[remote_rejected]")) << rejected.err;

  const auto group = run({"remote", "stats", "--json"}, host("b")).json()["groups"][0];
  EXPECT_EQ(group["live"], true);
  EXPECT_EQ(group["namespace"], "acme/live");
}

TEST_F(FleetSetup, FetchedEntriesAreNotSignedAgain) {
  ASSERT_EQ(run({"warm", "--from", "kiln.toml"}, host("a", live_)).exit_code, 0);
  ASSERT_EQ(run({"warm", "--from", "kiln.toml"}, host("b")).exit_code, 0);
  const Ran bundle = run({"bundle", "create", "kiln.toml", "-o", "app.kiln", "--key", "ci.key", "--json"}, host("b"));
  ASSERT_EQ(bundle.exit_code, 0) << bundle.err;
  EXPECT_EQ(origins(bundle), Strings(2, "compiled")) << "a signed bundle contains only locally compiled artifacts";
  const Ran ci_host = run({"warm", "--from", "kiln.toml", "--json"}, ci("c"));
  EXPECT_EQ(ci_host.json()["summary"]["published"], 0) << "live entries are fetched, not promoted: " << ci_host.out;
}

TEST_F(FleetSetup, DoctorReportsRoleOfHost) {
  const Ran reader = run({"doctor", "--json"}, host("a"));
  EXPECT_EQ(reader.finding("remote")["state"], "ok") << reader.out;
  EXPECT_TRUE(detail(reader.finding("remote"), "role").starts_with("reader")) << reader.out;
  EXPECT_NE(detail(reader.finding("remote"), "trusts").find("live: acme/live"), std::string::npos) << reader.out;
  EXPECT_EQ(reader.finding("lease")["state"], "ok") << reader.out;

  const auto role = [&](const Variables& variables) {
    return detail(run({"doctor", "--json"}, variables).finding("remote"), "role");
  };
  EXPECT_TRUE(role(host("a", live_)).starts_with("live signer: publishes as acme/live until 20"));
  EXPECT_EQ(role(ci("a", "7")), "CI signer: publishes as acme/vision, epoch 7");
}

TEST_F(FleetSetup, DoctorReportsServerProblemsWithAdvice) {
  const Ran alone = run({"doctor", "--json"});
  EXPECT_EQ(alone.finding("remote")["state"], "ok") << "a host without a fleet is not a problem";
  EXPECT_EQ(alone.finding("lease")["state"], "ok");

  const Ran gone = run({"doctor", "--json"}, host("a", {{"KILN_REMOTE", path("absent")}, {"KILN_TRUST", ""}}));
  EXPECT_EQ(gone.exit_code, 0) << "kiln can still compile on this machine";
  EXPECT_EQ(gone.finding("remote")["state"], "problem");
  EXPECT_NE(gone.finding("remote")["text"].get<std::string>().find(path("absent")), std::string::npos) << gone.out;
  EXPECT_TRUE(detail(gone.finding("remote"), "trusts").starts_with("no trusted keys")) << gone.out;

  const Ran unsure = run({"doctor", "--json"}, host("a", {{"KILN_REMOTE_SIGNING_KEY", path("ci.key")}}));
  EXPECT_EQ(unsure.finding("remote")["state"], "problem") << "the namespace of the key is not configured";
  const Ran useless = run({"doctor", "--json"}, host("a", {{"KILN_REMOTE", ""}}));
  EXPECT_EQ(useless.finding("lease")["state"], "info") << useless.out;
}

// nginx returns 404 for an object that it does not have and for a path that it does not have.
TEST_F(FleetSetup, DoctorReportsWrongPathOfServer) {
  Nginx nginx;
  const Ran right = run({"doctor", "--json"}, host("a", {{"KILN_REMOTE", nginx.url()}}));
  EXPECT_EQ(right.finding("remote")["state"], "ok") << right.out;
  const Ran wrong = run({"doctor", "--json"}, host("a", {{"KILN_REMOTE", nginx.url() + "/kiln"}}));
  EXPECT_EQ(wrong.finding("remote")["state"], "info") << wrong.out;
  EXPECT_NE(wrong.finding("remote")["text"].get<std::string>().find("the path in remote.url is wrong"),
            std::string::npos)
      << wrong.out;
}

}  // namespace
}  // namespace kiln::test
