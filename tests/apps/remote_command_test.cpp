// SPDX-License-Identifier: Apache-2.0
#include "apps/fleet_program.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class Remote : public FleetProgram {
 protected:
  std::string some_key() {
    return run({"remote", "verify", "--json"}, host("b")).json()["entries"][0]["key"].get<std::string>();
  }
};

TEST_F(Remote, StatsListEntriesByNamespaceAndTrust) {
  publish("3");
  const Ran text = run({"remote", "stats"}, host("b"));
  ASSERT_EQ(text.exit_code, 0) << text.err;
  for (const char* part :
       {" responds in ", "NAMESPACE    EPOCH  ENTRIES", "acme/vision  3      2", "1 list of dependency sets"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << '\n' << text.out;
  }
  policy_for(new_key("other.key"), "acme/vision");
  const auto json = run({"remote", "stats", "--json"}, host("b")).json();
  EXPECT_EQ(json["listed"], true);
  ASSERT_EQ(json["groups"].size(), 1U) << json;
  EXPECT_EQ(json["groups"][0]["rejected"], 2) << "a different policy trusts nothing: " << json;
  EXPECT_EQ(json["entries"], 2);
  EXPECT_EQ(json["hints"], 1) << "for the unit that includes a header";
}

TEST_F(Remote, EmptyAndMissingStoresAreDistinguished) {
  const Ran empty = run({"remote", "stats"}, host("b"));
  EXPECT_EQ(empty.exit_code, 0) << empty.err;
  EXPECT_NE(empty.out.find("The store has no entries."), std::string::npos) << empty.out;
  const Ran absent = run({"remote", "stats", "--remote", "absent"}, host("b"));
  EXPECT_EQ(absent.exit_code, 3) << absent.err;
  EXPECT_TRUE(absent.says(path("absent"))) << absent.err;
  const Ran none = run({"remote", "stats"}, host("b", {{"KILN_REMOTE", ""}}));
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(none.says("KILN_REMOTE")) << none.err;
}

TEST_F(Remote, VerifyFindsContentMismatch) {
  publish();
  EXPECT_EQ(run({"remote", "verify", "--download"}, host("b")).exit_code, 0);
  for (const auto& each : fs::recursive_directory_iterator(path("shared/cas"))) {
    if (!each.is_regular_file()) continue;
    std::string bytes = read_text(each.path().string());
    bytes[bytes.size() / 2] ^= 1;
    write_text(each.path().string(), bytes);
    break;
  }
  EXPECT_EQ(run({"remote", "verify"}, host("b")).exit_code, 0) << "contents are read only with --download";
  const Ran ran = run({"remote", "verify", "--download"}, host("b"));
  EXPECT_EQ(ran.exit_code, 1) << ran.err;
  EXPECT_NE(ran.out.find("content_mismatch"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("1 of 2 entries are trusted here"), std::string::npos) << ran.out;
}

TEST_F(Remote, RemovalRequiresYes) {
  publish();
  for (const Strings& arguments : {Strings{"remote", "gc", "--max-size", "1"}, Strings{"remote", "rm", some_key()},
                                   Strings{"remote", "rm", "--before-epoch", "9"}}) {
    const Ran ran = run(arguments, host("b"));
    EXPECT_EQ(ran.exit_code, 2) << ran.err;
    EXPECT_TRUE(ran.says("--yes")) << ran.err;
  }
  EXPECT_EQ(run({"remote", "rm", "--yes"}, host("b")).exit_code, 2);
  EXPECT_EQ(run({"remote", "rm", "--yes", "--before-epoch", "1", some_key()}, host("b")).exit_code, 2);
  EXPECT_EQ(run({"remote", "gc", "--yes", "--namespace", "acme/vision"}, host("b")).exit_code, 2);
  EXPECT_EQ(run({"remote", "gc", "--yes", "--max-size", "much"}, host("b")).exit_code, 2);
  EXPECT_EQ(run({"remote", "stats", "--json"}, host("b")).json()["entries"], 2);
}

TEST_F(Remote, GcEnforcesMaxSizeAndSupportsDryRun) {
  publish();
  const auto dry = run({"remote", "gc", "--max-size", "1", "--dry-run", "--json"}, host("b")).json();
  EXPECT_EQ(dry["removed_entries"], 2) << dry;
  EXPECT_EQ(run({"remote", "stats", "--json"}, host("b")).json()["entries"], 2) << "a dry run removes nothing";
  const Ran ran = run({"remote", "gc", "--max-size", "1", "--yes"}, host("b"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find(": removed 2 entries"), std::string::npos) << ran.out;
  EXPECT_EQ(run({"remote", "stats", "--json"}, host("b")).json()["entries"], 0);
}

TEST_F(Remote, RemovedEntryIsDeletedFromStoreAndLocalCaches) {
  publish();
  const Variables fetching = host("b", {{"KILN_COMPILE", "never"}});
  ASSERT_EQ(run({"warm", "--from", "kiln.toml"}, fetching).exit_code, 0);
  const std::string key = some_key();
  const Ran ran = run({"remote", "rm", key.substr(0, 10), "--yes", "--json"}, host("b"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.json()["key"], key);
  EXPECT_EQ(ran.json()["fetched"].size(), 1U) << ran.out;
  const Ran again = run({"warm", "--from", "kiln.toml", "--json"}, fetching);
  EXPECT_EQ(again.json()["summary"]["hits"]["disk"], 1) << again.out;
  EXPECT_EQ(again.json()["summary"]["failed"], 1);
  EXPECT_EQ(run({"remote", "rm", "ffff", "--yes"}, host("b")).exit_code, 1);
  EXPECT_EQ(run({"remote", "rm", "no key", "--yes"}, host("b")).exit_code, 2);
}

TEST_F(Remote, CacheCommandsIncludeFetchedEntries) {
  publish();
  ASSERT_EQ(run({"warm", "--from", "kiln.toml"}, host("b", {{"KILN_COMPILE", "never"}})).exit_code, 0);
  const auto caches = run({"cache", "stats", "--json"}, host("b")).json()["caches"];
  ASSERT_EQ(caches.size(), 2U) << caches;
  EXPECT_EQ(caches[0]["entries"], 0);
  EXPECT_EQ(caches[1]["entries"], 2) << "fetched entries are in a separate cache";
  EXPECT_EQ(run({"cache", "clear", "--yes"}, host("b")).exit_code, 0);
  EXPECT_EQ(run({"cache", "ls", "--json"}, host("b")).json()["entries"].size(), 0U);
}

TEST_F(Remote, RemovingEpochPrintsPolicyLine) {
  publish("3");
  const Ran ran = run({"remote", "rm", "--before-epoch", "4", "--namespace", "acme/vision", "--yes"}, host("b"));
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("removed 2 entries"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("[minimum_epoch]\n\"acme/vision\" = 4\n"), std::string::npos) << ran.out;
  const auto json = run({"remote", "rm", "--before-epoch", "4", "--yes", "--json"}, host("b")).json();
  EXPECT_EQ(json["removed_entries"], 0);
  EXPECT_EQ(json["minimum_epoch"], "\"*\" = 4");
}

}  // namespace
}  // namespace kiln::test
