// SPDX-License-Identifier: Apache-2.0
// Signers that a reader trusts, but not for the entries that they try to serve. Nothing is compiled: the code is fake,
// and entries of external systems represent what a host publishes.
#include <kiln/session.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "base/hash.hpp"
#include "bundle/bundle_writer.hpp"
#include "bundle/epoch_memory.hpp"
#include "session/components.hpp"
#include "session/config/config.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/remote_fixture.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

using Settings = std::map<std::string, std::string>;

Unit served_unit() { return Unit::cuda("blur.cu", "__global__ void blur() {}").with_entry("blur"); }

/// A release key for `acme/vision`, another for `acme/toys`, and a host that is certified for `acme/live`; a shared
/// directory as the remote store; and readers that trust all three, each with its own cache directory.
class HostileNamespaces : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(vision_.write(directory_.path("vision.key")).has_value());
    ASSERT_TRUE(host_.write(directory_.path("host.key")).has_value());
    const auto certificate = Certificate::make(authority_, host_.public_key(), "acme/live", today_ + 5);
    write_text(directory_.path("host.cert"), certificate.text() + "\n");
    write_text(policy(), policy_text());
    // The attacker's host chooses its own policy, here one without the release key.
    write_text(directory_.path("attacker.toml"), key_text(authority_, "acme/live") + live_text());
    std::filesystem::create_directory(directory_.path("objects"));
  }

  static std::string key_text(const SecretKey& key, const std::string& name_space) {
    return "[[key]]\npublic = \"" + key.public_key().text() + "\"\nnamespaces = [\"" + name_space + "\"]\n";
  }
  static std::string live_text() { return "[[live]]\nnamespace = \"acme/live\"\ndays = 3\n"; }
  std::string policy_text() const {
    return key_text(vision_, "acme/vision") + key_text(toys_, "acme/toys") + key_text(authority_, "acme/live") +
           live_text();
  }
  std::string policy() const { return directory_.path("trust.toml"); }

  SessionOptions options(const std::string& who, const Settings& more) {
    SessionOptions made;
    made.settings = {{"cache.dir", directory_.path("cache-" + who)},
                     {"trust.policy", policy()},
                     {"compile", "never"},
                     {"nvrtc", "/no/nvrtc"},
                     {"remote.budget", "20000"}};
    for (const auto& [name, value] : more) made.settings[name] = value;
    made.on_event = log_.callback();
    return made;
  }
  Settings shared(Settings more = {}) const {
    more["remote.url"] = directory_.path("objects");
    return more;
  }
  Settings as_release() const {
    return shared({{"remote.signing_key", directory_.path("vision.key")}, {"remote.namespace", "acme/vision"}});
  }
  Settings as_live_host() const {
    return shared({{"remote.signing_key", directory_.path("host.key")},
                   {"remote.certificate", directory_.path("host.cert")},
                   {"trust.policy", directory_.path("attacker.toml")}});
  }
  /// Publishes bytes under a key of an external system. The end of the session waits for the upload.
  void publish(const std::string& who, const Settings& settings, const std::string& bytes) {
    Session session = Session::open(options(who, settings)).value();
    ASSERT_TRUE(session.external_cache("triton").put("blur", Bytes::copy_of(bytes)).has_value());
  }
  /// Returns the bytes that a new reader gets for that key, or an empty string.
  std::string read(const std::string& who, const Settings& settings) {
    const Session session = Session::open(options(who, settings)).value();
    const auto found = Session(session).external_cache("triton").get("blur");
    return found ? std::string(found->bytes.view()) : std::string();
  }

  std::string bundle(const SecretKey& key, const std::string& name_space, std::uint64_t epoch, bool external = false) {
    const Unit unit = served_unit();
    BundleMember member;
    member.kind = unit.kind();
    member.unit = unit.key();
    member.artifact.bytes = Bytes::copy_of(name_space + " " + std::to_string(epoch));
    member.artifact.target = Target::sm(80);
    member.artifact.entries = {{"blur", "blur"}};
    member.artifact.metadata = {unit.name(), "nvrtc 99.1.2", 0, {}};
    member.request = {sha256("request")};
    member.key = {sha256("key")};
    member.compiler = "nvrtc";
    member.version = "99.1.2";
    BundleWriter writer({name_space, epoch});
    EXPECT_TRUE(writer.add(member).has_value());
    if (external) {
      BundleMember other = member;
      other.kind = "foreign";
      other.artifact.target = Target::external("triton");
      other.artifact.entries.clear();
      other.key = ArtifactKey::external("triton", "blur");
      EXPECT_TRUE(writer.add(other).has_value());
    }
    const std::string path = directory_.path(std::to_string(++bundles_) + ".kiln");
    write_text(path, writer.finish(&key).value().to_file());
    return path;
  }
  /// Returns the code that a session has for a unit, or an empty string.
  std::string code(const std::string& who, const Settings& settings, const Unit& unit = served_unit()) {
    Session session = Session::open(options(who, settings)).value();
    const auto artifact = session.artifact(unit, Target::sm(80));
    return artifact ? std::string(artifact->bytes.view()) : std::string();
  }
  bool was_reported(Event::Kind kind, const std::string& text) const {
    for (const Event& event : log_.of(kind)) {
      if (event.message.find(text) != std::string::npos) return true;
    }
    return false;
  }

  TemporaryDirectory directory_;
  EventLog log_;
  SecretKey vision_ = SecretKey::generate();
  SecretKey toys_ = SecretKey::generate();
  SecretKey authority_ = SecretKey::generate();
  SecretKey host_ = SecretKey::generate();
  std::uint64_t today_ = day_of(system_clock().wall());
  int bundles_ = 0;
};

TEST_F(HostileNamespaces, LiveHostCannotReplaceTheActionOfARelease) {
  publish("release", as_release(), "release");
  publish("attacker", as_live_host(), "attack");
  EXPECT_EQ(read("reader", shared()), "release");
}

TEST_F(HostileNamespaces, ReleaseWinsOverALiveEntry) {
  publish("attacker", as_live_host(), "attack");
  EXPECT_EQ(read("first", shared()), "attack");  // the only entry, and the reader trusts the host
  publish("release", as_release(), "release");
  publish("attacker", as_live_host(), "attack again");
  EXPECT_EQ(read("second", shared()), "release");
}

TEST_F(HostileNamespaces, BundleOfAnotherNamespaceServesNoUnit) {
  const std::string toys = bundle(toys_, "acme/toys", 1);
  EXPECT_EQ(code("one", {{"bundles", toys}}), "acme/toys 1");
  EXPECT_EQ(code("two", {{"bundles", toys}, {"trust.namespaces", "acme/vision"}}), "");
  const std::string both = toys + ":" + bundle(vision_, "acme/vision", 1);
  EXPECT_EQ(code("three", {{"bundles", both}, {"trust.namespaces", "acme/vision"}}), "acme/vision 1");
}

TEST_F(HostileNamespaces, UnitNarrowsTheSession) {
  const std::string both = bundle(toys_, "acme/toys", 1) + ":" + bundle(vision_, "acme/vision", 1);
  const Unit narrow = served_unit().with_served_by({"acme/vision"});
  EXPECT_EQ(narrow.key(), served_unit().key());
  EXPECT_NE(narrow, served_unit());
  // In one session, so that the result for one unit is cached when the other is requested.
  Session session = Session::open(options("reader", {{"bundles", both}})).value();
  const auto served = [&](const Unit& unit) {
    const auto artifact = session.artifact(unit, Target::sm(80));
    return artifact ? std::string(artifact->bytes.view()) : std::string();
  };
  EXPECT_EQ(served(served_unit()), "acme/toys 1");
  EXPECT_EQ(served(narrow), "acme/vision 1");
  EXPECT_EQ(served(served_unit().with_served_by({"acme/*"})), "acme/toys 1");
  EXPECT_EQ(served(served_unit().with_served_by({"globex"})), "");
  EXPECT_EQ(served(served_unit().with_served_by({"Acme/Toys"})), "");  // not a valid namespace: it matches nothing
  EXPECT_EQ(code("two", {{"bundles", both}, {"trust.namespaces", "acme/toys"}}, narrow), "");
}

TEST_F(HostileNamespaces, FetchedEntryOfAnotherNamespaceServesNoUnit) {
  // By key, through the remote store and its disk cache: an entry that was fetched for one unit must not serve another.
  const Unit wide = served_unit();
  const Unit narrow = wide.with_served_by({"acme/vision"});
  const SessionOptions from = options("reader", shared());
  Components tools(Config::load(from, log_.emitter()), log_.emitter());
  publish("attacker", as_live_host(), "attack");
  const Session session = Session::open(options("reader", shared())).value();
  ASSERT_TRUE(Session(session).external_cache("triton").get("blur"));
  EXPECT_EQ(read("reader", shared()), "attack");  // from the disk cache
  EXPECT_EQ(read("reader", shared({{"trust.namespaces", "acme/vision"}})), "");
  EXPECT_NE(tools.store_for(wide), tools.store_for(narrow));
  EXPECT_EQ(tools.store_for(narrow), tools.store_for(wide.with_served_by({"acme/vision"})));
}

TEST_F(HostileNamespaces, MisspelledNamespaceMatchesNothing) {
  const std::string toys = bundle(toys_, "acme/toys", 1);
  EXPECT_EQ(code("reader", {{"bundles", toys}, {"trust.namespaces", "Acme/Toys"}}), "");
  EXPECT_TRUE(was_reported(Event::Kind::ConfigWarning, "'Acme/Toys' is not a valid namespace"));
}

TEST_F(HostileNamespaces, OlderBundleIsRejectedWithoutMinimumEpoch) {
  const std::string fixed = bundle(vision_, "acme/vision", 7);
  const std::string faulty = bundle(vision_, "acme/vision", 5);
  EXPECT_EQ(code("reader", {{"bundles", fixed}}), "acme/vision 7");
  EXPECT_EQ(code("reader", {{"bundles", faulty}}), "");
  EXPECT_TRUE(was_reported(Event::Kind::BundleRejected, "epoch 5 of acme/vision is older than 7"));
}

TEST_F(HostileNamespaces, EpochMemoryCanBeDisabled) {
  const std::string newer = bundle(vision_, "acme/vision", 7);
  const std::string older = bundle(vision_, "acme/vision", 5);
  EXPECT_EQ(code("reader", {{"bundles", newer}}), "acme/vision 7");
  EXPECT_EQ(code("reader", {{"bundles", older}, {"trust.remember_epochs", "false"}}), "acme/vision 5");
  EXPECT_EQ(code("reader", {{"bundles", older}}), "");  // the epoch is still recorded
  std::filesystem::remove(directory_.path("cache-reader/v1/epochs"));
  EXPECT_EQ(code("reader", {{"bundles", older}}), "acme/vision 5");
}

TEST_F(HostileNamespaces, EpochIsRememberedOnlyIfSignatureIsValid) {
  const std::string older = bundle(vision_, "acme/vision", 5);
  EXPECT_EQ(code("reader", {{"bundles", bundle(toys_, "acme/vision", 9)}}),
            "");  // a key that is not allowed to sign for it
  EXPECT_EQ(code("reader", {{"bundles", older}}), "acme/vision 5");
}

TEST_F(HostileNamespaces, EpochFileWritableByAnotherUserIsNotTrusted) {
  const std::string older = bundle(vision_, "acme/vision", 5);
  const std::string file = directory_.path("cache-reader/v1/epochs");
  EXPECT_EQ(code("reader", {{"bundles", older}}), "acme/vision 5");
  write_text(file, encode_epochs({{"acme/vision", 99}}));
  std::filesystem::permissions(file, std::filesystem::perms(0666));
  EXPECT_EQ(code("reader", {{"bundles", older}}), "acme/vision 5");
  EXPECT_TRUE(was_reported(Event::Kind::CacheUnavailable, "another user owns the file or can write to it"));
  write_text(file, "damage");
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  EXPECT_EQ(code("reader", {{"bundles", older}}), "acme/vision 5");
  EXPECT_TRUE(was_reported(Event::Kind::CacheUnavailable, "the file is corrupt"));
}

TEST_F(HostileNamespaces, PolicyRejectsExternalEntries) {
  publish("release", as_release(), "launcher");
  const std::string mixed = bundle(vision_, "acme/vision", 1, true);
  EXPECT_EQ(read("one", shared()), "launcher");
  EXPECT_EQ(code("one", {{"bundles", mixed}}), "acme/vision 1");
  const std::string strict = directory_.path("strict.toml");
  write_text(strict, "foreign = false\n" + policy_text());
  EXPECT_EQ(read("two", shared({{"trust.policy", strict}})), "");
  EXPECT_TRUE(was_reported(Event::Kind::RemoteRejected, "code from another system"));
  EXPECT_EQ(code("two", {{"bundles", mixed}, {"trust.policy", strict}}), "");
  EXPECT_TRUE(was_reported(Event::Kind::BundleRejected, "code from another system"));
  EXPECT_EQ(code("two", {{"bundles", bundle(vision_, "acme/vision", 1)}, {"trust.policy", strict}}), "acme/vision 1");
}

TEST_F(HostileNamespaces, LogsAreNotPublished) {
  const std::string line = "blur.cu(3): const char* secret = ...";
  Artifact artifact;
  artifact.bytes = Bytes::copy_of("code");
  artifact.target = Target::sm(80);
  artifact.metadata = {"blur.cu", "nvrtc 99.1.2", 1, line};
  const auto published = [&](const std::string& who, const Settings& settings) {
    const SessionOptions from = options(who, settings);
    Components tools(Config::load(from, EventEmitter()), EventEmitter());
    EXPECT_TRUE(tools.params().store->put({sha256(who)}, artifact, {}).has_value());
    tools.finish();
    std::string all;
    for (const auto& file : std::filesystem::recursive_directory_iterator(directory_.path("objects"))) {
      if (file.is_regular_file()) all += read_text(file.path());
    }
    return all;
  };
  const std::string silent = published("release", as_release());
  EXPECT_NE(silent.find("nvrtc 99.1.2"), std::string::npos);
  EXPECT_EQ(silent.find("secret"), std::string::npos);
  Settings talkative = as_release();
  talkative["remote.publish_logs"] = "true";
  EXPECT_NE(published("talkative", talkative).find("secret"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test
