// SPDX-License-Identifier: Apache-2.0
// External caches: code of another system in kiln's tiers. Nothing is compiled here; the tests supply the bytes.
#include <kiln/external_cache.hpp>
#include <kiln/session.hpp>

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bundle/bundle_writer.hpp"
#include "cache/disk_store.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/child.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/forked.hpp"

namespace kiln::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

class OfAnotherSystem : public testing::Test {
 protected:
  std::string cache() const { return directory_.path("cache"); }
  Session session(std::map<std::string, std::string> settings = {}) {
    SessionOptions options;
    options.settings = {{"cache.dir", cache()}};
    for (auto& [name, value] : settings) options.settings[name] = value;
    options.on_event = events_.callback();
    return Session::open(std::move(options)).value();
  }
  /// Returns how many of the processes compiled the same missing key. Each waits for up to half a minute.
  int made_by_processes(int count) {
    std::vector<Forked> makers;
    for (int i = 0; i < count; ++i) {
      makers.emplace_back([this](Forked::Side side) {
        SessionOptions options;
        options.settings = {{"cache.dir", cache()}};
        const ExternalCache own = Session::open(std::move(options))->external_cache("triton");
        side.say("ready");
        if (!side.receive()) return;
        const auto answer = own.get_or_claim("k", seconds(30));
        if (!answer.hit) {
          std::this_thread::sleep_for(milliseconds(300));  // a compile
          (void)own.put("k", Bytes::copy_of("code"));
        }
        const bool is_right = answer.hit && answer.hit->bytes.view() == "code";
        side.say(is_right ? "found" : answer.hit ? "found other bytes" : answer.claim ? "made" : "made without a turn");
      });
    }
    for (const Forked& maker : makers) EXPECT_EQ(maker.line(), "ready");
    for (const Forked& maker : makers) maker.say("go");
    int made = 0;
    for (const Forked& maker : makers) {
      const std::string what = maker.line(seconds(60));
      made += what == "found" ? 0 : 1;
      EXPECT_TRUE(what == "made" || what == "found") << what;
    }
    return made;
  }
  /// The file of the only entry.
  std::string entry_file() const {
    for (const auto& file : std::filesystem::recursive_directory_iterator(cache() + "/v1/entries")) {
      if (file.is_regular_file()) return file.path();
    }
    return {};
  }

  TemporaryDirectory directory_;
  EventLog events_;
};

TEST_F(OfAnotherSystem, PutIsFoundByOtherSessionAndEventsHaveItsName) {
  ASSERT_TRUE(session().external_cache("triton").put("k", Bytes::copy_of("code"), "matmul", 1200).has_value());
  const auto found = session().external_cache("triton").get("k");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes.view(), "code");
  EXPECT_EQ(found->origin, Origin::Disk);
  for (const Event::Kind kind : {Event::Kind::Published, Event::Kind::Hit}) {
    const auto reported = events_.of(kind);
    ASSERT_EQ(reported.size(), 1U) << to_string(kind);
    EXPECT_EQ(reported.front().unit, "matmul");
    EXPECT_EQ(reported.front().target, "triton");
    EXPECT_EQ(reported.front().key, ArtifactKey::external("triton", "k").hex());
  }
  EXPECT_EQ(events_.of(Event::Kind::Published).front().ms, 1200) << "the compile time";
}

TEST_F(OfAnotherSystem, KeysAreArbitraryBytesAndEmptyContentIsStored) {
  const std::string key("\0\xff\n/..", 6);
  const ExternalCache own = session().external_cache("cuda.core");
  ASSERT_TRUE(own.put(key, Bytes()).has_value());
  const auto found = own.get(key);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->bytes.empty());
  EXPECT_FALSE(own.get(key.substr(0, 1)));
}

TEST_F(OfAnotherSystem, SystemsDoNotSeeEachOthersEntries) {
  Session one = session();
  ASSERT_TRUE(one.external_cache("triton").put("k", Bytes::copy_of("code")).has_value());
  EXPECT_FALSE(one.external_cache("cuda.core").get("k"));
  EXPECT_EQ(events_.count(Event::Kind::Miss), 1U);
}

TEST_F(OfAnotherSystem, EntriesAreCountedAndRemovedPerSystem) {
  Session one = session();
  const ExternalCache own = one.external_cache("triton");
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(own.put(key, Bytes::copy_of("code")).has_value());
  ASSERT_TRUE(one.external_cache("cuda.core").put("a", Bytes::copy_of("code")).has_value());
  EXPECT_EQ(own.count().value(), 3U);
  EXPECT_TRUE(own.remove("a"));
  EXPECT_FALSE(own.remove("a"));
  EXPECT_EQ(own.clear().value(), 2U);
  EXPECT_EQ(own.count().value(), 0U);
  EXPECT_TRUE(one.external_cache("cuda.core").get("a"));
}

TEST_F(OfAnotherSystem, ClaimIsExclusiveUntilReleased) {
  const ExternalCache own = session().external_cache("triton");
  auto first = own.get_or_claim("k", seconds(10));
  ASSERT_FALSE(first.hit);
  ASSERT_TRUE(first.claim);
  const auto busy = own.get_or_claim("k", milliseconds(50));
  EXPECT_FALSE(busy.hit || busy.claim) << "another thread holds the claim";
  EXPECT_TRUE(own.get_or_claim("other", seconds(0)).claim) << "other keys have their own claims";
  first.claim.reset();
  EXPECT_TRUE(own.get_or_claim("k", seconds(0)).claim) << "a failed compile blocks no other caller";
}

TEST_F(OfAnotherSystem, WaiterGetsEntryOfClaimHolder) {
  const ExternalCache own = session().external_cache("triton");
  auto first = own.get_or_claim("k", seconds(0));
  ASSERT_TRUE(first.claim);
  std::atomic<bool> waits{false};
  std::thread maker([&] {
    EXPECT_TRUE(eventually([&] { return waits.load(); }));
    EXPECT_TRUE(own.put("k", Bytes::copy_of("code")).has_value());
    first.claim.reset();
  });
  const std::function<bool()> keep_waiting = [&] {
    waits = true;  // queried only during a wait
    return true;
  };
  const auto second = session().external_cache("triton").get_or_claim("k", {kHangTimeout, keep_waiting});
  maker.join();
  ASSERT_TRUE(second.hit);
  EXPECT_EQ(second.hit->bytes.view(), "code");
  EXPECT_EQ(events_.count(Event::Kind::ClaimWaited), 1U);
}

TEST_F(OfAnotherSystem, WaitEndsWhenCancelled) {
  const ExternalCache own = session().external_cache("triton");
  const auto first = own.get_or_claim("k", seconds(0));
  const auto start = Clock::now();
  const std::function<bool()> keep_waiting = [start] { return Clock::now() - start < milliseconds(100); };
  const auto second = own.get_or_claim("k", {seconds(60), keep_waiting});
  EXPECT_FALSE(second.hit || second.claim);
  EXPECT_LT(Clock::now() - start, seconds(30));
}

TEST_F(OfAnotherSystem, EightProcessesCompileMissingKeyOnce) { EXPECT_EQ(made_by_processes(8), 1); }

TEST_F(OfAnotherSystem, StoppedHolderCostsOneMoreCompile) {
  const Forked maker([&](Forked::Side side) {
    SessionOptions options;
    options.settings = {{"cache.dir", cache()}};
    Session own = Session::open(std::move(options)).value();
    const auto answer = own.external_cache("triton").get_or_claim("k", seconds(0));
    side.say(answer.claim ? "mine" : "not mine");
    raise(SIGSTOP);
    (void)side.receive();
  });
  ASSERT_EQ(maker.line(), "mine");
  const auto start = Clock::now();
  const int made = made_by_processes(12);
  std::printf("figure: stopped maker, 12 waiters: made by waiters=%d after %.1f s\n", made,
              std::chrono::duration<double>(Clock::now() - start).count());
  EXPECT_EQ(made, 1) << "two with the compile of the stopped holder";
}

TEST_F(OfAnotherSystem, KilledHolderBlocksNoOtherProcess) {
  Forked maker([&](Forked::Side side) {
    SessionOptions options;
    options.settings = {{"cache.dir", cache()}};
    Session own = Session::open(std::move(options)).value();
    const auto answer = own.external_cache("triton").get_or_claim("k", seconds(0));
    side.say(answer.claim ? "mine" : "not mine");
    (void)side.receive();
  });
  ASSERT_EQ(maker.line(), "mine");
  const ExternalCache own = session().external_cache("triton");
  EXPECT_FALSE(own.get_or_claim("k", seconds(0)).claim);
  maker.kill_now();
  EXPECT_TRUE(own.get_or_claim("k", seconds(30)).claim);
}

TEST_F(OfAnotherSystem, ForkedChildHasCacheButNotParentsClaim) {
  const ExternalCache own = session().external_cache("triton");
  ASSERT_TRUE(own.put("k", Bytes::copy_of("code")).has_value());
  auto parents = own.get_or_claim("cold", seconds(0));
  ASSERT_TRUE(parents.claim);
  const int wrong = run_in_child([&] {
    if (!own.get("k")) return 1;
    if (own.get_or_claim("cold", milliseconds(20)).claim) return 2;
    parents.claim.reset();  // the child's copy
    if (own.get_or_claim("cold", milliseconds(20)).claim) return 3;
    return own.put("child's", Bytes::copy_of("code")).has_value() ? 0 : 4;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(own.get("child's"));
}

TEST_F(OfAnotherSystem, CorruptEntryIsMissAndIsReplaced) {
  const ExternalCache own = session().external_cache("triton");
  ASSERT_TRUE(own.put("k", Bytes::copy_of("code")).has_value());
  std::string bytes = read_text(entry_file());
  bytes.back() ^= 1;
  write_text(entry_file(), bytes);
  auto answer = own.get_or_claim("k", seconds(0));
  EXPECT_FALSE(answer.hit);
  EXPECT_EQ(events_.count(Event::Kind::EntryDropped), 1U);
  ASSERT_TRUE(answer.claim);
  ASSERT_TRUE(own.put("k", Bytes::copy_of("code")).has_value());
  EXPECT_EQ(own.get("k")->bytes.view(), "code");
}

TEST_F(OfAnotherSystem, EntryOfWrongSystemIsNotServed) {
  Artifact artifact;
  artifact.bytes = Bytes::copy_of("code");
  artifact.target = Target::sm(80);
  auto disk = DiskStore::open({cache()});
  ASSERT_TRUE((*disk)->put(ArtifactKey::external("triton", "k"), artifact, {}).has_value());
  EXPECT_FALSE(session().external_cache("triton").get("k"));
}

TEST_F(OfAnotherSystem, ReadOnlyCacheIsReadAndPutReportsReason) {
  ASSERT_TRUE(session().external_cache("triton").put("k", Bytes::copy_of("code")).has_value());
  // As the second directory of a path it is read-only, even for root.
  const ExternalCache own =
      session({{"cache.dir", "/proc/nowhere"}, {"cache.path", "/proc/nowhere:" + cache()}}).external_cache("triton");
  EXPECT_TRUE(own.get("k"));
  const auto cold = own.get_or_claim("cold", milliseconds(10));
  EXPECT_FALSE(cold.hit);
  const Status put = own.put("cold", Bytes::copy_of("code"));
  EXPECT_FALSE(put.has_value());
  EXPECT_EQ(events_.count(Event::Kind::NotPublished), 1U);
}

TEST_F(OfAnotherSystem, WithoutCacheEveryLookupIsMissWithoutWait) {
  const ExternalCache own = session({{"disable", "true"}}).external_cache("triton");
  EXPECT_FALSE(own.put("k", Bytes::copy_of("code")).has_value());
  EXPECT_FALSE(own.get("k"));
  const auto answer = own.get_or_claim("k", seconds(60));
  EXPECT_FALSE(answer.hit || answer.claim);
}

TEST_F(OfAnotherSystem, BundleServesExternalEntries) {
  BundleMember member;
  member.kind = "foreign";
  member.key = ArtifactKey::external("triton", "k");
  member.artifact.bytes = Bytes::copy_of("code");
  member.artifact.target = Target::external("triton");
  member.artifact.metadata.unit = "matmul";
  BundleWriter writer({});
  ASSERT_TRUE(writer.add(member).has_value());
  const auto image = writer.finish(nullptr);
  ASSERT_TRUE(image.has_value());
  write_text(directory_.path("triton.kiln"), image->to_file());
  const ExternalCache own =
      session({{"bundles", directory_.path("triton.kiln")}, {"trust.unsigned", "true"}}).external_cache("triton");
  const auto found = own.get("k");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->origin, Origin::Bundle);
  EXPECT_EQ(found->bytes.view(), "code");
  EXPECT_FALSE(own.get("another"));
}

TEST_F(OfAnotherSystem, ExternalEntriesAreNeverCompiled) {
  Session one = session();
  const auto artifact = one.artifact(Unit::cuda("k.cu", "").with_entry("k"), Target::external("sm_80"), seconds(30));
  ASSERT_FALSE(artifact.has_value());
  EXPECT_EQ(artifact.error().code, Code::Unsupported);
}

}  // namespace
}  // namespace kiln::test
