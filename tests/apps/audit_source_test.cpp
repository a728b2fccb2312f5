// SPDX-License-Identifier: Apache-2.0
// kiln audit --source, with and without a trace.
#include <filesystem>

#include "apps/run_kiln.hpp"
#include "support/fixtures/traces.hpp"

namespace kiln::test {
namespace {

constexpr const char* kPlanted =
    "void run(int n, int b) {\n"
    "  for (int i = 0; i < n; ++i) {\n"
    "    refine<<<n, b>>>(x);\n"
    "    cudaStreamSynchronize(stream);\n"
    "  }\n"
    "}\n";

std::string waiting_trace() {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  trace.launched("refine");
  trace.synchronized();
  trace.launched("refine");
  trace.dispatched("cuda");
  return trace.json();
}

TEST_F(KilnProgram, AuditOfSourcesAloneReturnsZero) {
  write("src/a.cu", kPlanted);
  const Ran ran = run({"audit", "--source", "src"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  for (const char* part : {"a.cu:4  synchronization  in run, loop depth 1\n  cudaStreamSynchronize(stream);\n",
                           "1 suspicion in 1 source below src: synchronization 1", "A suspicion is no finding"}) {
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << "\n" << ran.out;
  }
  const auto json = run({"audit", "--source", "src", "--json"}).json()["source"];
  EXPECT_EQ(json["files"], 1);
  EXPECT_EQ(json["stopped"], nullptr);
  ASSERT_EQ(json["hits"].size(), 1U);
  EXPECT_EQ(json["hits"][0]["file"], "a.cu");
  EXPECT_EQ(json["hits"][0]["line"], 4);
  EXPECT_EQ(json["hits"][0]["rail"], "synchronization");
  EXPECT_EQ(json["hits"][0]["function"], "run");
  EXPECT_EQ(json["hits"][0]["loop_depth"], 1);
  EXPECT_EQ(json["hits"][0]["findings"].size(), 0U);
}

TEST_F(KilnProgram, AuditNamesPlacesOfFindingsInSources) {
  write("src/a.cu", kPlanted);
  write("t.json", waiting_trace());
  const Ran ran = run({"audit", "t.json", "--source", "src"});
  EXPECT_EQ(ran.exit_code, run({"audit", "t.json"}).exit_code) << "suspicions do not change the exit code";
  EXPECT_TRUE(ran.out.starts_with("Blockers: they limit the path on a GPU\n\nHIGH  sync_between_launches")) << ran.out;
  EXPECT_NE(ran.out.find("  at HIGH sync_between_launches of test.pipeline: the function names the kernel refine\n"),
            std::string::npos)
      << ran.out;
  const auto json = run({"audit", "t.json", "--source", "src", "--json"}).json();
  const auto& joined = json["source"]["hits"][0]["findings"][0];
  EXPECT_EQ(joined["rule"], "sync_between_launches");
  EXPECT_EQ(json["findings"][joined["finding"].get<std::size_t>()]["rule"], "sync_between_launches");
  EXPECT_FALSE(run({"audit", "t.json", "--json"}).json().contains("source"));
}

TEST_F(KilnProgram, AuditRejectsMissingSourceDirectory) {
  const Ran ran = run({"audit", "--source", "absent"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_TRUE(ran.says("cannot search absent")) << ran.err;
  write("t.json", waiting_trace());
  EXPECT_EQ(run({"audit", "t.json", "--source", "absent"}).exit_code, 1);
  EXPECT_EQ(run({"audit"}).exit_code, 2);
  EXPECT_EQ(run({"audit", "t.json", "t.json", "--source", "."}).exit_code, 2) << "two traces are compared";
}

TEST_F(KilnProgram, AuditShowsHostileSourcesVisibly) {
  write("src/a\x1b[2J.cu", "void f() {\n  cudaDeviceSynchronize();  // \x1b]0;title\x07 \xff\n}\n");
  write("src/b.cu", std::string("\0", 1));
  std::filesystem::create_symlink("/", path("src/root"));
  const Ran ran = run({"audit", "--source", "src"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.out.find('\x1b'), std::string::npos);
  EXPECT_NE(ran.out.find("a\\u001b[2J.cu:2"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("\\xff"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("not searched: 1 symbolic link, 1 binary file"), std::string::npos) << ran.out;
  EXPECT_TRUE(run({"audit", "--source", "src", "--json"}).json()["source"]["hits"].is_array());
}

}  // namespace
}  // namespace kiln::test
