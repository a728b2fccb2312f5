// SPDX-License-Identifier: Apache-2.0
// Compares the dependency set of a kernel that includes CUB with the files that strace saw its compiler open. They must
// be equal.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"
#include "support/processes/get_process.hpp"

namespace kiln::test {
namespace {

std::set<std::string> lines_after(const std::string& text, const std::string& word) {
  std::set<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(word + " ")) found.insert(line.substr(word.size() + 1));
  }
  return found;
}

std::string between(const std::string& line, char open, char close) {
  const std::size_t from = line.find(open);
  const std::size_t to = from == std::string::npos ? from : line.find(close, from + 1);
  return to == std::string::npos ? std::string() : line.substr(from + 1, to - from - 1);
}

// The files below the given directories that the worker and its threads opened, and those they failed to find.
struct Seen {
  std::set<std::string> opened;
  std::set<std::string> missing;
};
Seen parse_trace(const std::string& trace, const std::vector<std::string>& directories) {
  Seen seen;
  std::set<std::string> workers;
  std::map<std::string, std::string> begun;  // by process: a call that was interrupted by output of another process
  std::istringstream lines(trace);
  for (std::string line; std::getline(lines, line);) {
    const std::string pid = line.substr(0, line.find(' '));
    if (const std::size_t cut = line.find(" <unfinished ...>"); cut != std::string::npos) {
      begun[pid] = line.substr(0, cut);
      continue;
    }
    constexpr std::string_view kResumed = " resumed>";
    if (const std::size_t at = line.find(kResumed); at != std::string::npos) {
      line = begun[pid] + line.substr(at + kResumed.size());
    }
    if (line.find("execve(") != std::string::npos && line.find("kiln-worker") != std::string::npos) workers.insert(pid);
    if (!workers.contains(pid)) continue;
    const std::size_t result = line.rfind(" = ");
    if (result == std::string::npos) continue;
    if (line.find("clone") != std::string::npos) workers.insert(std::to_string(std::atoi(line.c_str() + result + 3)));
    const std::string path = between(line, '"', '"');
    const bool is_header = std::any_of(directories.begin(), directories.end(), [&](const std::string& directory) {
      return path.starts_with(directory + "/") && !path.ends_with(".so");
    });
    if (!is_header) continue;
    const bool failed = line[result + 3] == '-';
    if (failed && line.find("ENOENT") != std::string::npos) seen.missing.insert(path);
    if (!failed && line.find("open") != std::string::npos) seen.opened.insert(path);
  }
  return seen;
}

TEST(ClosureOfCub, MatchesFilesSeenByStrace) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  if (access("/usr/bin/strace", X_OK) != 0) GTEST_SKIP() << "no strace";
  const TemporaryDirectory directory;
  GetProcess process({{"cub"},
                      {{"KILN_CACHE_DIR", directory.path("cache")}, {"KILN_TEST_CLOSURE", "1"}},
                      {"strace", "-f", "-o", directory.path("trace"), "-e",
                       "trace=open,openat,stat,newfstatat,execve,clone,clone3,vfork"},
                      {}},
                     directory.path("out"));
  ASSERT_EQ(process.exit_code(), 0) << process.output();
  ASSERT_EQ(process.count("event published"), 1) << process.output();
  const Seen seen = parse_trace(read_text(directory.path("trace")), cub_roots());
  const auto read = lines_after(process.output(), "read");
  const auto absent = lines_after(process.output(), "absent");
  std::printf("figure: dependencies of CUB: %zu headers read, strace saw %zu; %zu missing names for %zu\n", read.size(),
              seen.opened.size(), absent.size(), seen.missing.size());
  EXPECT_GT(read.size(), 100U);
  EXPECT_EQ(read, seen.opened);
  // Each name that was not found is in the dependency set, directly or through a missing parent directory.
  for (const std::string& path : seen.missing) {
    bool covered = absent.contains(path);
    for (std::size_t slash = path.rfind('/'); !covered && slash != std::string::npos && slash > 0;
         slash = path.rfind('/', slash - 1)) {
      covered = absent.contains(path.substr(0, slash + 1));
    }
    EXPECT_TRUE(covered) << path;
  }
}

}  // namespace
}  // namespace kiln::test
