// Sessions of hosts that share a folder. NVRTC really compiles; nothing is executed.
#include <kiln/session.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "session/config.hpp"
#include "session/remote_parts.hpp"
#include "session/toolbox.hpp"
#include "support/event_log.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"
#include "trust/keys.hpp"
#include "trust/signed_statement.hpp"

namespace kiln::test {
namespace {

Unit kernel(const std::string& number) {
  return Unit::cuda("k.cu", "extern \"C\" __global__ void k(int* x) { *x = " + number + "; }").entry("k");
}

class HostsOnAFolder : public testing::Test {
 protected:
  HostsOnAFolder() {
    std::filesystem::create_directory(shared());
    spit(policy(), "[[key]]\npublic = \"" + authority_.public_key().text() +
                       "\"\nnamespaces = [\"acme/*\"]\n\n[[live]]\nnamespace = \"acme/live\"\ndays = 7\n");
    std::filesystem::permissions(policy(), std::filesystem::perms(0600));
  }
  std::string shared() const { return folder_.path("shared"); }
  std::string policy() const { return folder_.path("trust.toml"); }

  /// A host with a cache of its own. One that publishes has a key of its own too, and a certificate.
  Config host(const std::string& name, bool publishes) {
    return Config::load(options_of(name, publishes), events_.observer(), {folder_.path("none")});
  }
  SessionOptions options_of(const std::string& name, bool publishes) {
    SessionOptions options;
    options.settings = {{"cache.dir", folder_.path(name)},
                        {"remote", shared()},
                        {"lease", shared()},
                        {"trust", policy()},
                        {"jobs", "0"}};
    if (publishes) {
      const SecretKey key = SecretKey::generate();
      EXPECT_TRUE(key.write(folder_.path(name + ".key")).ok());
      const auto today = day_of(system_clock().wall());
      spit(folder_.path(name + ".cert"),
           Certificate::make(authority_, key.public_key(), "acme/live", today + 30).text() + "\n");
      options.settings["remote.sign"] = folder_.path(name + ".key");
      options.settings["remote.certificate"] = folder_.path(name + ".cert");
    }
    options.on_event = events_.callback();
    return options;
  }
  Result<Answer> get(const Config& config, const Unit& unit) {
    Toolbox toolbox(config, events_.observer());
    return toolbox.get(unit, Target::sm(90));
  }

  TemporaryDirectory folder_;
  SecretKey authority_ = SecretKey::generate();
  EventLog events_;
};

TEST_F(HostsOnAFolder, WhatOneHostCompiledAnotherTakes) {
  const auto first = get(host("a", true), kernel("1"));
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->origin, Origin::Compiled);
  const Config reader = host("b", false);
  const auto second = get(reader, kernel("1"));
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(second->origin, Origin::Remote);
  EXPECT_EQ(second->artifact.bytes, first->artifact.bytes);
  EXPECT_EQ(get(reader, kernel("1"))->origin, Origin::Disk) << "and has it from then on";
  EXPECT_EQ(events_.count(Event::Kind::Compiled), 1U);
  EXPECT_EQ(events_.count(Event::Kind::RemoteRefused), 0U);
}

TEST_F(HostsOnAFolder, WhatWasFetchedIsNotInTheHostsOwnCache) {
  ASSERT_TRUE(get(host("a", true), kernel("1")).ok());
  Toolbox toolbox(host("b", true), events_.observer());
  ASSERT_EQ(toolbox.get(kernel("1"), Target::sm(90))->origin, Origin::Remote);
  EXPECT_TRUE(toolbox.disks().front()->list()->empty());
  ASSERT_NE(toolbox.fetched(), nullptr);
  EXPECT_EQ(toolbox.fetched()->list()->size(), 1U);
}

TEST_F(HostsOnAFolder, WhatAnEarlierPolicyBelievedIsAskedForAgain) {
  ASSERT_TRUE(get(host("a", true), kernel("1")).ok());
  const Config reader = host("b", false);
  ASSERT_EQ(get(reader, kernel("1"))->origin, Origin::Remote);
  spit(policy(), "revoked = [\"" + authority_.public_key().text() + "\"]\n" + slurp(policy()));
  EXPECT_EQ(get(reader, kernel("1"))->origin, Origin::Compiled);
  EXPECT_GE(events_.count(Event::Kind::RemoteRefused), 1U);
}

TEST_F(HostsOnAFolder, AReaderCompilesForHimselfAndHoldsUpNobody) {
  ASSERT_EQ(get(host("b", false), kernel("2"))->origin, Origin::Compiled);
  EXPECT_EQ(get(host("a", true), kernel("2"))->origin, Origin::Compiled);
  EXPECT_EQ(events_.count(Event::Kind::Uploaded), 1U);
}

TEST_F(HostsOnAFolder, AKeyThatCannotBeUsedIsAnEventAndTheHostReads) {
  ASSERT_TRUE(get(host("a", true), kernel("1")).ok());
  Config broken = host("b", false);
  broken.remote_sign = folder_.path("absent.key");
  EXPECT_EQ(get(broken, kernel("1"))->origin, Origin::Remote);
  EXPECT_EQ(events_.count(Event::Kind::Configuration), 1U);
}

TEST_F(HostsOnAFolder, ARemoteThatIsGoneIsAsIfThereWereNone) {
  Config host_b = host("b", true);
  host_b.remote = host_b.lease = folder_.path("not there");
  EXPECT_EQ(get(host_b, kernel("1"))->origin, Origin::Compiled);
  EXPECT_EQ(get(host_b, kernel("1"))->origin, Origin::Disk);
}

TEST_F(HostsOnAFolder, OfWhatAnotherSystemCompilesOneHostMakesItAndTheOthersWaitForIt) {
  Session a = Session::open(options_of("a", true)).value();
  Session b = Session::open(options_of("b", true)).value();
  auto first = a.foreign("triton").get_or_claim("k", std::chrono::seconds(10));
  ASSERT_TRUE(first.turn);
  std::thread maker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_TRUE(a.foreign("triton").put("k", Bytes::copy_of("code")).ok());
    first.turn.reset();
  });
  const auto second = b.foreign("triton").get_or_claim("k", std::chrono::seconds(60));
  maker.join();
  ASSERT_TRUE(second.found);
  EXPECT_EQ(second.found->origin, Origin::Remote);
  EXPECT_EQ(second.found->bytes.view(), "code");
  EXPECT_EQ(events_.count(Event::Kind::LeaseWaited), 1U);
  EXPECT_EQ(b.foreign("triton").get("k")->origin, Origin::Disk) << "and has it from then on";
}

TEST_F(HostsOnAFolder, AWaitForAnotherHostEndsWhenItIsNotWantedAnyMore) {
  Session a = Session::open(options_of("a", true)).value();
  Session b = Session::open(options_of("b", true)).value();
  const auto first = a.foreign("triton").get_or_claim("k", std::chrono::seconds(0));
  ASSERT_TRUE(first.turn);
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [start] { return std::chrono::steady_clock::now() - start; };
  const auto second = b.foreign("triton").get_or_claim("k", std::chrono::seconds(60),
                                                       [&] { return passed() > std::chrono::milliseconds(100); });
  EXPECT_FALSE(second.found);
  EXPECT_LT(passed(), std::chrono::seconds(4)) << "the lease lasts for longer";
}

}  // namespace
}  // namespace kiln::test
