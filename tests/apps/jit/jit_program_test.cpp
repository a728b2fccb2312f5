// SPDX-License-Identifier: Apache-2.0
// kiln jit and kiln run on one host.
#include "apps/jit/jit_program.hpp"

#include <chrono>
#include <functional>
#include <random>

namespace kiln::test {
namespace {

TEST_F(JitProgram, BundleFillsAnotherHome) {
  trust(new_key("ci.key"), "acme/vision");
  make_bundle("ci.key");
  fs::create_directories(path("other_home"));
  const Ran filled = jit({"fill"}, reader({{"KILN_BUNDLES", path("toy.kiln")}, {"KILN_TRUST", path("policy.toml")}}));
  EXPECT_EQ(filled.exit_code, 0) << filled.err;
  EXPECT_EQ(count(filled, "placed"), 2) << filled.out << filled.err;
  EXPECT_EQ(complete_entries("other_home/.toy"), 2U);
  const Ran again = jit({"publish"}, reader({{"KILN_BUNDLES", path("toy.kiln")}, {"KILN_TRUST", path("policy.toml")}}));
  EXPECT_EQ(count(again, "known"), 2) << "a bundle's entries do not become this user's own: " << again.out;
}

TEST_F(JitProgram, UntrustedBundlePlacesNothingAndTheCommandRuns) {
  const std::string key = new_key("ci.key");
  make_bundle("ci.key");
  trust(new_key("other.key"), "acme/vision");
  const Variables bundle = {{"KILN_BUNDLES", path("toy.kiln")}};
  const Variables wrong = {{"KILN_BUNDLES", path("toy.kiln")}, {"KILN_TRUST", path("policy.toml")}};
  for (const Variables& each : {bundle, wrong}) {
    EXPECT_EQ(run_with("test ! -e \"$TOY_CACHE/00aa\" && exit 7", reader(each)).exit_code, 7);
    EXPECT_EQ(count(jit({"fill"}, reader(each)), "placed"), 0);
  }
  EXPECT_FALSE(fs::exists(path("other_home/.toy")));
}

TEST_F(JitProgram, DamagedBundleNeverPlacesAPartialEntry) {
  trust(new_key("ci.key"), "acme/vision");
  make_bundle("ci.key");
  const std::string good = read_text(path("toy.kiln"));
  const Variables variables = reader({{"KILN_BUNDLES", path("damaged.kiln")}, {"KILN_TRUST", path("policy.toml")}});
  for (std::size_t at = 7; at < good.size(); at += good.size() / 24 + 1) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    for (const std::string& bytes : {damaged, good.substr(0, at)}) {
      write_text(path("damaged.kiln"), bytes);
      fs::remove_all(path("other_home"));
      fs::create_directories(path("other_home"));
      EXPECT_EQ(jit({"fill"}, variables).exit_code, 0) << at;
      complete_entries("other_home/.toy");
    }
  }
}

TEST_F(JitProgram, BundlePlacesThousandEntriesInTwoSeconds) {
  trust(new_key("ci.key"), "acme/vision");
  std::minstd_rand random(1);  // bytes that do not shrink when a bundle compresses them
  for (int i = 0; i < 1000; ++i) {
    char name[8];
    std::snprintf(name, sizeof name, "%04x", i);
    fs::create_directories(path("from/") + name);
    std::string code(100'000, ' ');
    for (char& each : code) each = static_cast<char>(random() >> 8);
    write_text(path("from/") + name + "/kernel.bin", code);
    write_text(path("from/") + name + "/done", "done");
  }
  ASSERT_EQ(chmod(path("from").c_str(), 0700), 0);
  const Ran published = jit({"publish", "--time", "120", "--root", "toy=from"});
  ASSERT_EQ(count(published, "published"), 1000) << published.out << published.err;
  ASSERT_EQ(run({"bundle", "create", "--external", "jit.toy", "-o", "toy.kiln", "--key", "ci.key", "--namespace",
                 "acme/vision", "--epoch", "1"})
                .exit_code,
            0);
  const Variables bundle = reader({{"KILN_BUNDLES", path("toy.kiln")}, {"KILN_TRUST", path("policy.toml")}});
  const auto start = std::chrono::steady_clock::now();
  const Ran filled = jit({"fill", "--time", "120", "--root", "toy=" + path("to")}, bundle);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(count(filled, "placed"), 1000) << filled.out << filled.err;
  std::printf("figure: jit fill: 1000 entries, 100 MB from a bundle in %.2f s\n", took.count());
  EXPECT_LT(took.count(), 2.0);
}

TEST_F(JitProgram, RunSetsTheVariablePassesTheExitCodeAndPublishes) {
  const std::string compile =
      "mkdir -p $TOY_CACHE/00aa && printf 00aa > $TOY_CACHE/00aa/kernel.bin && printf done > $TOY_CACHE/00aa/done";
  EXPECT_EQ(run_with(compile + " && exit 5").exit_code, 5);
  EXPECT_TRUE(fs::exists(path("cache/jit/toy/00aa/done"))) << "kiln's own root";
  EXPECT_EQ(count(jit({"fill", "--root", "toy=" + path("to")}), "placed"), 1) << "it was published at exit";
  EXPECT_EQ(run_with(compile, {{"TOY_CACHE", path("mine")}}).exit_code, 0);
  EXPECT_TRUE(fs::exists(path("mine/00aa/done"))) << "the user's variable stays";
  EXPECT_EQ(run_with("kill -KILL $$").exit_code, 128 + 9);
}

TEST_F(JitProgram, RunLeavesTheVariableAloneIfItsDirectoryCannotBeUsed) {
  const std::string script = "test -z \"$TOY_CACHE\" && exit 5";
  const Ran ran = run_with(script, {{"KILN_CACHE_DIR", "/proc/kiln"}});
  EXPECT_EQ(ran.exit_code, 5) << ran.err;
  EXPECT_TRUE(ran.says("toy: it keeps its own cache directory")) << ran.err;
  fs::create_directories(path("open/jit/toy"));
  ASSERT_EQ(chmod(path("open/jit/toy").c_str(), 0777), 0);
  EXPECT_EQ(run_with(script, {{"KILN_CACHE_DIR", path("open")}}).exit_code, 5) << "others can write to it";
  EXPECT_EQ(run_with(script, {{"KILN_DISABLE", "1"}}).exit_code, 5);
}

TEST_F(JitProgram, RunReportsAsJson) {
  write_entry("from", "00aa");
  ASSERT_EQ(count(jit({"publish", "--root", "toy=from"}), "published"), 1);
  const Ran ran = run_with("test -e $TOY_CACHE/00aa/done", {}, {"--json"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(count(ran, "placed"), 1) << ran.out;
  EXPECT_EQ(ran.json()["exit_code"], 0);
}

TEST_F(JitProgram, RunNeedsACommand) {
  EXPECT_EQ(run({"run"}).exit_code, 2);
  EXPECT_EQ(run({"run", "--publish", "sometimes", "--", "true"}, with()).exit_code, 2);
}

TEST_F(JitProgram, RunReturnsTheExitCodesOfAShellForACommandThatDoesNotStart) {
  const Ran absent = run({"run", "--", "/does/not/exist"}, with());
  EXPECT_EQ(absent.exit_code, 127);
  EXPECT_TRUE(absent.says("cannot start /does/not/exist")) << absent.err;
  EXPECT_EQ(run({"run", "--", "no-such-program-in-path"}, with()).exit_code, 127);
  write("plain", "not executable");
  EXPECT_EQ(run({"run", "--", path("plain")}, with()).exit_code, 126);
}

TEST_F(JitProgram, RunsInAWorkingDirectoryThatWasRemoved) {
  const auto run_there = [&](const std::string& arguments, const Variables& more = {}) {
    const std::string script = "mkdir gone && cd gone && rmdir ../gone && exec " KILN_PROGRAM " run --rules ";
    return run_program({"/bin/sh", "-c", script + path("rules") + " " + arguments}, with(more));
  };
  EXPECT_EQ(run_there("-- /bin/sh -c 'exit 5'").exit_code, 5);
  EXPECT_EQ(run_there("-- ./program").exit_code, 127);
  EXPECT_EQ(run_there("-- /bin/sh -c 'exit 5'", {{"TOY_CACHE", "relative"}}).exit_code, 5);
  const Ran root = run_there("--root toy=relative -- /bin/sh -c 'exit 5'");
  EXPECT_EQ(root.exit_code, 2);
  EXPECT_TRUE(root.says("--root toy=relative: the working directory cannot be read")) << root.err;
}

TEST_F(JitProgram, RunPassesTheExitCodeIfTheParentIgnoresChildren) {
  const Ran ran = run_program({"/usr/bin/env", "--ignore-signal=CHLD", KILN_PROGRAM, "run", "--rules", path("rules"),
                               "--", "/bin/sh", "-c", "exit 5"},
                              with());
  EXPECT_EQ(ran.exit_code, 5) << ran.err;
}

TEST_F(JitProgram, RunPassesSignalsOnAndPublishesOnDemand) {
  const std::string kiln = KILN_PROGRAM;
  const std::string child =
      "mkdir -p $TOY_CACHE/00aa; printf 00aa > $TOY_CACHE/00aa/kernel.bin; printf done > $TOY_CACHE/00aa/done; "
      "touch -d @1000000000 $TOY_CACHE/00aa/*; trap \"exit 9\" TERM; touch ready; while :; do sleep 0.05; done";
  const std::string script = kiln + " run --publish never --rules rules -- /bin/sh -c '" + child +
                             "' & pid=$!; while [ ! -e ready ]; do sleep 0.05; done; sleep 2.5; kill -USR1 $pid; "
                             "sleep 1; " +
                             kiln + " jit fill --rules rules --root toy=" + path("to") + "; kill -TERM $pid; wait $pid";
  const Ran ran = run_program({"/bin/sh", "-c", script}, with());
  EXPECT_EQ(ran.exit_code, 9) << ran.err;
  EXPECT_EQ(complete_entries("to"), 1U) << ran.out << ran.err;
}

TEST_F(JitProgram, UnknownVersionsAreSkippedWithAWarning) {
  fs::remove_all(path("venv"));
  fs::create_directories(path("venv/lib/python3.11/site-packages/toy-2.0.dist-info"));
  write_entry("from", "00aa");
  const Ran ran = jit({"publish", "--root", "toy=from"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_TRUE(ran.says("no rule covers version 2.0 of toy")) << ran.err;
  EXPECT_EQ(ran.json()["skipped"].size(), 1U) << ran.out;
  EXPECT_EQ(run_with("exit 3").exit_code, 3);
}

TEST_F(JitProgram, WarnsThatTheInterpreterIsAShimAndRunsTheCommand) {
  write("shims/python3", "#!/bin/sh\nexit 5\n");
  ASSERT_EQ(chmod(path("shims/python3").c_str(), 0755), 0);
  const Ran ran = run({"run", "--rules", path("rules"), "--", path("shims/python3")}, with());
  EXPECT_EQ(ran.exit_code, 5) << ran.err;
  EXPECT_TRUE(ran.says("is a script")) << ran.err;
  EXPECT_FALSE(run_with("true").says("is a script"));
}

TEST_F(JitProgram, HostCodeIsOffByDefault) {
  write_rule("host_code = true\n");
  write_entry("from", "00aa");
  EXPECT_EQ(jit({"publish", "--root", "toy=from"}).json()["skipped"].size(), 1U);
  EXPECT_EQ(count(jit({"publish", "--root", "toy=from", "--host-code", "toy"}), "published"), 1);
  EXPECT_EQ(count(jit({"publish", "--root", "toy=from"}, {{"KILN_JIT_HOST_CODE", "toy"}}), "known"), 1);
}

TEST_F(JitProgram, UnknownNamesOfTheHostCodeSettingDoNotStopTheCommand) {
  write_rule("host_code = true\n");
  const Ran ran = run_with("exit 6", {{"KILN_JIT_HOST_CODE", "jax,toy,gone"}});
  EXPECT_EQ(ran.exit_code, 6) << ran.err;
  EXPECT_TRUE(ran.says("jit.host_code: unknown system 'gone'")) << ran.err;
  EXPECT_FALSE(ran.says("jax")) << "an adapter uses this name: " << ran.err;
  EXPECT_EQ(run_with("exit 6", {}, {"--host-code", "gone"}).exit_code, 2) << "a name of the command line must be known";
}

TEST_F(JitProgram, RunTellsTheCommandWhichHostCodeIsUsed) {
  write_rule("host_code = true\n");
  const Ran ran = run_with("echo $KILN_JIT_HOST_CODE", {{"KILN_JIT_HOST_CODE", "jax"}}, {"--host-code", "toy"});
  EXPECT_EQ(ran.out, "jax,toy\n") << ran.err;
}

TEST_F(JitProgram, ListAndExplainShowSystemsAndReasons) {
  write_entry("from", "00aa");
  const auto listed = jit({"list", "--root", "toy=from"}).json();
  ASSERT_EQ(listed["systems"].size(), 1U) << listed;
  EXPECT_EQ(listed["systems"][0]["entries"], 1);
  EXPECT_EQ(listed["systems"][0]["listed"], 0);
  const auto before = jit({"explain", "--root", "toy=from"}).json()["systems"][0];
  ASSERT_EQ(before["entries"].size(), 1U) << before;
  EXPECT_EQ(before["entries"][0]["state"], "compiled");
  EXPECT_FALSE(before["notes"].empty()) << "there is no list yet";
  ASSERT_EQ(count(jit({"publish", "--root", "toy=from"}), "published"), 1);
  const auto missing = jit({"explain", "--root", "toy=" + path("to")}).json()["systems"][0];
  EXPECT_EQ(missing["entries"][0]["state"], "missing") << missing;
  ASSERT_EQ(count(jit({"fill", "--root", "toy=" + path("to")}), "placed"), 1);
  const auto placed = jit({"explain", "--root", "toy=" + path("to")}).json()["systems"][0];
  EXPECT_EQ(placed["entries"][0]["state"], "placed") << placed;
  fs::remove_all(path("venv"));
  fs::create_directories(path("venv/lib/python3.11/site-packages/toy-1.5.dist-info"));
  const auto other = jit({"explain", "--root", "toy=" + path("to3")}).json()["systems"][0];
  EXPECT_NE(other["notes"].dump().find("list default toy 1.0"), std::string::npos) << other;
}

TEST_F(JitProgram, ReportShowsWhatWasPlacedPublishedAndLeftOut) {
  for (const char* name : {"00aa", "00bb"}) write_entry("from", name);
  write("from/00cc/kernel.bin", "incomplete");
  ASSERT_EQ(count(jit({"publish", "--root", "toy=from"}, {{"KILN_TRACE", path("publish.json")}}), "published"), 2);
  const Variables traced = {{"KILN_TRACE", path("trace.json")}};
  const Ran ran = run_with("printf %s \"$KILN_TRACE\" > trace.json", traced, {"--max-system", "100"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(read_text(path("trace.json")), path("trace.json")) << "the command's own trace";
  const auto runs = run({"report", "publish.json", "trace.json.run", "--json"}).json()["runs"];
  ASSERT_EQ(runs.size(), 2U) << runs;
  ASSERT_EQ(runs[0]["caches"].size(), 1U) << runs[0];
  EXPECT_EQ(runs[0]["caches"][0]["kind"], "cache_published");
  EXPECT_EQ(runs[0]["caches"][0]["system"], "toy");
  EXPECT_GT(runs[0]["caches"][0]["bytes"], 0);
  EXPECT_EQ(runs[0]["skipped_entries"][0]["path"], "00cc");
  EXPECT_EQ(runs[0]["skipped_entries"][0]["state"], "incomplete");
  ASSERT_EQ(runs[1]["caches"].size(), 2U) << runs[1];
  EXPECT_EQ(runs[1]["caches"][0]["kind"], "cache_filled");
  EXPECT_EQ(runs[1]["skipped_entries"][0]["path"], "00bb");
  EXPECT_EQ(runs[1]["skipped_entries"][0]["state"], "left_out");
  EXPECT_EQ(runs[1]["skipped_entries"][0]["why"], "limit of the system reached");
}

TEST_F(JitProgram, ReportShowsConflictsOfLists) {
  for (const char* name : {"first", "second"}) {
    write_entry("from", "00aa");
    write("from/00aa/kernel.bin", name);
    ASSERT_EQ(count(jit({"publish", "--root", "toy=from"}, {{"KILN_CACHE_DIR", path(name)}}), "published"), 1);
  }
  const Ran filled =
      jit({"fill", "--root", "toy=" + path("to")}, {{"KILN_CACHE_DIR", ""},
                                                    {"KILN_CACHE_PATH", path("first") + ":" + path("second")},
                                                    {"KILN_TRACE", path("trace.json")}});
  ASSERT_EQ(count(filled, "placed"), 1) << filled.out << filled.err;
  const auto skipped = run({"report", "trace.json", "--json"}).json()["runs"][0]["skipped_entries"];
  ASSERT_EQ(skipped.size(), 1U) << skipped;
  EXPECT_EQ(skipped[0]["path"], "00aa");
  EXPECT_EQ(skipped[0]["state"], "conflict");
}

TEST_F(JitProgram, ExplainFindsEntriesOfOtherSystems) {
  for (const char* name : {"00aa", "00bb"}) write_entry("from", name);
  ASSERT_EQ(count(jit({"publish", "--root", "toy=from"}), "published"), 2);
  const auto one = jit({"explain", "toy/00bb", "--root", "toy=" + path("to")}).json()["systems"][0];
  ASSERT_EQ(one["entries"].size(), 1U) << one;
  EXPECT_EQ(one["entries"][0]["path"], "00bb");
  EXPECT_EQ(one["entries"][0]["reason"], "it was not placed; run 'kiln jit fill'");
  const auto none = jit({"explain", "toy/00b", "--root", "toy=" + path("to")}).json()["systems"][0];
  EXPECT_TRUE(none["entries"].empty()) << none;
  EXPECT_NE(none["notes"].dump().find("neither the cache directory nor a list has 00b"), std::string::npos) << none;
  EXPECT_EQ(jit({"explain", "gone/00b"}).exit_code, 2);
  EXPECT_EQ(jit({"fill", "toy/00bb"}).exit_code, 2) << "a fill places all entries of a system";
}

TEST_F(JitProgram, ExplainOfKilnCoversOtherSystems) {
  fs::create_directories(path("venv/lib/python3.11/site-packages/triton-3.9.0.dist-info"));
  const Variables own = {{"TRITON_CACHE_DIR", path("triton")}};
  const std::string entry = std::string(52, 'A');
  write("triton/" + entry + "/k.cubin", "code");
  write("triton/" + entry + "/k.json", "{}");
  write("triton/" + entry + "/__grp__k.json", "{\"path\": \"" + path("triton") + "/k.cubin\"}");
  ASSERT_EQ(chmod(path("triton").c_str(), 0700), 0);
  const Ran compiled = run({"explain", "--external", "triton/" + entry, "--json"}, with(own));
  ASSERT_EQ(compiled.json()["systems"].size(), 1U) << compiled.out << compiled.err;
  EXPECT_EQ(compiled.json()["systems"][0]["entries"][0]["state"], "compiled") << compiled.out;
  ASSERT_EQ(count(run({"jit", "publish", "triton", "--json"}, with(own)), "published"), 1);
  fs::remove_all(path("triton"));
  EXPECT_EQ(run({"explain", "--external", "triton", "--check"}, with(own)).exit_code, 1) << "it is missing";
  ASSERT_EQ(count(run({"jit", "fill", "triton", "--json"}, with(own)), "placed"), 1);
  const Ran placed = run({"explain", "--external", "triton", "--check"}, with(own));
  EXPECT_EQ(placed.exit_code, 0) << placed.err;
  EXPECT_NE(placed.out.find(entry + ": placed"), std::string::npos) << placed.out;
  EXPECT_EQ(run({"explain", "k.cu", "--external", "triton"}, with(own)).exit_code, 2);
}

TEST_F(JitProgram, CheckOfExplainNeedsListsOfAllEntries) {
  write_entry("from", "00aa");
  const auto check = [&](const std::string& name, const std::string& root) {
    return jit({"explain", "--check", name, "--root", "toy=" + root}).exit_code;
  };
  EXPECT_EQ(check("toy", path("none")), 1) << "no list";
  ASSERT_EQ(count(jit({"publish", "--root", "toy=from"}), "published"), 1);
  EXPECT_EQ(check("toy", "from"), 0) << "it is published";
  EXPECT_EQ(check("toy/00bb", "from"), 1) << "neither has it";
  write_entry("from", "00bb");
  EXPECT_EQ(check("toy", "from"), 1) << "no list names it";
  EXPECT_EQ(check("toy/00aa", "from"), 0);
  write_rule("host_code = true\n");
  EXPECT_EQ(check("toy/00aa", "from"), 1) << "skipped";
  const Ran absent = run({"explain", "--external", "warp", "--check"}, with());
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_NE(absent.out.find("warp is not installed"), std::string::npos) << absent.out << absent.err;
}

#ifdef KILN_FAULT_INJECT
// Kills the program after each of its calls that can change files, and checks what is visible. The calls between them
// change nothing that another process sees.
class JitKilled : public JitProgram {
 protected:
  bool killed(int at, const std::string& command, const std::string& root) {
    const std::string calls =
        "openat+openat2+mkdirat+mkdir+write+pwrite64+writev+renameat2+renameat+rename+linkat+unlinkat+unlink";
    return run_program(
               {KILN_FAULT_INJECT, "--limit", "60", "--fault", "0:" + calls + ":" + std::to_string(at) + ":kill", "--",
                KILN_PROGRAM, "jit", command, "--rules", path("rules"), "--root", "toy=" + root},
               with())
               .exit_code != 0;
  }
  // Publishes the entries of `from` and fills `to`. `complete` counts the entries of a root and expects them complete.
  void expect_no_partial_entry(int entries, const std::function<std::size_t(const std::string&)>& complete) {
    int kills = 0;
    for (int at = 1; at < 400; ++at, ++kills) {
      fs::remove_all(path("cache"));
      fs::remove_all(path("to"));
      if (!killed(at, "publish", path("from"))) break;
      EXPECT_EQ(jit({"fill", "--root", "toy=" + path("to")}).exit_code, 0);
      complete("to");
    }
    EXPECT_GT(kills, 5);
    fs::remove_all(path("cache"));
    ASSERT_EQ(count(jit({"publish", "--root", "toy=from"}), "published"), entries);
    kills = 0;
    for (int at = 1; at < 400; ++at, ++kills) {
      fs::remove_all(path("to"));
      if (!killed(at, "fill", path("to"))) break;
      complete("to");
    }
    EXPECT_GT(kills, 5);
    EXPECT_EQ(complete("to"), static_cast<std::size_t>(entries)) << "the last run was not killed";
  }
};

TEST_F(JitKilled, FillAndPublishOfFoldersLeaveNoPartialEntry) {
  write_entry("from", "00aa");
  write_entry("from", "00bb");
  expect_no_partial_entry(2, [&](const std::string& root) { return complete_entries(root); });
}

TEST_F(JitKilled, FillAndPublishOfFilesLeaveNoPartialEntry) {
  write("rules/toy.toml",
        "[[rule]]\nsystem = \"toy\"\nversions = \">=1, <2\"\ndistributions = [\"toy\"]\nroot = \"~/.toy\"\n"
        "kind = \"file\"\nentries = [\"k/*.bin\"]\nevidence = \"run\"\n");
  const std::string content(5000, 'c');
  write("from/k/00aa.bin", content);
  ASSERT_EQ(chmod(path("from").c_str(), 0700), 0);
  expect_no_partial_entry(1, [&](const std::string& root) {
    std::size_t count = 0;
    std::error_code ignored;
    for (const auto& each : fs::directory_iterator(path(root) + "/k", ignored)) {
      EXPECT_EQ(each.path().filename(), "00aa.bin");
      EXPECT_EQ(read_text(each.path().string()), content);
      ++count;
    }
    return count;
  });
}
#endif

}  // namespace
}  // namespace kiln::test
