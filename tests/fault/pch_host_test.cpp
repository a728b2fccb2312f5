// SPDX-License-Identifier: Apache-2.0
// Precompiled headers among the processes of a host: which process creates them, which can use those of another, and
// when there are none. Every process is a real one, and the headers are those of CUB.
#include <gtest/gtest.h>
#include <sys/personality.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "base/process/system_info.hpp"
#include "bench/support/deny_personality.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"
#include "support/processes/get_process.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using bench::deny_personality;

bool switch_randomisation_off() { return personality(ADDR_NO_RANDOMIZE) != -1; }

// Returns the digest and the time of a unit's artifact, from the line that reports it.
std::pair<std::string, double> got(const GetProcess& process, const std::string& number) {
  std::istringstream lines(process.output());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, unit, digest, ms;
    double time = 0;
    if (words >> word >> unit >> digest >> ms >> time && word == "got" && unit == number) return {digest, time};
  }
  return {};
}

class PchHost : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  }
  GetProcess start(std::vector<std::string> units, const std::string& pch = "on", std::function<bool()> prepare = {},
                   std::map<std::string, std::string> more = {}) {
    more.emplace("KILN_CACHE_DIR", cache());
    if (!pch.empty()) more.emplace("KILN_PCH", pch);
    return {{std::move(units), std::move(more), {}, std::move(prepare)},
            directory_.path("out-" + std::to_string(++outputs_))};
  }
  std::string cache() const { return directory_.path("cache"); }
  std::string pch_cache() const { return cache() + "/v1/pch"; }
  int large_files() const {
    const auto files = files_below(pch_cache());
    return static_cast<int>(
        std::count_if(files.begin(), files.end(), [](const std::string& f) { return f.ends_with(".pch"); }));
  }
  std::uintmax_t megabytes() const {
    std::uintmax_t bytes = 0;
    for (const std::string& file : files_below(pch_cache())) bytes += fs::file_size(file);
    return bytes >> 20;
  }
  // Removes everything except the precompiled headers, so that the next process compiles.
  void forget_artifacts() {
    fs::rename(pch_cache(), directory_.path("moved"));
    fs::remove_all(cache());
    fs::create_directories(cache() + "/v1");
    fs::permissions(cache(), fs::perms(0700));
    fs::permissions(cache() + "/v1", fs::perms(0700));
    fs::rename(directory_.path("moved"), pch_cache());
  }

  TemporaryDirectory directory_;
  int outputs_ = 0;
};

TEST_F(PchHost, ConcurrentProgramsCreateEachPchOnce) {
  GetProcess one = start({"1", "2", "3", "4"});
  GetProcess two = start({"4", "3", "2", "1"});
  ASSERT_EQ(one.exit_code(), 0) << one.output();
  ASSERT_EQ(two.exit_code(), 0) << two.output();
  const auto both = [&](const char* line) { return one.count(line) + two.count(line); };
  EXPECT_EQ(both("event pch_created"), 1) << one.output() << two.output();
  EXPECT_EQ(both("event pch_dropped"), 0);
  EXPECT_EQ(both("event compiled"), 4);
  EXPECT_EQ(large_files(), 1);
  for (const char* unit : {"1", "2", "3", "4"}) EXPECT_EQ(got(one, unit).first, got(two, unit).first) << unit;
  std::printf("figure: two programs, four units, one cold cache: compiles=%d pch_created=%d pch_used=%d, %ju MB\n",
              both("event compiled"), both("event pch_created"), both("event pch_used"), megabytes());
}

// One process creates it. Each of the others finds it, creates none and uses it for every unit.
TEST_F(PchHost, PchServesOtherProcessesWithAndWithoutAslr) {
  GetProcess maker = start({"1", "2", "3"});
  ASSERT_EQ(maker.exit_code(), 0) << maker.output();
  ASSERT_EQ(maker.count("event pch_created"), 1) << maker.output();
  const double full = got(maker, "1").second;
  const std::pair<const char*, std::function<bool()>> limits[] = {
      {"default", {}},
      {"randomisation off", switch_randomisation_off},
      {"personality denied", deny_personality},
      {"ASLR off, then personality denied", [] { return switch_randomisation_off() && deny_personality(); }},
  };
  for (const auto& [name, prepare] : limits) {
    SCOPED_TRACE(name);
    forget_artifacts();
    GetProcess user = start({"1", "2", "3"}, "on", prepare);
    ASSERT_EQ(user.exit_code(), 0) << user.output();
    EXPECT_EQ(user.count("event compiled"), 3) << user.output();
    EXPECT_EQ(user.count("event pch_used"), 3) << user.output();
    EXPECT_EQ(user.count("event pch_created") + user.count("event pch_dropped"), 0) << user.output();
    double maximum = 0;
    for (const char* unit : {"1", "2", "3"}) {
      EXPECT_EQ(got(user, unit).first, got(maker, unit).first) << unit << ": other bytes";
      if (*unit != '1') maximum = std::max(maximum, got(user, unit).second);
    }
    std::printf(
        "figure: stored precompiled header, %s: pch_created=0 pch_used=%d of 3, %.0f ms at most, and %.0f for a "
        "full compile\n",
        name, user.count("event pch_used"), maximum, full);
  }
}

TEST_F(PchHost, PchCreatedWithoutAslrServesProcessesWithAslr) {
  GetProcess maker = start({"1", "2"}, "on", switch_randomisation_off);
  ASSERT_EQ(maker.exit_code(), 0) << maker.output();
  ASSERT_EQ(maker.count("event pch_created"), 1) << maker.output();
  GetProcess user = start({"3"}, "on", deny_personality);
  ASSERT_EQ(user.exit_code(), 0) << user.output();
  EXPECT_EQ(user.count("event pch_used"), 1) << user.output();
}

TEST_F(PchHost, OffCreatesNoFile) {
  GetProcess process = start({"small1", "small2", "small3"}, "off");
  ASSERT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("event compiled"), 3);
  EXPECT_EQ(process.count("event headers_"), 0) << process.output();
  EXPECT_FALSE(fs::exists(pch_cache()));
}

TEST_F(PchHost, NotCreatedWithoutWorkers) {
  GetProcess none = start({"small1", "small2", "small3"}, "on", {}, {{"KILN_JOBS", "0"}});
  GetProcess missing = start({"small1", "small2", "small3"}, "on", {}, {{"KILN_WORKER", directory_.path("none")}});
  for (GetProcess* process : {&none, &missing}) {
    ASSERT_EQ(process->exit_code(), 0) << process->output();
    EXPECT_EQ(process->count("event headers_"), 0) << process->output();
  }
  EXPECT_FALSE(fs::exists(pch_cache()));
}

TEST_F(PchHost, HasNoNameInContainerUnlessEnabled) {
  const std::map<std::string, std::string> container{{"container", "podman"}, {"XDG_RUNTIME_DIR", directory_.path()}};
  GetProcess process = start({"small1", "small2", "small3"}, "", {}, container);
  ASSERT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("event pch_created"), 1) << process.output();
  EXPECT_EQ(process.count("event pch_used"), 1) << process.output();
  EXPECT_FALSE(fs::exists(pch_cache()));
  GetProcess wanted = start({"small4", "small5"}, "on", {}, container);
  ASSERT_EQ(wanted.exit_code(), 0) << wanted.output();
  EXPECT_EQ(wanted.count("event pch_created"), 1) << wanted.output();
}

TEST_F(PchHost, InRuntimeDirectoryInMemoryInContainer) {
  const TemporaryDirectory memory("/dev/shm");
  if (memory.path().empty() || std::min(memory_limit() / 10, available_memory() / 4) < (std::uint64_t{1} << 30) ||
      fs::space(memory.path()).available >> 30 == 0) {
    GTEST_SKIP() << "too little memory, or no directory in memory";
  }
  const std::map<std::string, std::string> container{{"container", "podman"}, {"XDG_RUNTIME_DIR", memory.path()}};
  GetProcess process = start({"small1", "small2", "small3"}, "", {}, container);
  ASSERT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("event pch_created"), 1) << process.output();
  EXPECT_EQ(process.count("event pch_used"), 1) << process.output();
  EXPECT_FALSE(fs::exists(pch_cache()));
  const auto files = files_below(memory.path("kiln/pch"));
  const auto count = [&](const char* suffix) {
    return std::count_if(files.begin(), files.end(), [&](const std::string& file) { return file.ends_with(suffix); });
  };
  EXPECT_EQ(count(".pch"), 1);
  EXPECT_EQ(count(".tmp"), 0);
}

TEST_F(PchHost, NotStoredIfLargerThanLimit) {
  GetProcess process = start({"small1", "small2", "small3"}, "on", {}, {{"KILN_PCH_MAX_SIZE", "1M"}});
  ASSERT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("event pch_created"), 0) << process.output();
  EXPECT_GE(process.count("event pch_unavailable"), 1) << process.output();
  EXPECT_EQ(large_files(), 0);
}

}  // namespace
}  // namespace kiln::test
