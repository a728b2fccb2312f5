// SPDX-License-Identifier: Apache-2.0
// A program can exit while kiln compiles for it: it exits as it would without kiln and leaves no process behind.
#include <gtest/gtest.h>

#include <string>

#include "base/process/process.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/workers.hpp"
#include "support/processes/eventually.hpp"

namespace kiln {
namespace {

using std::chrono::seconds;

Process start(const std::string& cache, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), KILN_EXIT_MAIN);
  std::vector<std::string> environment = current_environment();
  environment.push_back("KILN_CACHE_DIR=" + cache);
  return Process::spawn({arguments, environment, {}}).value();
}

void expect_clean_end(const char* how, const char* until) {
  test::TemporaryDirectory cache;
  Process program = start(cache.path(), {"opencl", how, cache.path(), until});
  const auto exit = program.wait(seconds(60));
  ASSERT_TRUE(exit.has_value()) << how << ", " << until << ": it does not exit";
  EXPECT_TRUE(exit->succeeded()) << how << ", " << until << ": code " << exit->code << ", signal " << exit->signal;
}

TEST(Exit, IsCleanDuringInProcessCompiles) {
  for (const char* until : {"0", "60", "compiled"}) expect_clean_end("return", until);
  expect_clean_end("exit", "300");
}

// During the first compile of a library, its exit handlers are not registered yet, so only an exit of the main thread
// is safe; docs/how-to/embed-cpp.md documents this.
TEST(Exit, FromOtherThreadIsCleanAfterFirstCompile) { expect_clean_end("thread", "compiled"); }

TEST(Exit, TerminatesWorkersInsteadOfWaiting) {
  test::TemporaryDirectory directory;
  // About twenty seconds of compiling each, so that the compiles are in progress.
  std::string slow;
  for (int i = 0; i < 40000; ++i) {
    slow += "__device__ inline int f" + std::to_string(i) + "(int x) { return x * x + " + std::to_string(i) + "; }\n";
  }
  test::write_text(directory.path("slow.h"), slow);
  Process program = start(directory.path("cache"), {"cuda", "return", directory.path(), "700"});
  const auto exit = program.wait(seconds(20));
  ASSERT_TRUE(exit.has_value()) << "the process waits for its workers";
  EXPECT_TRUE(exit->succeeded());
  EXPECT_TRUE(test::eventually([&] { return test::workers_of(program.id()).empty(); }, seconds(10)));
}

}  // namespace
}  // namespace kiln
