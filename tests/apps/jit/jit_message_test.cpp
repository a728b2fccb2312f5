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

}  // namespace
}  // namespace kiln::test
