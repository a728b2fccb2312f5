// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <iterator>

#include "apps/run_kiln.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class Cache : public KilnProgram {
 protected:
  void SetUp() override {
    KilnProgram::SetUp();
    write("k.cu", kSmallKernel);
    const Ran ran = run({"compile", "k.cu", "--arch", "sm_75,sm_80", "--entry", "k", "-o", "out/", "--json"});
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    key_ = ran.json()["results"][1]["key"];
  }
  static std::string read_text(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::uint64_t entries() { return run({"cache", "stats", "--json"}).json()["caches"][0]["entries"]; }

  std::string key_;  // key of the sm_80 entry
};

TEST_F(Cache, StatsCountsEntriesAndBytes) {
  const auto cache = run({"cache", "stats", "--json"}).json()["caches"][0];
  EXPECT_EQ(cache["root"], path("cache"));
  EXPECT_EQ(cache["writable"], true);
  EXPECT_EQ(cache["entries"], 2);
  EXPECT_GT(cache["bytes"].get<int>(), 5000);
  EXPECT_EQ(cache["max_bytes"], 20ull << 30);
}

TEST_F(Cache, StatsCountHitsMissesAndTimeSavedByProgramAndDay) {
  ASSERT_EQ(run({"compile", "k.cu", "--arch", "sm_75,sm_80", "--entry", "k"}).exit_code, 0);
  write("bad.cu", "not C++");
  ASSERT_NE(run({"compile", "bad.cu", "--arch", "sm_80"}).exit_code, 0);
  std::uint64_t hits = 0, compiled = 0, failed = 0, saved = 0;
  // Two days if the test runs at midnight.
  const nlohmann::json stats = run({"cache", "stats", "--json"}).json();
  for (const auto& each : stats["caches"][0]["activity"]) {
    EXPECT_EQ(each["program"], "kiln");
    EXPECT_EQ(each["day"].get<std::string>().size(), 10u) << each;
    hits += each["hits"]["disk"].get<std::uint64_t>();
    compiled += each["compiled"].get<std::uint64_t>();
    failed += each["failed"].get<std::uint64_t>();
    saved += each["saved_ms"].get<std::uint64_t>();
  }
  EXPECT_EQ(hits, 2u);
  EXPECT_EQ(compiled, 2u);
  EXPECT_EQ(failed, 1u);
  EXPECT_GT(saved, 0u);
  const Ran text = run({"cache", "stats"});
  EXPECT_NE(text.out.find("PROGRAM  HITS  MISSES  TIME SAVED"), std::string::npos) << text.out;
}

TEST_F(Cache, LsListsEveryEntry) {
  const auto entries = run({"cache", "ls", "--json"}).json()["entries"];
  ASSERT_EQ(entries.size(), 2u);
  for (const auto& entry : entries) EXPECT_EQ(entry["unit"], "k.cu");
  const Ran text = run({"cache", "ls"});
  EXPECT_NE(text.out.find(key_.substr(0, 12)), std::string::npos) << text.out;
}

TEST_F(Cache, ShowAcceptsKeyPrefix) {
  const Ran ran = run({"cache", "show", key_.substr(0, 10), "--json"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.json()["key"], key_);
  EXPECT_EQ(ran.json()["target"], "sm_80");
  EXPECT_EQ(ran.json()["entries"]["k"], "k");
}

TEST_F(Cache, InvalidKeyReturnsTwoAndMissingKeyReturnsOne) {
  EXPECT_EQ(run({"cache", "show", "xyz"}).exit_code, 2);
  EXPECT_EQ(run({"cache", "show", std::string(64, '0')}).exit_code, 1);
}

TEST_F(Cache, ExtractWritesTheCompiledCode) {
  ASSERT_EQ(run({"cache", "extract", key_, "-o", "x.cubin"}).exit_code, 0);
  EXPECT_EQ(read_text("x.cubin"), read_text("out/k.sm_80.cubin"));
  EXPECT_EQ(run({"cache", "extract", key_, "-o", "-"}).out, read_text("out/k.sm_80.cubin"));
}

TEST_F(Cache, VerifyRemovesCorruptEntriesAndReturnsOne) {
  EXPECT_EQ(run({"cache", "verify"}).exit_code, 0);
  std::string victim;
  for (const auto& file : fs::recursive_directory_iterator("cache")) {
    if (file.path().filename().string().find(key_) != std::string::npos) victim = file.path().string();
  }
  ASSERT_FALSE(victim.empty());
  std::string bytes = read_text(victim);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  fs::remove(victim);
  std::ofstream(victim, std::ios::binary) << bytes;
  const Ran ran = run({"cache", "verify", "--json"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.json()["caches"][0]["corrupt"], 1);
  EXPECT_EQ(ran.json()["caches"][0]["valid"], 1);
  EXPECT_EQ(run({"cache", "verify"}).exit_code, 0);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(Cache, GcEnforcesMaxSize) {
  EXPECT_EQ(run({"cache", "gc", "--json"}).json()["caches"][0]["removed_files"], 0);
  const Ran ran = run({"cache", "gc", "--max-size", "1K", "--json"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_LT(entries(), 2u);
  EXPECT_EQ(run({"cache", "gc", "--max-size", "much"}).exit_code, 2);
}

TEST_F(Cache, ClearRequiresConfirmationOrYes) {
  const Ran asked = run({"cache", "clear"});
  EXPECT_EQ(asked.exit_code, 2);
  EXPECT_TRUE(asked.says("--yes"));
  EXPECT_EQ(entries(), 2u);
  EXPECT_EQ(run({"cache", "clear", "--yes"}).exit_code, 0);
  EXPECT_EQ(entries(), 0u);
}

TEST_F(Cache, ClearRemovesResultsOfLibraryChecks) {
  fs::create_directories("cache/v1/checks");
  const std::string result = "cache/v1/checks/" + std::string(64, 'a') + ".kpcv";
  write(result, "a rejection");
  EXPECT_EQ(run({"cache", "clear", "--yes"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(result));
}

TEST_F(Cache, CommandsWorkWhenCachingIsDisabled) {
  EXPECT_EQ(run({"cache", "stats", "--json"}, {{"KILN_DISABLE", "1"}}).json()["caches"][0]["entries"], 2);
}

TEST_F(Cache, LaterCachePathDirectoriesAreReadOnly) {
  const std::map<std::string, std::string> variables = {{"KILN_CACHE_PATH", path("mine") + ":" + path("cache")}};
  const Ran ran = run({"compile", "k.cu", "--arch", "sm_80", "--entry", "k", "--json"}, variables);
  EXPECT_EQ(origins(ran), std::vector<std::string>{"disk"});
  EXPECT_EQ(run({"cache", "clear", "--yes"}, variables).exit_code, 0);
  EXPECT_EQ(entries(), 2u);
}

}  // namespace
}  // namespace kiln::test
