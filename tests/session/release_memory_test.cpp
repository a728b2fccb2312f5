// SPDX-License-Identifier: Apache-2.0
// The memory that a session keeps for a program that generates an unbounded number of kernels.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace kiln::test {
namespace {

/// Returns the growth in megabytes of release_memory_main with these arguments: UNITS, and --keep to release none.
double growth(const std::string& arguments) {
  const std::string command = std::string(KILN_RELEASE_MEMORY_MAIN) + " " + arguments + " 2>/dev/null";
  FILE* const output = popen(command.c_str(), "r");
  if (output == nullptr) return 1e9;
  char line[512] = {};
  const bool said = std::fgets(line, sizeof line, output) != nullptr;
  const bool well = pclose(output) == 0 && said;
  std::printf("%s", line);
  const std::string text = line;
  const std::size_t at = text.find("grown by ");
  return well && at != std::string::npos ? std::strtod(text.c_str() + at + 9, nullptr) : 1e9;
}

// The sources and artifacts of 1000 units are 160 MB.
TEST(ReleaseMemory, ReleasedUnitsUseNoMemory) { EXPECT_LT(growth("1000"), 40); }

TEST(ReleaseMemory, LoadedUnitsKeepNoBytesAndNoSource) { EXPECT_LT(growth("600 --keep"), 40); }

}  // namespace
}  // namespace kiln::test
