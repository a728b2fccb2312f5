// A program may end while kiln compiles for it: it ends as it would have without, and leaves nobody behind.
#include <gtest/gtest.h>

#include <string>

#include "base/process.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"
#include "support/workers.hpp"

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
  ASSERT_TRUE(exit.has_value()) << how << ", " << until << ": it does not end";
  EXPECT_TRUE(exit->clean()) << how << ", " << until << ": code " << exit->code << ", signal " << exit->signal;
}

TEST(Exit, InTheMiddleOfCompilesInThisProcessIsClean) {
  for (const char* until : {"0", "60", "compiled"}) expect_clean_end("return", until);
  expect_clean_end("exit", "300");
}

// During the very first compile of a library nobody can be ahead of the exit handlers that it is about to register,
// unless by the main thread's own end; docs/embedding.md says so.
TEST(Exit, ByAnotherThreadThanTheMainOneIsCleanAfterTheFirstCompile) { expect_clean_end("thread", "compiled"); }

TEST(Exit, EndsWorkersInsteadOfWaitingForThem) {
  test::TemporaryDirectory folder;
  // Some twenty seconds of compiling each, to be sure that it is under way.
  std::string slow;
  for (int i = 0; i < 40000; ++i) {
    slow += "__device__ inline int f" + std::to_string(i) + "(int x) { return x * x + " + std::to_string(i) + "; }\n";
  }
  test::spit(folder.path("slow.h"), slow);
  Process program = start(folder.path("cache"), {"cuda", "return", folder.path(), "700"});
  const auto exit = program.wait(seconds(20));
  ASSERT_TRUE(exit.has_value()) << "it waits for its workers";
  EXPECT_TRUE(exit->clean());
  EXPECT_TRUE(test::workers_of(program.id()).empty());
}

}  // namespace
}  // namespace kiln
