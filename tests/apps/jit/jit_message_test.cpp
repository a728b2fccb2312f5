// SPDX-License-Identifier: Apache-2.0
// What kiln jit and kiln run say about entries and options that they do not use.
#include "apps/jit/jit_program.hpp"

namespace kiln::test {
namespace {

using JitMessages = JitProgram;

TEST_F(JitMessages, RunAndPublishSayWhichEntriesWereRefused) {
  for (const char* name : {"00aa", "00bb", "00cc"}) write_entry("from", name);
  const Variables own = {{"TOY_CACHE", path("from")}};
  const std::string refused = "toy: 3 entries were refused, first 00";
  const Ran ran = run_with("exit 5", own, {"--max-entry", "1"});
  EXPECT_EQ(ran.exit_code, 5);
  EXPECT_TRUE(ran.says(refused)) << ran.err;
  EXPECT_TRUE(ran.says("larger than the limit of one entry; use -v to show all")) << ran.err;
  const Ran published = jit({"publish", "--max-entry", "1"}, own);
  EXPECT_TRUE(published.says(refused)) << published.err;
  EXPECT_FALSE(run_with("exit 5", own).says("refused"));
}

TEST_F(JitMessages, RunSaysWhichEntriesWereRejected) {
  write_entry("from", "00aa");
  ASSERT_EQ(count(jit({"publish", "--root", "toy=from"}), "published"), 1);
  // The rule now accepts other names only; the environment and so the list stay the same.
  std::string rule = read_text(path("rules/toy.toml"));
  rule.replace(rule.find("{4}"), 3, "{5}");
  write("rules/toy.toml", rule);
  const Ran ran = run_with("exit 5");
  EXPECT_EQ(ran.exit_code, 5);
  EXPECT_TRUE(ran.says("toy: 1 entry was rejected, first 00aa: the path matches no pattern of the rule")) << ran.err;
}

TEST_F(JitMessages, ExplainPrintsTheEnvironmentOnOneLine) {
  const Ran ran = run({"jit", "explain", "--rules", path("rules")}, with());
  EXPECT_NE(ran.out.find("environment: system toy, distribution toy 1.0, machine "), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("\\u000a"), std::string::npos) << ran.out;
}

TEST_F(JitMessages, SaysThatHomeIsNotSet) {
  const Ran ran = jit({"publish"}, {{"HOME", ""}});
  ASSERT_EQ(ran.json()["skipped"].size(), 1U) << ran.out << ran.err;
  EXPECT_EQ(ran.json()["skipped"][0]["reason"], "HOME is not set; set it or TOY_CACHE");
  EXPECT_EQ(run_with("test $TOY_CACHE = " + path("cache/jit/toy") + " && exit 5", {{"HOME", ""}}).exit_code, 5);
}

TEST_F(JitMessages, FillPrintsAFailureOnce) {
  write_entry("from", "00aa");
  ASSERT_EQ(count(jit({"publish", "--root", "toy=from"}), "published"), 1);
  fs::create_directories(path("open"));
  ASSERT_EQ(chmod(path("open").c_str(), 0777), 0);
  const Ran ran = run({"jit", "fill", "--rules", path("rules"), "--root", "toy=open"}, with());
  EXPECT_EQ(ran.exit_code, 1);
  const std::size_t first = ran.err.find("toy: ");
  ASSERT_NE(first, std::string::npos) << ran.err;
  EXPECT_EQ(ran.err.find("toy: ", first + 1), std::string::npos) << ran.err;
  const Ran started = run_with("exit 5", {{"TOY_CACHE", path("open")}});
  EXPECT_EQ(started.exit_code, 5);
  EXPECT_TRUE(started.says("toy: nothing was placed: ")) << started.err;
}

TEST_F(JitMessages, InvalidSizesNameTheirOption) {
  for (const std::string option : {"--max-entry", "--max-system", "--max-size"}) {
    const Ran ran = jit({"fill", option, "x"});
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_TRUE(ran.says(option + ": invalid value 'x'")) << ran.err;
  }
}

TEST_F(JitMessages, HostCodeOptionAcceptsTheNameOfTheAdapter) {
  const Ran ran = run_with("echo $KILN_JIT_HOST_CODE", {}, {"--host-code", "jax"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "jax\n") << ran.err;
}

}  // namespace
}  // namespace kiln::test
