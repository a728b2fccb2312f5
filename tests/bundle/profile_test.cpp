// SPDX-License-Identifier: Apache-2.0
#include "bundle/profile.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include <gtest/gtest.h>

#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/forked.hpp"

namespace kiln::test {
namespace {

Unit unit_called(const std::string& name) { return Unit::cuda(name, "__global__ void k() {}\n").with_entry("k"); }

ProfileEntry asked_for(const std::string& name) { return {name, "cuda", unit_called(name).key(), Target::sm(80)}; }

class ProfileFile : public testing::Test {
 protected:
  Profile read() const {
    Result<Profile> profile = read_profile(path_);
    EXPECT_TRUE(profile.has_value()) << profile.error().message;
    return profile.has_value() ? std::move(*profile) : Profile();
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.path("profile.jsonl");
  EventLog events_;
};

TEST(Profile, LineHasOnlyNameKindKeyAndTarget) {
  const Unit unit = unit_called("pip.cu");
  EXPECT_EQ(profile_line({"pip.cu", "cuda", unit.key(), Target::sm(80)}),
            R"({"kiln":"profile 1","unit":"pip.cu","kind":"cuda","key":")" + unit.key().hex() +
                R"(","target":"sm_80"})"
                "\n");
  EXPECT_EQ(profile_line({"blur.cl", "opencl", unit.key(), Target::opencl("pthread-x\ny")}),
            R"({"kiln":"profile 1","unit":"blur.cl","kind":"opencl","key":")" + unit.key().hex() +
                R"(","device":"pthread-x\ny"})"
                "\n");
}

TEST(Profile, RoundTripsAnyNames) {
  std::vector<ProfileEntry> all;
  for (const char* name : {"pip.cu", "a \"quoted\" \\ name", "line\nend", "tab\t\x01", "gr\xC3\xB6\xC3\x9F"}) {
    for (const char* target : {"sm_80", "sm_90a", "sm_100f", "compute_90", "lto_90", "cccl_90"}) {
      all.push_back({name, "cuda", unit_called(name).key(), Target::parse(target).value()});
    }
    all.push_back({name, "opencl", unit_called(name).key(), Target::opencl("a device\n\"of\" ours")});
  }
  std::string text;
  for (const ProfileEntry& asked : all) text += profile_line(asked);
  const Profile profile = parse_profile(text);
  EXPECT_EQ(profile.entries, all);
  EXPECT_EQ(profile.lines, all.size());
  EXPECT_EQ(profile.skipped_lines, 0U);
}

TEST(Profile, ReplacesInvalidUtf8AndTruncatesLongNames) {
  const std::string bad = profile_line({"a\xFF\xC3", "cuda", unit_called("a").key(), Target::sm(80)});
  EXPECT_EQ(parse_profile(bad).entries.at(0).unit, "a\xEF\xBF\xBD\xEF\xBF\xBD");
  const std::string endless =
      profile_line({std::string(1 << 20, '\x01'), "cuda", unit_called("a").key(), Target::sm(80)});
  EXPECT_EQ(parse_profile(endless).entries.size(), 1U) << "control characters need the longest escapes";
}

TEST(Profile, CountsInvalidLinesAndContinues) {
  const std::string good = profile_line(asked_for("good"));
  const std::string key = asked_for("good").key.hex();
  const std::string begin = R"({"kiln":"profile 1","unit":"u","kind":"cuda","key":")";
  const std::vector<std::string> bad = {
      "no JSON",
      "[]",
      "7",
      "null",
      std::string(100, '['),
      begin + key + R"(","target":"sm_80","deep":)" + std::string(33, '[') + std::string(33, ']') + "}",
      good.substr(0, good.size() / 2),
      R"({"kiln":"profile 2","unit":"u","kind":"cuda","key":")" + key + R"(","target":"sm_80"})",
      R"({"unit":"u","kind":"cuda","key":")" + key + R"(","target":"sm_80"})",
      begin + key.substr(1) + R"(","target":"sm_80"})",
      begin + key + R"("})",
      begin + key + R"(","target":"sm_eighty"})",
      begin + key + R"(","target":80})",
      begin + key + R"(","device":""})",
      begin + key + R"(","device":"d","target":"sm_80"})",
      begin + key + R"(","target":"sm_80","pad":")" + std::string(64 << 10, 'x') + R"("})",
  };
  std::string text = "\n \r\n";
  for (const std::string& line : bad) text += line + '\n';
  text += good;
  const Profile profile = parse_profile(text);
  EXPECT_EQ(profile.skipped_lines, bad.size());
  EXPECT_EQ(profile.entries, std::vector<ProfileEntry>{asked_for("good")});
  EXPECT_EQ(parse_profile(begin + key + R"(","target":"sm_80","later":{"a":[1]}})").entries.size(), 1U)
      << "members of later versions are ignored";
}

TEST(Profile, RemovesDuplicatesAndKeepsOrder) {
  const std::string text =
      profile_line(asked_for("b")) + profile_line(asked_for("a")) + profile_line(asked_for("b")) + "\r\n";
  const Profile profile = parse_profile(text);
  EXPECT_EQ(profile.entries, (std::vector<ProfileEntry>{asked_for("b"), asked_for("a")}));
  EXPECT_EQ(profile.lines, 3U);
}

TEST_F(ProfileFile, MissingFileIsErrorWithPath) {
  const Result<Profile> profile = read_profile(path_);
  ASSERT_FALSE(profile.has_value());
  EXPECT_NE(profile.error().message.find("profile.jsonl"), std::string::npos);
}

TEST_F(ProfileFile, FileLargerThan256MiBIsRejectedUnread) {
  write_text(path_, "");
  ASSERT_EQ(truncate(path_.c_str(), (off_t{256} << 20) + 1), 0);
  const Result<Profile> profile = read_profile(path_);
  ASSERT_FALSE(profile.has_value());
  EXPECT_NE(profile.error().message.find("256 MiB"), std::string::npos);
}

TEST_F(ProfileFile, IsCreatedByFirstRequest) {
  ProfileRecorder recorder(path_, events_.emitter());
  EXPECT_FALSE(std::filesystem::exists(path_));
  recorder.note(unit_called("a"), Target::sm(80));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(ProfileFile, RecordsEachRequestOnce) {
  ProfileRecorder recorder(path_, events_.emitter());
  for (int i = 0; i < 3; ++i) {
    recorder.note(unit_called("a"), Target::sm(80));
    recorder.note(unit_called("a"), Target::sm(90));
    recorder.note(unit_called("b"), Target::sm(80));
  }
  EXPECT_EQ(read().lines, 3U);
  EXPECT_EQ(events_.count(Event::Kind::RecordUnavailable), 0U);
}

TEST_F(ProfileFile, RecordsAlgorithmWithItsBuildTarget) {
  ProfileRecorder recorder(path_, events_.emitter());
  recorder.note(Unit::of_kind("cccl", "sort", "{}"), Target::sm(90));
  ASSERT_EQ(read().entries.size(), 1U);
  EXPECT_EQ(read().entries[0].target.name(), "cccl_90");
}

TEST_F(ProfileFile, TornLineLosesOnlyThatLine) {
  const std::string torn = profile_line(asked_for("torn"));
  write_text(path_, profile_line(asked_for("first")) + torn.substr(0, 50));
  ProfileRecorder recorder(path_, events_.emitter());
  recorder.note(unit_called("second"), Target::sm(80));
  std::ofstream(path_, std::ios::app) << torn.substr(0, 20);  // while the recorder has it open
  recorder.note(unit_called("third"), Target::sm(80));
  const Profile profile = read();
  EXPECT_EQ(profile.entries, (std::vector<ProfileEntry>{asked_for("first"), asked_for("second"), asked_for("third")}));
  EXPECT_EQ(profile.skipped_lines, 2U);
}

TEST_F(ProfileFile, UnwritableFileIsOneEventAndNoError) {
  ProfileRecorder no_directory(directory_.path("absent/profile.jsonl"), events_.emitter());
  no_directory.note(unit_called("a"), Target::sm(80));
  no_directory.note(unit_called("b"), Target::sm(80));
  ASSERT_EQ(events_.count(Event::Kind::RecordUnavailable), 1U);
  EXPECT_NE(events_.of(Event::Kind::RecordUnavailable)[0].message.find("absent/profile.jsonl"), std::string::npos);

  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  ProfileRecorder pipe(path_, events_.emitter());
  pipe.note(unit_called("a"), Target::sm(80));
  EXPECT_EQ(events_.count(Event::Kind::RecordUnavailable), 2U) << "the recorder does not wait for the reader of a pipe";

  ProfileRecorder full("/dev/full", events_.emitter());
  full.note(unit_called("a"), Target::sm(80));
  EXPECT_EQ(events_.count(Event::Kind::RecordUnavailable), 3U);
}

TEST_F(ProfileFile, IsIntactAfterConcurrentAppendsOfEightProcesses) {
  constexpr int kProcesses = 8;
  constexpr int kLines = 500;
  std::vector<Forked> children;
  for (int child = 0; child < kProcesses; ++child) {
    children.emplace_back([this, child](const Forked::Side& side) {
      ProfileRecorder recorder(path_, {});
      side.say("ready");
      if (!side.receive()) _exit(1);
      for (int i = 0; i < kLines; ++i) {
        const std::string name = std::to_string(child) + "/" + std::to_string(i) + std::string(i % 300, 'x');
        recorder.note(unit_called(name), Target::sm(80));
      }
    });
  }
  for (const Forked& child : children) ASSERT_EQ(child.line(), "ready");
  for (const Forked& child : children) child.say("go");
  for (Forked& child : children) EXPECT_EQ(child.exit_code(), 0);
  const Profile profile = read();
  EXPECT_EQ(profile.skipped_lines, 0U);
  EXPECT_EQ(profile.lines, static_cast<std::size_t>(kProcesses * kLines));
  EXPECT_EQ(profile.entries.size(), static_cast<std::size_t>(kProcesses * kLines));
}

}  // namespace
}  // namespace kiln::test
