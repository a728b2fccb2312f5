// SPDX-License-Identifier: Apache-2.0
#include "remote/remote_store.hpp"
#include "remote/entry_verifier.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/hash.hpp"
#include "cache/entry_format.hpp"
#include "conformance/object_store_conformance.hpp"
#include "conformance/store_conformance.hpp"
#include "remote/action_result.hpp"
#include "remote/directory_object_store.hpp"
#include "support/fakes/manual_clock.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/remote_fixture.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

using Bucket = ObjectStore::Bucket;
using namespace std::chrono_literals;

class DirectoryObjectStoreSetup final : public ObjectStoreSetup {
 public:
  explicit DirectoryObjectStoreSetup(Resolution resolution) : resolution_(resolution) {}
  std::unique_ptr<ObjectStore> open() override {
    return std::make_unique<DirectoryObjectStore>(directory_.path(), resolution_);
  }

 private:
  const Resolution resolution_;
  TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(
    Directory, ObjectStoreConformance,
    testing::Values(ObjectStoreHarness{"directory",
                                       [] { return std::make_unique<DirectoryObjectStoreSetup>(Resolution::Kernel); }},
                    ObjectStoreHarness{"directory_walk",
                                       [] { return std::make_unique<DirectoryObjectStoreSetup>(Resolution::Walk); }}),
    [](const auto& instance) { return instance.param.name; });

class SharedDirectorySetup final : public StoreSetup {
 public:
  explicit SharedDirectorySetup(bool live) : live_(live) {}
  std::unique_ptr<Store> open() override {
    return std::make_unique<RemoteStore>(
        RemoteStore::Params{.object_store = std::make_shared<DirectoryObjectStore>(directory_.path()),
                            .policy = std::make_shared<const TrustPolicy>(trust_.policy()),
                            .signer = live_ ? trust_.live_signer() : trust_.ci_signer(),
                            .emitter = {},
                            .publish_logs = true});
  }
  bool persistent() const override { return true; }

 private:
  const bool live_;
  TemporaryDirectory directory_;
  TrustFixture trust_;
};

StoreHarness shared_directory(std::string name, bool live) {
  return {.name = std::move(name),
          .make = [live] { return std::make_unique<SharedDirectorySetup>(live); },
          .keeps_located_dependency_sets = false};
}

INSTANTIATE_TEST_SUITE_P(Remote, StoreConformance,
                         testing::Values(shared_directory("signed_by_ci", false),
                                         shared_directory("signed_live", true)),
                         [](const auto& instance) { return instance.param.name; });

class RemoteStoreTest : public testing::Test {
 protected:
  RemoteStore store(std::shared_ptr<const Signer> signer, TrustPolicy policy) {
    return RemoteStore({.object_store = object_store_,
                        .policy = std::make_shared<const TrustPolicy>(std::move(policy)),
                        .signer = std::move(signer),
                        .emitter = log_.emitter()});
  }
  RemoteStore ci() { return store(trust_.ci_signer(), trust_.policy()); }
  RemoteStore live() { return store(trust_.live_signer(), trust_.policy()); }
  RemoteStore reader() { return store(nullptr, trust_.policy()); }
  bool has(RemoteStore store, const ArtifactKey& key) {
    const auto hit = store.get(key, {});
    return hit && hit->has_value();
  }
  static DependencySet naming(std::string name, DependencySet::State state = DependencySet::State::Read) {
    DependencySet dependency_set;
    dependency_set.items = {{.root = 0, .state = state, .name = std::move(name)}};
    return dependency_set;
  }

  std::shared_ptr<MemoryObjectStore> object_store_ = std::make_shared<MemoryObjectStore>();
  TrustFixture trust_;
  EventLog log_;
  const ArtifactKey key_ = key_number(1);
  const Artifact artifact_ = artifact_of(key_, 1'000);
};

TEST_F(RemoteStoreTest, HostWithoutKeyOnlyReads) {
  RemoteStore store = reader();
  EXPECT_FALSE(store.is_writable());
  for (const Status& rejected :
       {store.put(key_, artifact_, {}), store.add_dependency_set(request_number(1), dependency_set_number(1), {})}) {
    ASSERT_FALSE(rejected.has_value());
    EXPECT_EQ(rejected.error().code, Code::Denied);
  }
  ASSERT_TRUE(ci().put(key_, artifact_, {}).has_value());
  const auto hit = store.get(key_, {});
  ASSERT_TRUE(hit.has_value() && hit->has_value());
  Artifact published = artifact_;
  published.metadata.log.clear();
  EXPECT_TRUE(same((*hit)->artifact, published));
  EXPECT_EQ((*hit)->origin, Origin::Remote);
}

TEST_F(RemoteStoreTest, ContentIsWrittenBeforeStatement) {
  ASSERT_TRUE(ci().put(key_, artifact_, {}).has_value());
  const auto written = object_store_->written();
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0].first, Bucket::Cas);
  EXPECT_EQ(written[1], std::make_pair(Bucket::ActionCache, action_name("acme", key_)));
  EXPECT_EQ(written[0].second, sha256(object_store_->body(Bucket::Cas, written[0].second)));
}

TEST_F(RemoteStoreTest, MissAndSmallHitTakeOneRequestAndLargeHitTakesTwo) {
  TrustPolicy ci_only;
  ci_only.add_key(trust_.ci_key.public_key(), "acme");
  EXPECT_FALSE(has(store(nullptr, ci_only), key_));
  EXPECT_EQ(object_store_->reads(Bucket::ActionCache), 1);
  EXPECT_EQ(object_store_->reads(Bucket::Cas), 0);
  ASSERT_TRUE(ci().put(key_, artifact_, {}).has_value());
  EXPECT_TRUE(has(store(nullptr, ci_only), key_));
  EXPECT_EQ(object_store_->reads(Bucket::ActionCache), 2);
  EXPECT_EQ(object_store_->reads(Bucket::Cas), 0);
  const ArtifactKey large = key_number(2);
  ASSERT_TRUE(ci().put(large, artifact_of(large, 100'000), {}).has_value());
  EXPECT_TRUE(has(store(nullptr, ci_only), large));
  EXPECT_EQ(object_store_->reads(Bucket::ActionCache), 3);
  EXPECT_EQ(object_store_->reads(Bucket::Cas), 1);
}

TEST_F(RemoteStoreTest, EachNamespaceCostsOneRequest) {
  EXPECT_FALSE(has(reader(), key_));
  EXPECT_EQ(object_store_->reads(Bucket::ActionCache), 2);  // one for the release and one for the live namespace
  ASSERT_TRUE(ci().put(key_, artifact_, {}).has_value());
  EXPECT_TRUE(has(reader(), key_));
  EXPECT_EQ(object_store_->reads(Bucket::ActionCache), 3);  // the release is looked up first and found
}

TEST_F(RemoteStoreTest, CorruptReleaseEntryIsNotReplacedByLiveEntry) {
  ASSERT_TRUE(live().put(key_, artifact_, {}).has_value());
  EXPECT_TRUE(has(reader(), key_));
  object_store_->set(Bucket::ActionCache, action_name("acme", key_), "damage");
  EXPECT_FALSE(has(reader(), key_));
  // The same holds for an action of the live namespace under the release's name.
  object_store_->set(Bucket::ActionCache, action_name("acme", key_),
                     object_store_->body(Bucket::ActionCache, action_name("acme/live", key_)));
  EXPECT_FALSE(has(reader(), key_));
  EXPECT_EQ(log_.of(Event::Kind::RemoteRejected).back().selected, "wrong_namespace");
}

TEST_F(RemoteStoreTest, QueriesReleasesFirstAndAtMostFourNamespaces) {
  const TrustPolicy policy = trust_.policy();
  const std::vector<std::string> both = {"acme", "acme/live"};
  EXPECT_EQ(remote_namespaces(policy, {}, {}), both);
  EXPECT_EQ(remote_namespaces(policy, {"acme/live", "globex"}, {}), both);  // no key is allowed to sign for globex
  const std::vector<std::string> named = {"acme/vision", "acme", "acme/live"};
  EXPECT_EQ(remote_namespaces(policy, {}, NamespaceScope().narrowed({"acme/live", "acme/vision", "acme"})), named);
  EXPECT_EQ(remote_namespaces(policy, {}, NamespaceScope().narrowed({"acme/*"})),
            std::vector<std::string>{"acme/live"});
  std::vector<std::string> left_out;
  const auto maximum = remote_namespaces(policy, {"acme/a", "acme/b", "acme/c"}, {}, &left_out);
  EXPECT_EQ(maximum, (std::vector<std::string>{"acme/a", "acme/b", "acme/c", "acme"}));
  EXPECT_EQ(left_out, std::vector<std::string>{"acme/live"});
}

TEST_F(RemoteStoreTest, ExternalEntryIsMarkedAndPolicyCanRejectIt) {
  Artifact launcher = artifact_;
  launcher.target = Target::external("triton");
  ASSERT_TRUE(ci().put(key_, launcher, {}).has_value());
  EXPECT_TRUE(has(reader(), key_));
  TrustPolicy own_code_only = trust_.policy();
  own_code_only.reject_external();
  const int before = object_store_->reads(Bucket::Cas);
  EXPECT_FALSE(has(store(nullptr, own_code_only), key_));
  EXPECT_EQ(log_.of(Event::Kind::RemoteRejected).back().selected, "foreign_code");
  EXPECT_EQ(object_store_->reads(Bucket::Cas), before);  // rejected before any content is fetched
}

TEST_F(RemoteStoreTest, ExternalEntryIsNotAcceptedAsKilnEntry) {
  Artifact launcher = artifact_;
  launcher.target = Target::external("triton");
  const std::string entry = encode_entry_header(key_, launcher) + std::string(launcher.bytes.view());
  object_store_->set(Bucket::Cas, sha256(entry), entry);
  for (const bool external : {false, true}) {
    const auto stated = trust_.ci_signer()->sign(entry_subject(key_, external), sha256(entry), {});
    const ActionResult action{{{EntryPath{key_, false}.text(), sha256(entry), entry.size()}}, stated.encode()};
    object_store_->set(Bucket::ActionCache, action_name("acme", key_), action.encode());
    EXPECT_FALSE(has(reader(), key_));
    EXPECT_EQ(log_.of(Event::Kind::RemoteRejected).back().selected, external ? "bad_signature" : "entry_malformed");
  }
}

TEST_F(RemoteStoreTest, RemovedEntryIsMiss) {
  ASSERT_TRUE(ci().put(key_, artifact_, {}).has_value());
  ASSERT_TRUE(ci().remove(key_).has_value());
  EXPECT_FALSE(has(reader(), key_));
  EXPECT_EQ(log_.count(Event::Kind::RemoteRejected), 0u);
}

TEST_F(RemoteStoreTest, LiveSignerKeepsCiEntry) {
  TrustPolicy ci_only;
  ci_only.add_key(trust_.ci_key.public_key(), "acme");
  ASSERT_TRUE(ci().put(key_, artifact_, {}).has_value());
  ASSERT_TRUE(live().put(key_, artifact_of(key_, 1'000, 200), {}).has_value());
  EXPECT_TRUE(has(store(nullptr, ci_only), key_));
  // An entry whose content is missing or that no reader trusts is useless and is overwritten.
  object_store_->remove(Bucket::Cas, object_store_->written()[0].second, 1s).value();
  ASSERT_TRUE(live().put(key_, artifact_, {}).has_value());
  EXPECT_TRUE(has(reader(), key_));
  // CI overwrites a live entry.
  ASSERT_TRUE(ci().put(key_, artifact_, {}).has_value());
  EXPECT_TRUE(has(store(nullptr, ci_only), key_));
}

TEST_F(RemoteStoreTest, PutReplacesRejectedEntry) {
  object_store_->set(Bucket::ActionCache, action_name("acme", key_), "damage");
  EXPECT_FALSE(has(reader(), key_));
  ASSERT_TRUE(ci().put(key_, artifact_, {}).has_value());
  EXPECT_TRUE(has(reader(), key_));
  object_store_->set(Bucket::ActionCache, hints_digest(request_number(1)), "damage");
  EXPECT_FALSE(reader().dependency_sets(request_number(1), Store::kMaxDependencySets, {}).has_value());
  ASSERT_TRUE(ci().add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
  EXPECT_EQ(reader().dependency_sets(request_number(1), Store::kMaxDependencySets, {}).value().size(), 1u);
}

TEST_F(RemoteStoreTest, ObjectStoreErrorsArePassedOn) {
  ASSERT_TRUE(ci().put(key_, artifact_of(key_, 100'000), {}).has_value());
  for (const Bucket broken : {Bucket::ActionCache, Bucket::Cas}) {
    for (const Code code : {Code::TimedOut, Code::Unavailable, Code::Denied}) {
      object_store_->forge([=](Bucket bucket, const Digest&) -> std::optional<Result<std::optional<Bytes>>> {
        if (bucket != broken) return std::nullopt;
        return Result<std::optional<Bytes>>(make_error(code, "trouble"));
      });
      const auto hit = reader().get(key_, {});
      ASSERT_FALSE(hit.has_value());
      EXPECT_EQ(hit.error().code, code);
    }
  }
  const auto dependency_sets = [&] {
    return reader().dependency_sets(request_number(1), Store::kMaxDependencySets, {}).has_value();
  };
  EXPECT_TRUE(dependency_sets());  // the last failure was in the other bucket
  EXPECT_EQ(log_.count(Event::Kind::RemoteRejected), 0u);
}

// An object store that takes some of the clock's time for each object and records the timeouts that it gets.
class SlowObjectStore final : public ObjectStore {
 public:
  SlowObjectStore(std::shared_ptr<ObjectStore> inner, const ManualClock& clock, Time takes)
      : inner_(std::move(inner)), clock_(clock), takes_(takes) {}
  Result<std::optional<Bytes>> read(Bucket bucket, const Digest& name, std::uint64_t maximum,
                                    const Deadline& deadline) override {
    limits.push_back(deadline.remaining());
    clock_.sleep(takes_);
    return inner_->read(bucket, name, maximum, deadline);
  }
  Status write(Bucket bucket, const Digest& name, std::initializer_list<std::string_view> parts,
               const Deadline& deadline) override {
    return inner_->write(bucket, name, parts, deadline);
  }
  Status remove(Bucket bucket, const Digest& name, const Deadline& deadline) override {
    return inner_->remove(bucket, name, deadline);
  }
  Result<std::vector<ObjectInfo>> list(Bucket bucket, const Deadline& deadline) override {
    return inner_->list(bucket, deadline);
  }
  Status probe(const Deadline& deadline) override { return inner_->probe(deadline); }
  std::string describe() const override { return "slow"; }

  std::vector<Time> limits;

 private:
  std::shared_ptr<ObjectStore> inner_;
  const ManualClock& clock_;
  const Time takes_;
};

TEST_F(RemoteStoreTest, BothReadsOfHitShareOneBudget) {
  ASSERT_TRUE(ci().put(key_, artifact_of(key_, 100'000), {}).has_value());
  const ManualClock clock;
  const auto slow = std::make_shared<SlowObjectStore>(object_store_, clock, 60s);
  RemoteStore store({.object_store = slow,
                     .policy = std::make_shared<const TrustPolicy>(trust_.policy()),
                     .signer = nullptr,
                     .emitter = {},
                     .clock = &clock,
                     .read_limit = 1h});
  ServerTimeBudget budget(100s);
  EXPECT_TRUE(store.get(key_, {.server_budget = &budget}).has_value());
  ASSERT_EQ(slow->limits.size(), 2u);
  EXPECT_LE(slow->limits[0], 100s);
  EXPECT_LE(slow->limits[1], 40s);
}

TEST_F(RemoteStoreTest, OnlyPathsBelowRootsAndWorkingDirectoryArePortable) {
  EXPECT_TRUE(is_portable(DependencySet()));
  EXPECT_TRUE(is_portable(dependency_set_number(1)));
  EXPECT_TRUE(is_portable(naming("folder/", DependencySet::State::Absent)));
  EXPECT_TRUE(is_portable(naming("./", DependencySet::State::Absent)));  // the root itself
  EXPECT_TRUE(is_portable(naming("a..b/..c/d..")));
  DependencySet in_working_directory = naming("header.h");
  in_working_directory.items[0].root = DependencySet::kWorkingDirectory;
  EXPECT_TRUE(is_portable(in_working_directory));

  DependencySet absolute = naming("etc/passwd");
  absolute.items[0].root = DependencySet::kAbsolute;
  EXPECT_FALSE(is_portable(absolute));
  for (const char* name :
       {"", "/", "/etc/passwd", "..", "../x", "a/../x", "a/..", ".", "./x", "a/./x", "a//x", "a/", "./"}) {
    EXPECT_FALSE(is_portable(naming(name))) << name;
  }
  EXPECT_FALSE(is_portable(naming(std::string("a\0b", 3))));
  EXPECT_FALSE(is_portable(naming("/", DependencySet::State::Absent)));
  EXPECT_FALSE(is_portable(naming("../", DependencySet::State::Absent)));
  DependencySet located = dependency_set_number(1);
  located.embeds_paths = true;
  EXPECT_FALSE(is_portable(located));
  DependencySet timed = dependency_set_number(1);
  timed.embeds_mtimes = true;
  EXPECT_FALSE(is_portable(timed));
}

TEST_F(RemoteStoreTest, NonPortableDependencySetsAreNotSent) {
  ASSERT_TRUE(ci().add_dependency_set(request_number(1), naming("../outside.h"), {}).has_value());
  EXPECT_TRUE(object_store_->written().empty());
  EXPECT_TRUE(reader().dependency_sets(request_number(1), Store::kMaxDependencySets, {}).value().empty());
}

TEST_F(RemoteStoreTest, SpecialFileInDependencySetIsMismatch) {
  const TemporaryDirectory root;
  ASSERT_EQ(mkfifo(root.path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", root.path("device"));
  std::ofstream(root.path("sparse")).close();
  std::filesystem::resize_file(root.path("sparse"), std::uintmax_t{1} << 40);
  PathRoots places{root.path(), {}};
  places.roots.push_back({root.path()});
  FileDigestCache digests("");
  for (const char* name : {"pipe", "device", "sparse"}) {
    ASSERT_TRUE(ci().add_dependency_set(request_number(1), naming(name), {}).has_value());
    const auto hints = reader().dependency_sets(request_number(1), 1, {});
    ASSERT_TRUE(hints.has_value());
    EXPECT_TRUE(check(hints->front(), places, digests).has_value()) << name;
  }
  EXPECT_EQ(digests.computed_count(), 0u);
}

TEST_F(RemoteStoreTest, OldestDependencySetsAreDroppedAtLimit) {
  const auto large = [](char number, std::size_t megabytes) { return naming(std::string(megabytes << 20, number)); };
  for (const char number : {'1', '2', '3', '4', '5', '6'}) {
    ASSERT_TRUE(ci().add_dependency_set(request_number(1), large(number, 1), {}).has_value());
  }
  const auto kept = reader().dependency_sets(request_number(1), Store::kMaxDependencySets, {});
  ASSERT_TRUE(kept.has_value());
  ASSERT_EQ(kept->size(), 3u);  // four with their headers would exceed 4 MiB
  EXPECT_EQ(kept->front(), large('6', 1));
  EXPECT_EQ(kept->back(), large('4', 1));
  // A dependency set that is too large by itself is not sent and evicts no other.
  ASSERT_TRUE(ci().add_dependency_set(request_number(1), large('7', 4), {}).has_value());
  EXPECT_EQ(reader().dependency_sets(request_number(1), 1, {}).value().front(), large('6', 1));
}

TEST_F(RemoteStoreTest, NewestDependencySetIsNotWrittenAgain) {
  ASSERT_TRUE(ci().add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
  ASSERT_TRUE(ci().add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
  EXPECT_EQ(object_store_->written().size(), 1u);
}

}  // namespace
}  // namespace kiln::test
