// SPDX-License-Identifier: Apache-2.0
// kiln jit and kiln run with a remote store.
#include <algorithm>
#include <chrono>
#include <thread>

#include "apps/jit/jit_program.hpp"
#include "base/files/files.hpp"
#include "support/servers/misbehaving_server.hpp"

namespace kiln::test {
namespace {

class JitFleet : public JitProgram {
 protected:
  void SetUp() override {
    JitProgram::SetUp();
    fs::create_directories(path("shared"));
    write_entry("from", "00aa");
  }
  Variables host(const std::string& cache, Variables more = {}) const {
    more.emplace("KILN_CACHE_DIR", path(cache));
    more.emplace("KILN_REMOTE", path("shared"));
    more.emplace("KILN_TRUST", path("policy.toml"));
    return more;
  }
  Variables ci(const std::string& cache) const {
    return host(cache, {{"KILN_REMOTE_SIGNING_KEY", path("ci.key")},
                        {"KILN_REMOTE_NAMESPACE", "acme/vision"},
                        {"KILN_REMOTE_EPOCH", "1"}});
  }
  /// Removes the only entry from the shared directory. The list that names it stays.
  void remove_entry() const {
    // Two objects in each bucket: those of the entry are the older ones.
    for (const char* bucket : {"shared/ac", "shared/cas"}) {
      std::vector<fs::path> files;
      for (const auto& each : fs::recursive_directory_iterator(path(bucket)))
        if (each.is_regular_file()) files.push_back(each.path());
      ASSERT_EQ(files.size(), 2U) << bucket;
      fs::remove(*std::min_element(files.begin(), files.end(), [](const auto& a, const auto& b) {
        return fs::last_write_time(a) < fs::last_write_time(b);
      }));
    }
  }
};

TEST_F(JitFleet, RemoteStoreFillsAnotherHost) {
  trust(new_key("ci.key"), "acme/vision");
  const Ran published = jit({"publish", "--root", "toy=from"}, ci("a"));
  ASSERT_EQ(count(published, "published"), 1) << published.out << published.err;
  const Ran filled = jit({"fill", "--root", "toy=" + path("to")}, host("b"));
  EXPECT_EQ(count(filled, "placed"), 1) << filled.out << filled.err;
  EXPECT_EQ(complete_entries("to"), 1U);
  // A list that changed is read again, and hosts do not remove each other's lines.
  write_entry("from2", "00bb");
  ASSERT_EQ(count(jit({"publish", "--root", "toy=from2"}, ci("c")), "published"), 1);
  const Ran both = jit({"fill", "--root", "toy=" + path("to")}, host("b"));
  EXPECT_EQ(count(both, "placed"), 1) << both.out << both.err;
  EXPECT_EQ(count(both, "present"), 1) << both.out;
}

// A store can remove an entry and keep the list that names it.
TEST_F(JitFleet, EntryThatTheStoreRemovedIsSentAgain) {
  trust(new_key("ci.key"), "acme/vision");
  ASSERT_EQ(count(jit({"publish", "--root", "toy=from"}, ci("a")), "published"), 1);
  remove_entry();
  EXPECT_EQ(count(jit({"fill", "--root", "toy=" + path("none")}, host("b")), "missing"), 1);
  EXPECT_EQ(jit({"publish", "--root", "toy=from"}, ci("a")).exit_code, 0) << "the host that sent it";
  EXPECT_EQ(count(jit({"fill", "--root", "toy=" + path("to")}, host("c")), "placed"), 1);
}

TEST_F(JitFleet, HostThatCompilesARemovedEntryPublishesIt) {
  trust(new_key("ci.key"), "acme/vision");
  ASSERT_EQ(count(jit({"publish", "--root", "toy=from"}, ci("a")), "published"), 1);
  remove_entry();
  write_entry("from2", "00aa");
  const Ran published = jit({"publish", "--root", "toy=from2"}, ci("b"));
  EXPECT_EQ(count(published, "published"), 1) << published.out << published.err;
}

TEST_F(JitFleet, HostsThatPublishAtOnceKeepAllLines) {
  trust(new_key("ci.key"), "acme/vision");
  constexpr int kHosts = 6;
  std::vector<std::thread> hosts;
  for (int i = 0; i < kHosts; ++i) {
    const std::string name = std::to_string(i);
    write_entry("from" + name, "000" + name);
    hosts.emplace_back([this, name] { (void)jit({"publish", "--root", "toy=from" + name}, ci("cache" + name)); });
  }
  for (std::thread& each : hosts) each.join();
  EXPECT_EQ(count(jit({"fill", "--root", "toy=" + path("to")}, host("c")), "placed"), kHosts);
}

TEST_F(JitFleet, OtherKeysFillNothing) {
  trust(new_key("ci.key"), "acme/vision");
  ASSERT_EQ(count(jit({"publish", "--root", "toy=from"}, ci("a")), "published"), 1);
  trust(new_key("other.key"), "acme/vision");
  EXPECT_EQ(count(jit({"fill", "--root", "toy=" + path("to")}, host("b")), "placed"), 0);
  EXPECT_FALSE(fs::exists(path("to")));
}

TEST_F(JitFleet, HostCodeOfLiveNamespacesIsNotPlaced) {
  const std::string authority = new_key("authority.key");
  const std::string host_key = new_key("host.key");
  ASSERT_EQ(run({"key", "certify", host_key, "--key", "authority.key", "--namespace", "acme/live", "-o", "host.cert"})
                .exit_code,
            0);
  trust(authority, "acme/live", "[[live]]\nnamespace = \"acme/live\"\ndays = 7\n");
  const Variables live =
      host("a", {{"KILN_REMOTE_SIGNING_KEY", path("host.key")}, {"KILN_REMOTE_CERTIFICATE", path("host.cert")}});
  ASSERT_EQ(count(jit({"publish", "--root", "toy=from"}, live), "published"), 1);
  EXPECT_EQ(count(jit({"fill", "--root", "toy=" + path("to")}, host("b")), "placed"), 1) << "device code is placed";
  write_rule("host_code = true\n");
  ASSERT_EQ(count(jit({"publish", "--root", "toy=from", "--host-code", "toy"}, live), "published"), 1);
  const Ran ran = jit({"fill", "--root", "toy=" + path("to2"), "--host-code", "toy"}, host("c"));
  EXPECT_EQ(count(ran, "placed"), 0) << ran.out;
  EXPECT_FALSE(fs::exists(path("to2")));
}

TEST_F(JitFleet, EntriesPublishedWithoutTheStoreAreSentLater) {
  trust(new_key("ci.key"), "acme/vision");
  ASSERT_EQ(count(jit({"publish", "--root", "toy=from"}, {{"KILN_CACHE_DIR", path("a")}}), "published"), 1);
  const Ran published = jit({"publish", "--root", "toy=from"}, ci("a"));
  ASSERT_EQ(count(published, "known"), 1) << published.out << published.err;
  const Ran filled = jit({"fill", "--root", "toy=" + path("to")}, host("b"));
  EXPECT_EQ(count(filled, "placed"), 1) << filled.out << filled.err;
}

TEST_F(JitFleet, DeadStoreDelaysTheStartByItsBudgetOnly) {
  trust(new_key("ci.key"), "acme/vision");
  const MisbehavingServer server(Mode::Silent);
  Variables dead = host("b");
  dead["KILN_REMOTE"] = server.url();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run_with("exit 4", dead, {"--publish", "never"}).exit_code, 4);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(JitFleet, DeadStoreDoesNotPreventThePublicationToTheOwnCache) {
  trust(new_key("ci.key"), "acme/vision");
  const MisbehavingServer server(Mode::Silent);
  Variables dead = ci("a");
  dead["KILN_REMOTE"] = server.url();
  dead["TOY_CACHE"] = path("from");
  const Ran ran = run_with("exit 4", dead, {"--publish", "exit"});
  EXPECT_EQ(ran.exit_code, 4);
  EXPECT_TRUE(ran.says("not all entries are in the remote store")) << ran.err;
  const Ran filled = jit({"fill", "--root", "toy=" + path("to")}, {{"KILN_CACHE_DIR", path("a")}});
  EXPECT_EQ(count(filled, "placed"), 1) << filled.out << filled.err;
}

// A store that does not answer makes the fill and the last publication long enough for signals.
TEST_F(JitFleet, SignalsBeforeAndAfterTheCommandDoNotReplaceItsExitCode) {
  trust(new_key("ci.key"), "acme/vision");
  const MisbehavingServer server(Mode::Silent);
  Variables dead = ci("a");
  dead["KILN_REMOTE"] = server.url();
  dead["TOY_CACHE"] = path("from");
  const auto exit_code = [&](const std::string& cache, const std::string& signal, const std::string& file) {
    dead["KILN_CACHE_DIR"] = path(cache);
    fs::remove(path("ended"));
    const std::string child = "trap \"\" TERM INT USR2; touch ended; exit 4";
    const std::string script =
        KILN_PROGRAM + std::string(" run --rules rules -- /bin/sh -c '") + child + "' & pid=$!; while [ ! -e " + file +
        " ]; do sleep 0.02; done; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do kill -" + signal +
        " $pid; sleep 0.02; done 2>/dev/null; wait $pid";
    return run_program({"/bin/sh", "-c", script}, with(dead)).exit_code;
  };
  EXPECT_EQ(exit_code("b", "USR1", "b"), 4) << "during the fill: its directory exists";
  for (const std::string signal : {"USR1", "USR2", "TERM"})
    EXPECT_EQ(exit_code("after" + signal, signal, "ended"), 4) << signal;
}

TEST_F(JitFleet, RunStartsTheCommandWithTheSignalMaskOfItsParent) {
  const std::string script = "grep SigBlk: /proc/self/status";
  const Ran alone = run_program({"/bin/sh", "-c", script}, with());
  EXPECT_EQ(run_with(script).out, alone.out);
}

TEST_F(JitFleet, DeadStoreIsAskedOncePerFillForAllSystems) {
  trust(new_key("ci.key"), "acme/vision");
  std::string rules;
  for (int i = 0; i < 20; ++i) {
    rules += "[[rule]]\nsystem = \"toy" + std::to_string(i) +
             "\"\nversions = \">=1, <2\"\ndistributions = [\"toy\"]\nroot = \"~/.toy\"\nentries = [\"a\"]\n"
             "evidence = \"run\"\n";
  }
  write("rules/many.toml", rules);
  const MisbehavingServer server(Mode::Silent);
  Variables dead = host("b");
  dead["KILN_REMOTE"] = server.url();
  const Ran ran = jit({"fill", "--time", "60"}, dead);
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  int asked = 0;
  const auto report = ran.json();
  for (const auto& system : report["systems"]) asked += system["problems"].empty() ? 0 : 1;
  EXPECT_EQ(asked, 1) << ran.out;
}

}  // namespace
}  // namespace kiln::test
