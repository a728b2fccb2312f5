// SPDX-License-Identifier: Apache-2.0
// Sessions of hosts that share a directory. NVRTC really compiles; nothing is executed.
#include <kiln/session.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "session/access.hpp"
#include "session/config/config.hpp"
#include "session/remote_factory.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "trust/keys.hpp"
#include "trust/signed_statement.hpp"

namespace kiln::test {
namespace {

Unit kernel(const std::string& number) {
  return Unit::cuda("k.cu", "extern \"C\" __global__ void k(int* x) { *x = " + number + "; }").with_entry("k");
}

class HostsOnADirectory : public testing::Test {
 protected:
  HostsOnADirectory() {
    std::filesystem::create_directory(shared());
    write_text(policy(), "[[key]]\npublic = \"" + authority_.public_key().text() +
                             "\"\nnamespaces = [\"acme/*\"]\n\n[[live]]\nnamespace = \"acme/live\"\ndays = 7\n");
    std::filesystem::permissions(policy(), std::filesystem::perms(0600));
  }
  std::string shared() const { return directory_.path("shared"); }
  std::string policy() const { return directory_.path("trust.toml"); }

  /// Returns a session of a host with its own cache. A publishing host also has its own key and certificate.
  Config host(const std::string& name, bool publishes) {
    return Config::load(options_of(name, publishes), events_.emitter(), {directory_.path("none")});
  }
  SessionOptions options_of(const std::string& name, bool publishes) {
    SessionOptions options;
    options.settings = {{"cache.dir", directory_.path(name)},
                        {"remote.url", shared()},
                        {"lease.url", shared()},
                        {"trust.policy", policy()},
                        {"jobs", "0"}};
    if (publishes) {
      const SecretKey key = SecretKey::generate();
      EXPECT_TRUE(key.write(directory_.path(name + ".key")).has_value());
      const auto today = day_of(system_clock().wall());
      write_text(directory_.path(name + ".cert"),
                 Certificate::make(authority_, key.public_key(), "acme/live", today + 30).text() + "\n");
      options.settings["remote.signing_key"] = directory_.path(name + ".key");
      options.settings["remote.certificate"] = directory_.path(name + ".cert");
    }
    options.on_event = events_.callback();
    return options;
  }
  Session session(const Config& config) {
    SessionOptions options;
    options.on_event = events_.callback();
    return detail::SessionAccess::open(std::move(options), config);
  }
  Result<ResolvedArtifact> get(const Config& config, const Unit& unit) {
    return session(config).resolve(unit, Target::sm(90));
  }

  TemporaryDirectory directory_;
  SecretKey authority_ = SecretKey::generate();
  EventLog events_;
};

TEST_F(HostsOnADirectory, CodeCompiledByOneHostIsUsedByAnother) {
  const auto first = get(host("a", true), kernel("1"));
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_EQ(first->origin, Origin::Compiled);
  const Config reader = host("b", false);
  const auto second = get(reader, kernel("1"));
  ASSERT_TRUE(second.has_value()) << second.error().message;
  EXPECT_EQ(second->origin, Origin::Remote);
  EXPECT_EQ(second->artifact.bytes, first->artifact.bytes);
  EXPECT_EQ(get(reader, kernel("1"))->origin, Origin::Disk) << "it is cached from then on";
  EXPECT_EQ(events_.count(Event::Kind::Compiled), 1U);
  EXPECT_EQ(events_.count(Event::Kind::RemoteRejected), 0U);
}

TEST_F(HostsOnADirectory, FetchedEntryIsNotInHostCache) {
  ASSERT_TRUE(get(host("a", true), kernel("1")).has_value());
  Session reader = session(host("b", true));
  ASSERT_EQ(reader.resolve(kernel("1"), Target::sm(90))->origin, Origin::Remote);
  const Components& components = detail::SessionAccess::components(reader);
  EXPECT_TRUE(components.disks().front()->list_entries()->empty());
  ASSERT_NE(components.fetched_store(), nullptr);
  EXPECT_EQ(components.fetched_store()->list_entries()->size(), 1U);
}

TEST_F(HostsOnADirectory, EntryTrustedByEarlierPolicyIsFetchedAgain) {
  ASSERT_TRUE(get(host("a", true), kernel("1")).has_value());
  const Config reader = host("b", false);
  ASSERT_EQ(get(reader, kernel("1"))->origin, Origin::Remote);
  write_text(policy(), "revoked = [\"" + authority_.public_key().text() + "\"]\n" + read_text(policy()));
  EXPECT_EQ(get(reader, kernel("1"))->origin, Origin::Compiled);
  EXPECT_GE(events_.count(Event::Kind::RemoteRejected), 1U);
}

TEST_F(HostsOnADirectory, ReaderCompilesAndBlocksNoOtherHost) {
  ASSERT_EQ(get(host("b", false), kernel("2"))->origin, Origin::Compiled);
  EXPECT_EQ(get(host("a", true), kernel("2"))->origin, Origin::Compiled);
  EXPECT_EQ(events_.count(Event::Kind::Uploaded), 1U);
}

TEST_F(HostsOnADirectory, UnusableKeyEmitsEventAndHostReads) {
  ASSERT_TRUE(get(host("a", true), kernel("1")).has_value());
  Config broken = host("b", false);
  broken.remote_signing_key = directory_.path("absent.key");
  EXPECT_EQ(get(broken, kernel("1"))->origin, Origin::Remote);
  EXPECT_EQ(events_.count(Event::Kind::ConfigWarning), 1U);
}

TEST_F(HostsOnADirectory, MissingRemoteIsTreatedAsNone) {
  Config host_b = host("b", true);
  host_b.remote_url = host_b.lease_url = directory_.path("not there");
  EXPECT_EQ(get(host_b, kernel("1"))->origin, Origin::Compiled);
  EXPECT_EQ(get(host_b, kernel("1"))->origin, Origin::Disk);
}

TEST_F(HostsOnADirectory, OneHostCompilesExternalEntryAndOthersWait) {
  Session a = Session::open(options_of("a", true)).value();
  Session b = Session::open(options_of("b", true)).value();
  auto first = a.external_cache("triton").get_or_claim("k", std::chrono::seconds(10));
  ASSERT_TRUE(first.claim);
  std::thread maker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_TRUE(a.external_cache("triton").put("k", Bytes::copy_of("code")).has_value());
    first.claim.reset();
  });
  const auto second = b.external_cache("triton").get_or_claim("k", std::chrono::seconds(60));
  maker.join();
  ASSERT_TRUE(second.hit);
  EXPECT_EQ(second.hit->origin, Origin::Remote);
  EXPECT_EQ(second.hit->bytes.view(), "code");
  EXPECT_EQ(events_.count(Event::Kind::LeaseWaited), 1U);
  EXPECT_EQ(b.external_cache("triton").get("k")->origin, Origin::Disk) << "it is cached from then on";
}

TEST_F(HostsOnADirectory, WaitForOtherHostEndsWhenCancelled) {
  Session a = Session::open(options_of("a", true)).value();
  Session b = Session::open(options_of("b", true)).value();
  const auto first = a.external_cache("triton").get_or_claim("k", std::chrono::seconds(0));
  ASSERT_TRUE(first.claim);
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [start] { return std::chrono::steady_clock::now() - start; };
  const std::function<bool()> keep_waiting = [&] { return passed() < std::chrono::milliseconds(100); };
  const auto second = b.external_cache("triton").get_or_claim("k", {std::chrono::seconds(60), keep_waiting});
  EXPECT_FALSE(second.hit);
  EXPECT_LT(passed(), std::chrono::seconds(4)) << "the lease lasts for longer";
}

}  // namespace
}  // namespace kiln::test
