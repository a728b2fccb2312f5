// Precompiled headers among the processes of a host: who makes them, who can use what another made, and where there are
// none. Every process is a real one, and the headers are CUB's.
#include <gtest/gtest.h>
#include <sys/personality.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "bench/refuse_personality.hpp"
#include "support/get_process.hpp"
#include "support/temporary_directory.hpp"
#include "support/toolkit.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using bench::refuse_personality;

bool switch_randomisation_off() { return personality(ADDR_NO_RANDOMIZE) != -1; }

// The digest and the time of a unit's artifact, from the line that says that it came.
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
            folder_.path("out-" + std::to_string(++outputs_))};
  }
  std::string cache() const { return folder_.path("cache"); }
  std::string shelf() const { return cache() + "/v1/pch"; }
  int large_files() const {
    const auto files = files_below(shelf());
    return static_cast<int>(
        std::count_if(files.begin(), files.end(), [](const std::string& f) { return f.ends_with(".pch"); }));
  }
  std::uintmax_t megabytes() const {
    std::uintmax_t bytes = 0;
    for (const std::string& file : files_below(shelf())) bytes += fs::file_size(file);
    return bytes >> 20;
  }
  // Everything but the precompiled headers goes, so that the next process compiles.
  void forget_artifacts() {
    fs::rename(shelf(), folder_.path("shelf"));
    fs::remove_all(cache());
    fs::create_directories(cache() + "/v1");
    fs::permissions(cache(), fs::perms(0700));
    fs::permissions(cache() + "/v1", fs::perms(0700));
    fs::rename(folder_.path("shelf"), shelf());
  }

  TemporaryDirectory folder_;
  int outputs_ = 0;
};

TEST_F(PchHost, TwoProgramsAtOnceMakeEachOnce) {
  GetProcess one = start({"1", "2", "3", "4"});
  GetProcess two = start({"4", "3", "2", "1"});
  ASSERT_EQ(one.exit_code(), 0) << one.output();
  ASSERT_EQ(two.exit_code(), 0) << two.output();
  const auto both = [&](const char* line) { return one.count(line) + two.count(line); };
  EXPECT_EQ(both("event headers_kept"), 1) << one.output() << two.output();
  EXPECT_EQ(both("event headers_dropped"), 0);
  EXPECT_EQ(both("event compiled"), 4);
  EXPECT_EQ(large_files(), 1);
  for (const char* unit : {"1", "2", "3", "4"}) EXPECT_EQ(got(one, unit).first, got(two, unit).first) << unit;
  std::printf("figure: two programs, four units, one cold cache: compiles=%d headers_kept=%d headers_used=%d, %ju MB\n",
              both("event compiled"), both("event headers_kept"), both("event headers_used"), megabytes());
}

// One process makes it; each of the others finds it, makes none and uses it for every unit.
TEST_F(PchHost, WhatOneProcessMadeServesOthersWithOrWithoutRandomisation) {
  GetProcess maker = start({"1", "2", "3"});
  ASSERT_EQ(maker.exit_code(), 0) << maker.output();
  ASSERT_EQ(maker.count("event headers_kept"), 1) << maker.output();
  const double full = got(maker, "1").second;
  const std::pair<const char*, std::function<bool()>> manners[] = {
      {"as it is", {}},
      {"randomisation off", switch_randomisation_off},
      {"personality refused", refuse_personality},
      {"randomisation off, then personality refused",
       [] { return switch_randomisation_off() && refuse_personality(); }},
  };
  for (const auto& [name, prepare] : manners) {
    SCOPED_TRACE(name);
    forget_artifacts();
    GetProcess user = start({"1", "2", "3"}, "on", prepare);
    ASSERT_EQ(user.exit_code(), 0) << user.output();
    EXPECT_EQ(user.count("event compiled"), 3) << user.output();
    EXPECT_EQ(user.count("event headers_used"), 3) << user.output();
    EXPECT_EQ(user.count("event headers_kept") + user.count("event headers_dropped"), 0) << user.output();
    double most = 0;
    for (const char* unit : {"1", "2", "3"}) {
      EXPECT_EQ(got(user, unit).first, got(maker, unit).first) << unit << ": other bytes";
      if (*unit != '1') most = std::max(most, got(user, unit).second);
    }
    std::printf(
        "figure: kept precompiled header, %s: headers_kept=0 headers_used=%d of 3, %.0f ms at most where a full "
        "compile took %.0f\n",
        name, user.count("event headers_used"), most, full);
  }
}

TEST_F(PchHost, MadeWithoutRandomisationServesWhereItCannotBeSwitchedOff) {
  GetProcess maker = start({"1", "2"}, "on", switch_randomisation_off);
  ASSERT_EQ(maker.exit_code(), 0) << maker.output();
  ASSERT_EQ(maker.count("event headers_kept"), 1) << maker.output();
  GetProcess user = start({"3"}, "on", refuse_personality);
  ASSERT_EQ(user.exit_code(), 0) << user.output();
  EXPECT_EQ(user.count("event headers_used"), 1) << user.output();
}

TEST_F(PchHost, OffMakesNoFile) {
  GetProcess process = start({"small1", "small2", "small3"}, "off");
  ASSERT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("event compiled"), 3);
  EXPECT_EQ(process.count("event headers_"), 0) << process.output();
  EXPECT_FALSE(fs::exists(shelf()));
}

TEST_F(PchHost, ThereAreNoneWithoutWorkers) {
  GetProcess none = start({"small1", "small2", "small3"}, "on", {}, {{"KILN_JOBS", "0"}});
  GetProcess missing = start({"small1", "small2", "small3"}, "on", {}, {{"KILN_WORKER", folder_.path("none")}});
  for (GetProcess* process : {&none, &missing}) {
    ASSERT_EQ(process->exit_code(), 0) << process->output();
    EXPECT_EQ(process->count("event headers_"), 0) << process->output();
  }
  EXPECT_FALSE(fs::exists(shelf()));
}

TEST_F(PchHost, InAContainerThereAreNoneUnlessSomebodyWantsThem) {
  GetProcess process = start({"small1", "small2"}, "", {}, {{"container", "podman"}});
  ASSERT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("event headers_"), 0) << process.output();
  EXPECT_FALSE(fs::exists(shelf()));
  GetProcess wanted = start({"small3", "small4"}, "on", {}, {{"container", "podman"}});
  ASSERT_EQ(wanted.exit_code(), 0) << wanted.output();
  EXPECT_EQ(wanted.count("event headers_kept"), 1) << wanted.output();
}

TEST_F(PchHost, ThatAreMoreThanTheBoundAreNotKept) {
  GetProcess process = start({"small1", "small2", "small3"}, "on", {}, {{"KILN_PCH_MAX_SIZE", "1M"}});
  ASSERT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.count("event headers_kept"), 0) << process.output();
  EXPECT_GE(process.count("event headers_unavailable"), 1) << process.output();
  EXPECT_EQ(large_files(), 0);
}

}  // namespace
}  // namespace kiln::test
