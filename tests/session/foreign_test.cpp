// What another system compiled, in kiln's tiers. Nothing is compiled here: the bytes are whatever the test says.
#include <kiln/foreign.hpp>
#include <kiln/session.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "bundle/bundle_writer.hpp"
#include "store/disk_store.hpp"
#include "support/child.hpp"
#include "support/event_log.hpp"
#include "support/files.hpp"
#include "support/forked.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

class OfAnotherSystem : public testing::Test {
 protected:
  std::string cache() const { return folder_.path("cache"); }
  Session session(std::map<std::string, std::string> settings = {}) {
    SessionOptions options;
    options.settings = {{"cache.dir", cache()}};
    for (auto& [name, value] : settings) options.settings[name] = value;
    options.on_event = events_.callback();
    return Session::open(std::move(options)).value();
  }
  /// The file of the only entry.
  std::string entry_file() const {
    for (const auto& file : std::filesystem::recursive_directory_iterator(cache() + "/v1/entries")) {
      if (file.is_regular_file()) return file.path();
    }
    return {};
  }

  TemporaryDirectory folder_;
  EventLog events_;
};

TEST_F(OfAnotherSystem, WhatWasPutIsFoundByAnotherSessionAndEventsCallItByItsNames) {
  ASSERT_TRUE(session().foreign("triton").put("k", Bytes::copy_of("code"), "matmul", 1200).ok());
  const auto found = session().foreign("triton").get("k");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes.view(), "code");
  EXPECT_EQ(found->origin, Origin::Disk);
  for (const Event::Kind kind : {Event::Kind::Published, Event::Kind::Hit}) {
    const auto told = events_.of(kind);
    ASSERT_EQ(told.size(), 1U) << to_string(kind);
    EXPECT_EQ(told.front().unit, "matmul");
    EXPECT_EQ(told.front().target, "triton");
    EXPECT_EQ(told.front().key, Key::foreign("triton", "k").hex());
  }
}

TEST_F(OfAnotherSystem, KeysAreBytesOfAnyKindAndEmptyContentIsContent) {
  const std::string key("\0\xff\n/..", 6);
  const ForeignCache own = session().foreign("cuda.core");
  ASSERT_TRUE(own.put(key, Bytes()).ok());
  const auto found = own.get(key);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->bytes.empty());
  EXPECT_FALSE(own.get(key.substr(0, 1)));
}

TEST_F(OfAnotherSystem, SystemsDoNotSeeOneAnothersEntries) {
  Session one = session();
  ASSERT_TRUE(one.foreign("triton").put("k", Bytes::copy_of("code")).ok());
  EXPECT_FALSE(one.foreign("cuda.core").get("k"));
  EXPECT_EQ(events_.count(Event::Kind::Miss), 1U);
}

TEST_F(OfAnotherSystem, OneSystemsEntriesAreCountedAndRemovedByThemselves) {
  Session one = session();
  const ForeignCache own = one.foreign("triton");
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(own.put(key, Bytes::copy_of("code")).ok());
  ASSERT_TRUE(one.foreign("cuda.core").put("a", Bytes::copy_of("code")).ok());
  EXPECT_EQ(own.count().value(), 3U);
  EXPECT_TRUE(own.remove("a"));
  EXPECT_FALSE(own.remove("a"));
  EXPECT_EQ(own.clear().value(), 2U);
  EXPECT_EQ(own.count().value(), 0U);
  EXPECT_TRUE(one.foreign("cuda.core").get("a"));
}

TEST_F(OfAnotherSystem, TheTurnIsOnesUntilHeLetsItGo) {
  const ForeignCache own = session().foreign("triton");
  auto first = own.get_or_claim("k", seconds(10));
  ASSERT_FALSE(first.found);
  ASSERT_TRUE(first.turn);
  const auto busy = own.get_or_claim("k", milliseconds(50));
  EXPECT_FALSE(busy.found || busy.turn) << "somebody is at it";
  EXPECT_TRUE(own.get_or_claim("other", seconds(0)).turn) << "other keys are other turns";
  first.turn.reset();
  EXPECT_TRUE(own.get_or_claim("k", seconds(0)).turn) << "a maker that failed holds up nobody";
}

TEST_F(OfAnotherSystem, WhoWaitsGetsWhatTheHolderMade) {
  const ForeignCache own = session().foreign("triton");
  auto first = own.get_or_claim("k", seconds(0));
  ASSERT_TRUE(first.turn);
  std::thread maker([&] {
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_TRUE(own.put("k", Bytes::copy_of("code")).ok());
    first.turn.reset();
  });
  const auto second = session().foreign("triton").get_or_claim("k", seconds(30));
  maker.join();
  ASSERT_TRUE(second.found);
  EXPECT_EQ(second.found->bytes.view(), "code");
  EXPECT_EQ(events_.count(Event::Kind::Waited), 1U);
}

TEST_F(OfAnotherSystem, AWaitEndsWhenItIsNotWantedAnyMore) {
  const ForeignCache own = session().foreign("triton");
  const auto first = own.get_or_claim("k", seconds(0));
  const auto start = Clock::now();
  const auto second = own.get_or_claim("k", seconds(60), [start] { return Clock::now() - start > milliseconds(100); });
  EXPECT_FALSE(second.found || second.turn);
  EXPECT_LT(Clock::now() - start, seconds(10));
}

TEST_F(OfAnotherSystem, EightProcessesOnOneColdKeyMakeItOnce) {
  std::vector<Forked> makers;
  for (int i = 0; i < 8; ++i) {
    makers.emplace_back([&](Forked::Side side) {
      SessionOptions options;
      options.settings = {{"cache.dir", cache()}};
      const ForeignCache own = Session::open(std::move(options))->foreign("triton");
      side.say("ready");
      if (!side.hear()) return;
      const auto answer = own.get_or_claim("k", seconds(30));
      if (!answer.found) {
        std::this_thread::sleep_for(milliseconds(300));  // a compile
        (void)own.put("k", Bytes::copy_of("code"));
      }
      side.say(answer.found ? "found " + std::string(answer.found->bytes.view()) : answer.turn ? "made" : "duplicate");
    });
  }
  for (const Forked& maker : makers) ASSERT_EQ(maker.line(), "ready");
  for (const Forked& maker : makers) maker.say("go");
  int made = 0;
  for (const Forked& maker : makers) {
    const std::string what = maker.line(seconds(60));
    made += what == "made" ? 1 : 0;
    EXPECT_TRUE(what == "made" || what == "found code") << what;
  }
  EXPECT_EQ(made, 1);
}

TEST_F(OfAnotherSystem, AMakerThatIsKilledHoldsUpNobody) {
  Forked maker([&](Forked::Side side) {
    SessionOptions options;
    options.settings = {{"cache.dir", cache()}};
    Session own = Session::open(std::move(options)).value();
    const auto answer = own.foreign("triton").get_or_claim("k", seconds(0));
    side.say(answer.turn ? "mine" : "not mine");
    (void)side.hear();
  });
  ASSERT_EQ(maker.line(), "mine");
  const ForeignCache own = session().foreign("triton");
  EXPECT_FALSE(own.get_or_claim("k", seconds(0)).turn);
  maker.kill_now();
  EXPECT_TRUE(own.get_or_claim("k", seconds(30)).turn);
}

TEST_F(OfAnotherSystem, AForkedChildHasTheCacheAndNotItsParentsTurn) {
  const ForeignCache own = session().foreign("triton");
  ASSERT_TRUE(own.put("k", Bytes::copy_of("code")).ok());
  auto parents = own.get_or_claim("cold", seconds(0));
  ASSERT_TRUE(parents.turn);
  const int wrong = run_in_child([&] {
    if (!own.get("k")) return 1;
    if (own.get_or_claim("cold", milliseconds(20)).turn) return 2;
    parents.turn.reset();  // its copy of it
    if (own.get_or_claim("cold", milliseconds(20)).turn) return 3;
    return own.put("child's", Bytes::copy_of("code")).ok() ? 0 : 4;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(own.get("child's"));
}

TEST_F(OfAnotherSystem, DamageIsAMissAndIsHealed) {
  const ForeignCache own = session().foreign("triton");
  ASSERT_TRUE(own.put("k", Bytes::copy_of("code")).ok());
  std::string bytes = slurp(entry_file());
  bytes.back() ^= 1;
  spit(entry_file(), bytes);
  auto answer = own.get_or_claim("k", seconds(0));
  EXPECT_FALSE(answer.found);
  EXPECT_EQ(events_.count(Event::Kind::EntryDropped), 1U);
  ASSERT_TRUE(answer.turn);
  ASSERT_TRUE(own.put("k", Bytes::copy_of("code")).ok());
  EXPECT_EQ(own.get("k")->bytes.view(), "code");
}

TEST_F(OfAnotherSystem, AnEntryThatLiesAboutItsSystemIsNotServed) {
  Artifact artifact;
  artifact.bytes = Bytes::copy_of("code");
  artifact.target = Target::sm(80);
  auto disk = DiskStore::open({cache()});
  ASSERT_TRUE((*disk)->put(Key::foreign("triton", "k"), artifact).ok());
  EXPECT_FALSE(session().foreign("triton").get("k"));
}

TEST_F(OfAnotherSystem, ACacheThatCannotBeWrittenIsReadAndAPutSaysWhy) {
  ASSERT_TRUE(session().foreign("triton").put("k", Bytes::copy_of("code")).ok());
  // As a path's second folder it is only read, whoever runs this.
  const ForeignCache own =
      session({{"cache.dir", "/proc/nowhere"}, {"cache.path", "/proc/nowhere:" + cache()}}).foreign("triton");
  EXPECT_TRUE(own.get("k"));
  const auto cold = own.get_or_claim("cold", milliseconds(10));
  EXPECT_FALSE(cold.found);
  const Status put = own.put("cold", Bytes::copy_of("code"));
  EXPECT_FALSE(put.ok());
  EXPECT_EQ(events_.count(Event::Kind::NotPublished), 1U);
}

TEST_F(OfAnotherSystem, WithoutACacheEverythingIsAMissAndNobodyWaits) {
  const ForeignCache own = session({{"disable", "true"}}).foreign("triton");
  EXPECT_FALSE(own.put("k", Bytes::copy_of("code")).ok());
  EXPECT_FALSE(own.get("k"));
  const auto answer = own.get_or_claim("k", seconds(60));
  EXPECT_FALSE(answer.found || answer.turn);
}

TEST_F(OfAnotherSystem, ABundleServesItsEntries) {
  BundleMember member;
  member.kind = "foreign";
  member.key = Key::foreign("triton", "k");
  member.artifact.bytes = Bytes::copy_of("code");
  member.artifact.target = Target::foreign("triton");
  member.artifact.about.unit = "matmul";
  BundleWriter writer({});
  ASSERT_TRUE(writer.add(member).ok());
  const auto image = writer.finish(nullptr);
  ASSERT_TRUE(image.ok());
  spit(folder_.path("triton.kiln"), image->whole());
  const ForeignCache own =
      session({{"bundles", folder_.path("triton.kiln")}, {"trust.unsigned", "true"}}).foreign("triton");
  const auto found = own.get("k");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->origin, Origin::Bundle);
  EXPECT_EQ(found->bytes.view(), "code");
  EXPECT_FALSE(own.get("another"));
}

TEST_F(OfAnotherSystem, NothingTriesToCompileIt) {
  Session one = session();
  const auto artifact = one.artifact(Unit::cuda("k.cu", "").entry("k"), Target::foreign("sm_80"), seconds(30));
  ASSERT_FALSE(artifact.ok());
  EXPECT_EQ(artifact.error().code, Code::Unsupported);
}

}  // namespace
}  // namespace kiln::test
