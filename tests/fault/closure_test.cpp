// The closure of a kernel that includes CUB against what strace saw its compiler open: no exceptions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "support/get_process.hpp"
#include "support/temporary_directory.hpp"
#include "support/toolkit.hpp"

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

// What the worker and its threads opened, and what they looked for in vain, under the given folders.
struct Seen {
  std::set<std::string> opened;
  std::set<std::string> missing;
};
Seen parse_trace(const std::string& trace, const std::vector<std::string>& folders) {
  Seen seen;
  std::set<std::string> workers;
  std::map<std::string, std::string> begun;  // by process: a call in whose middle another did something
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
    const bool is_header = std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
      return path.starts_with(folder + "/") && !path.ends_with(".so");
    });
    if (!is_header) continue;
    const bool failed = line[result + 3] == '-';
    if (failed && line.find("ENOENT") != std::string::npos) seen.missing.insert(path);
    if (!failed && line.find("open") != std::string::npos) seen.opened.insert(path);
  }
  return seen;
}

TEST(ClosureOfCub, EqualsWhatStraceSawOpened) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  if (access("/usr/bin/strace", X_OK) != 0) GTEST_SKIP() << "no strace";
  const TemporaryDirectory folder;
  GetProcess process({{"cub"},
                      {{"KILN_CACHE_DIR", folder.path("cache")}, {"KILN_TEST_CLOSURE", "1"}},
                      {"strace", "-f", "-o", folder.path("trace"), "-e",
                       "trace=open,openat,stat,newfstatat,execve,clone,clone3,vfork"},
                      {}},
                     folder.path("out"));
  ASSERT_EQ(process.exit_code(), 0) << process.output();
  ASSERT_EQ(process.count("event published"), 1) << process.output();
  const Seen seen = parse_trace(slurp(folder.path("trace")), cub_roots());
  const auto read = lines_after(process.output(), "read");
  const auto absent = lines_after(process.output(), "absent");
  std::printf("figure: closure of CUB: %zu headers read, strace saw %zu; %zu absent names for %zu\n", read.size(),
              seen.opened.size(), absent.size(), seen.missing.size());
  EXPECT_GT(read.size(), 100U);
  EXPECT_EQ(read, seen.opened);
  // Each name that was looked for in vain is in the closure, itself or by a folder above it that is not there.
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
