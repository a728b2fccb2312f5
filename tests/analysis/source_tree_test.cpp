// SPDX-License-Identifier: Apache-2.0
// The search in directories, some of them hostile, and the join with the findings of a trace.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "analysis/source/source_join.hpp"
#include "support/fakes/stepped_clock.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/traces.hpp"

namespace kiln::source {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSync = "void f() {\n  cudaDeviceSynchronize();\n}\n";

class SourceTree : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(directory_.path(name)).parent_path());
    test::write_text(directory_.path(name), text);
  }
  SourceReport search(const TraceNames& names = {}, const SearchLimits& limits = {}) {
    Result<SourceReport> found = search_directory(directory_.path(), names, limits, clock_);
    EXPECT_TRUE(found);
    return found ? std::move(*found) : SourceReport();
  }
  // Searches with the names of a trace and joins. Returns `file:line rail: rules`.
  std::vector<std::string> joined(const test::HandMadeTrace& made) {
    const audit::Trace trace = audit::parse_trace(made.json()).value();
    const audit::Report report = audit::run_audit(trace);
    const TraceJoin join(trace, report);
    SourceReport found = search(join.names());
    join.apply(found);
    std::vector<std::string> out;
    for (const Hit& hit : found.hits) {
      std::string text = hit.file + ':' + std::to_string(hit.line) + ' ' + to_string(hit.rail) + ':';
      for (const JoinedFinding& each : hit.findings)
        text += std::string(" ") + report.findings[each.finding].rule->name;
      out.push_back(text);
    }
    return out;
  }

  test::TemporaryDirectory directory_;
  test::SteppedClock clock_;
};

std::vector<std::string> places(const SourceReport& report) {
  std::vector<std::string> out;
  for (const Hit& hit : report.hits) out.push_back(hit.file + ':' + std::to_string(hit.line));
  return out;
}

TEST_F(SourceTree, RanksByLoopDepthThenRail) {
  write("a.cu",
        "void f() {\n"
        "  k<<<1, 32>>>(x);\n"
        "  cudaDeviceSynchronize();\n"
        "  cudaMemcpy(h, d, 4, cudaMemcpyDeviceToHost);\n"
        "  for (int i = 0; i < 3; ++i) k<<<1, 32>>>(x);\n"
        "}\n");
  write("sub/b.py", "import torch\nfor a in x:\n    for b in y:\n        torch.cuda.synchronize()\n");
  EXPECT_EQ(places(search()), (std::vector<std::string>{"sub/b.py:4", "a.cu:5", "a.cu:4", "a.cu:3", "a.cu:2"}));
}

TEST_F(SourceTree, SearchesSourcesOutsideOfIgnoredDirectories) {
  for (const char* name : {"a.cu", "b.cuh", "c.cpp", "d.cc", "e.cxx", "f.hpp", "g.h", "h.hip"}) write(name, kSync);
  for (const char* name :
       {"a.txt", "b.o", ".git/a.cu", "build/a.cu", "node_modules/a.cu", ".venv/a.cu", "x/__pycache__/a.cu"}) {
    write(name, kSync);
  }
  const SourceReport report = search();
  EXPECT_EQ(report.files, 8U);
  EXPECT_EQ(report.hits.size(), 8U);
  EXPECT_EQ(report.ignored, 5U);
}

TEST_F(SourceTree, FollowsNoLinks) {
  const test::TemporaryDirectory outside;
  test::write_text(outside.path("secret.cu"), kSync);
  fs::create_symlink(outside.path("secret.cu"), directory_.path("a.cu"));
  fs::create_directory_symlink(outside.path(), directory_.path("b"));
  fs::create_directory_symlink(".", directory_.path("loop"));
  const SourceReport report = search();
  EXPECT_EQ(report.links, 3U);
  EXPECT_TRUE(report.hits.empty());
}

TEST_F(SourceTree, SkipsAndCountsWhatItCannotSearch) {
  write("binary.cu", std::string(kSync) + std::string(1, '\0'));
  write("large.cu", std::string(kSync) + std::string(2000, ' '));
  ASSERT_EQ(mkfifo(directory_.path("pipe.cu").c_str(), 0600), 0);
  write("1/2/3/deep.cu", kSync);
  SearchLimits limits;
  limits.max_file_bytes = 1000;
  limits.max_depth = 2;
  const SourceReport report = search({}, limits);
  EXPECT_EQ(report.binary, 1U);
  EXPECT_EQ(report.too_large, 1U);
  EXPECT_EQ(report.unreadable, 1U);
  EXPECT_EQ(report.files, 0U);
  EXPECT_TRUE(report.hits.empty());
  EXPECT_TRUE(report.stopped.empty());
}

TEST_F(SourceTree, StopsAtLimitsAndSaysSo) {
  for (int i = 0; i < 5; ++i) write(std::to_string(i) + ".cu", kSync);
  SearchLimits limits;
  limits.max_files = 2;
  EXPECT_EQ(search({}, limits).hits.size(), 2U);
  EXPECT_EQ(search({}, limits).stopped, "the limit of files");
  limits = {};
  limits.max_entries = 4;
  EXPECT_EQ(search({}, limits).stopped, "the limit of directory entries");
  limits = {};
  limits.max_time = std::chrono::seconds(0);
  EXPECT_EQ(search({}, limits).stopped, "the limit of time");
  limits = {};
  limits.max_hits = 2;
  EXPECT_EQ(search({}, limits).hits.size(), 2U);
  EXPECT_EQ(search({}, limits).dropped, 3U);
}

TEST_F(SourceTree, MissingDirectoryIsAnError) {
  const auto found = search_directory(directory_.path("absent"), {}, {}, clock_);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("--source takes a directory"), std::string::npos);
  write("a.cu", kSync);
  EXPECT_FALSE(search_directory(directory_.path("a.cu"), {}, {}, clock_));
}

// A run with a wait between the launches of two kernels.
void record_waiting(test::HandMadeTrace& trace) {
  trace.begin("auto", "cuda");
  trace.launched("void spatial::filter<float>(float*)");
  trace.synchronized();
  trace.launched("_Z6refinePf");
  trace.dispatched("cuda");
}

TEST_F(SourceTree, JoinsHitsWithFindingsByKernel) {
  test::HandMadeTrace trace;
  record_waiting(trace);
  write("a.cu",
        "void unrelated() {\n  for (;;) cudaDeviceSynchronize();\n}\n"
        "void f(int n, int b) {\n  filter<<<n, b>>>(x);\n  cudaDeviceSynchronize();\n  k<<<1, 1>>>(x);\n}\n");
  write("b.py",
        "import cupy\nkernel = cupy.RawModule(code=code).get_function('refine')\n"
        "def g(x):\n    kernel((n,), (b,), (x,))\n    cupy.cuda.Stream.null.synchronize()\n");
  EXPECT_EQ(joined(trace), (std::vector<std::string>{"a.cu:6 synchronization: sync_between_launches",
                                                     "b.py:5 synchronization: sync_between_launches",
                                                     "a.cu:2 synchronization:", "a.cu:7 launch_shape:"}));
}

TEST_F(SourceTree, JoinsHitsWithFindingsByOperation) {
  test::HandMadeTrace trace;
  record_waiting(trace);
  write("a.py",
        "import kiln, torch\n"
        "def f(x):\n    with kiln.operation('test.pipeline', rows=3):\n        torch.cuda.synchronize()\n"
        "@kiln.operation('test.pipeline')\ndef g(x):\n    torch.cuda.synchronize()\n"
        "def h(x):\n    print('test')\n    torch.cuda.synchronize()\n");
  write("b.cu", "void on_cuda() {\n  cudaDeviceSynchronize();\n}\n");
  write("c.hpp",
        "#include <kiln/kiln.hpp>\nconst Operation pipeline(\"test.pipeline\", on_device(&device::on_cuda));\n");
  EXPECT_EQ(joined(trace),
            (std::vector<std::string>{"a.py:4 synchronization: sync_between_launches",
                                      "a.py:7 synchronization: sync_between_launches",
                                      "b.cu:2 synchronization: sync_between_launches", "a.py:10 synchronization:"}));
}

TEST_F(SourceTree, NameWithoutDotMustBeDeclared) {
  test::HandMadeTrace trace;
  trace.begin("auto", "cuda");
  trace.work().operation = "sum";
  trace.launched("first");
  trace.synchronized();
  trace.launched("second");
  trace.dispatched("cuda");
  write("a.py",
        "import kiln, torch\ndef f(x):\n    x.agg('sum')\n    torch.cuda.synchronize()\n"
        "def g(x):\n    with torch.profiler.record_function('sum'):\n        torch.cuda.synchronize()\n");
  const std::vector<std::string> found = joined(trace);
  EXPECT_EQ(found.front(), "a.py:7 synchronization: sync_between_launches");
  EXPECT_EQ(found.back(), "a.py:4 synchronization:");
}

}  // namespace
}  // namespace kiln::source
