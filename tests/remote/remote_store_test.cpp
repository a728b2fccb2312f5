#include "remote/remote_store.hpp"
#include "remote/judgement.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "conformance/depot_conformance.hpp"
#include "conformance/store_conformance.hpp"
#include "remote/action_result.hpp"
#include "remote/directory_depot.hpp"
#include "store/allowance.hpp"
#include "support/event_log.hpp"
#include "support/manual_clock.hpp"
#include "support/remote_rig.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

using Shelf = Depot::Shelf;
using namespace std::chrono_literals;

class DirectoryDepotSetup final : public DepotSetup {
 public:
  std::unique_ptr<Depot> open() override { return std::make_unique<DirectoryDepot>(folder_.path()); }

 private:
  TemporaryDirectory folder_;
};

INSTANTIATE_TEST_SUITE_P(Directory, DepotConformance,
                         testing::Values(DepotHarness{"directory",
                                                      [] { return std::make_unique<DirectoryDepotSetup>(); }}),
                         [](const auto& instance) { return instance.param.name; });

class SharedFolderSetup final : public StoreSetup {
 public:
  explicit SharedFolderSetup(bool live) : live_(live) {}
  std::unique_ptr<Store> open() override {
    return std::make_unique<RemoteStore>(
        RemoteStore::Parts{.depot = std::make_shared<DirectoryDepot>(folder_.path()),
                           .policy = std::make_shared<const TrustPolicy>(trust_.policy()),
                           .signer = live_ ? trust_.live_signer() : trust_.ci_signer(),
                           .observer = {}});
  }
  bool persistent() const override { return true; }

 private:
  const bool live_;
  TemporaryDirectory folder_;
  TrustRig trust_;
};

StoreHarness shared_folder(std::string name, bool live) {
  return {.name = std::move(name),
          .make = [live] { return std::make_unique<SharedFolderSetup>(live); },
          .keeps_located_closures = false};
}

INSTANTIATE_TEST_SUITE_P(Remote, StoreConformance,
                         testing::Values(shared_folder("signed_by_ci", false), shared_folder("signed_live", true)),
                         [](const auto& instance) { return instance.param.name; });

class RemoteStoreTest : public testing::Test {
 protected:
  RemoteStore store(std::shared_ptr<const Signer> signer, TrustPolicy policy) {
    return RemoteStore({.depot = depot_,
                        .policy = std::make_shared<const TrustPolicy>(std::move(policy)),
                        .signer = std::move(signer),
                        .observer = log_.observer()});
  }
  RemoteStore ci() { return store(trust_.ci_signer(), trust_.policy()); }
  RemoteStore live() { return store(trust_.live_signer(), trust_.policy()); }
  RemoteStore reader() { return store(nullptr, trust_.policy()); }
  bool has(RemoteStore store, const Key& key) {
    const auto hit = store.get(key);
    return hit && hit->has_value();
  }
  static Closure naming(std::string name, Closure::State state = Closure::State::Read) {
    Closure closure;
    closure.items = {{.root = 0, .state = state, .name = std::move(name)}};
    return closure;
  }

  std::shared_ptr<MemoryDepot> depot_ = std::make_shared<MemoryDepot>();
  TrustRig trust_;
  EventLog log_;
  const Key key_ = key_number(1);
  const Artifact artifact_ = artifact_of(key_, 1'000);
};

TEST_F(RemoteStoreTest, WhoeverHasNoKeyReadsOnly) {
  RemoteStore store = reader();
  EXPECT_FALSE(store.writable());
  for (const Status& refused : {store.put(key_, artifact_), store.add_closure(request_number(1), closure_number(1))}) {
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::Refused);
  }
  ASSERT_TRUE(ci().put(key_, artifact_).ok());
  const auto hit = store.get(key_);
  ASSERT_TRUE(hit.ok() && hit->has_value());
  EXPECT_TRUE(same((*hit)->artifact, artifact_));
  EXPECT_EQ((*hit)->origin, Origin::Remote);
}

TEST_F(RemoteStoreTest, TheContentIsThereBeforeAnybodySaysThatItIs) {
  ASSERT_TRUE(ci().put(key_, artifact_).ok());
  const auto written = depot_->written();
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0].first, Shelf::Content);
  EXPECT_EQ(written[1], std::make_pair(Shelf::Action, key_.digest));
  EXPECT_EQ(written[0].second, sha256(depot_->body(Shelf::Content, written[0].second)));
}

TEST_F(RemoteStoreTest, AMissIsOneQuestionAndAHitIsTwo) {
  EXPECT_FALSE(has(reader(), key_));
  EXPECT_EQ(depot_->reads(Shelf::Action), 1);
  EXPECT_EQ(depot_->reads(Shelf::Content), 0);
  ASSERT_TRUE(ci().put(key_, artifact_).ok());
  EXPECT_TRUE(has(reader(), key_));
  EXPECT_EQ(depot_->reads(Shelf::Action), 2);
  EXPECT_EQ(depot_->reads(Shelf::Content), 1);
}

TEST_F(RemoteStoreTest, WhatWasRemovedIsAbsent) {
  ASSERT_TRUE(ci().put(key_, artifact_).ok());
  ASSERT_TRUE(ci().remove(key_).ok());
  EXPECT_FALSE(has(reader(), key_));
  EXPECT_EQ(log_.count(Event::Kind::RemoteRefused), 0u);
}

TEST_F(RemoteStoreTest, ALiveSignerLeavesWhatCiHasStated) {
  TrustPolicy ci_only;
  ci_only.trust(trust_.ci_key.public_key(), "acme");
  ASSERT_TRUE(ci().put(key_, artifact_).ok());
  ASSERT_TRUE(live().put(key_, artifact_of(key_, 1'000, 200)).ok());
  EXPECT_TRUE(has(store(nullptr, ci_only), key_));
  // One whose content is gone, or that nobody believes, is no use to anybody, and is written over.
  depot_->remove(Shelf::Content, depot_->written()[0].second, 1s).value();
  ASSERT_TRUE(live().put(key_, artifact_).ok());
  EXPECT_TRUE(has(reader(), key_));
  // And CI writes over what is live.
  ASSERT_TRUE(ci().put(key_, artifact_).ok());
  EXPECT_TRUE(has(store(nullptr, ci_only), key_));
}

TEST_F(RemoteStoreTest, PuttingMendsWhatWasRejected) {
  depot_->set(Shelf::Action, key_.digest, "damage");
  EXPECT_FALSE(has(reader(), key_));
  ASSERT_TRUE(live().put(key_, artifact_).ok());
  EXPECT_TRUE(has(reader(), key_));
  depot_->set(Shelf::Action, closures_place(request_number(1)), "damage");
  EXPECT_FALSE(reader().closures(request_number(1)).ok());
  ASSERT_TRUE(ci().add_closure(request_number(1), closure_number(1)).ok());
  EXPECT_EQ(reader().closures(request_number(1)).value().size(), 1u);
}

TEST_F(RemoteStoreTest, WhatTheDepotSaysOfItselfIsPassedOn) {
  ASSERT_TRUE(ci().put(key_, artifact_).ok());
  for (const Shelf broken : {Shelf::Action, Shelf::Content}) {
    for (const Code code : {Code::TimedOut, Code::Unavailable, Code::Refused}) {
      depot_->forge([=](Shelf shelf, const Digest&) -> std::optional<Result<std::optional<Bytes>>> {
        if (shelf != broken) return std::nullopt;
        return Result<std::optional<Bytes>>(failure(code, "trouble"));
      });
      const auto hit = reader().get(key_);
      ASSERT_FALSE(hit.ok());
      EXPECT_EQ(hit.error().code, code);
    }
  }
  const auto closures = [&] { return reader().closures(request_number(1)).ok(); };
  EXPECT_TRUE(closures());  // the last to be broken was the other shelf
  EXPECT_EQ(log_.count(Event::Kind::RemoteRefused), 0u);
}

// Takes some of the clock's time for each body, and keeps how much it was given.
class SlowDepot final : public Depot {
 public:
  SlowDepot(std::shared_ptr<Depot> inner, const ManualClock& clock, Time takes)
      : inner_(std::move(inner)), clock_(clock), takes_(takes) {}
  Result<std::optional<Bytes>> read(Shelf shelf, const Digest& name, std::uint64_t most, Time limit) override {
    limits.push_back(limit);
    clock_.sleep(takes_);
    return inner_->read(shelf, name, most, limit);
  }
  Status write(Shelf shelf, const Digest& name, std::initializer_list<std::string_view> parts, Time limit) override {
    return inner_->write(shelf, name, parts, limit);
  }
  Status remove(Shelf shelf, const Digest& name, Time limit) override { return inner_->remove(shelf, name, limit); }
  Result<std::vector<Listed>> list(Shelf shelf, Time limit) override { return inner_->list(shelf, limit); }
  Status probe(Time limit) override { return inner_->probe(limit); }
  std::string describe() const override { return "slow"; }

  std::vector<Time> limits;

 private:
  std::shared_ptr<Depot> inner_;
  const ManualClock& clock_;
  const Time takes_;
};

TEST_F(RemoteStoreTest, BothBodiesOfAHitHaveOneAllowance) {
  ASSERT_TRUE(ci().put(key_, artifact_).ok());
  const ManualClock clock;
  const auto slow = std::make_shared<SlowDepot>(depot_, clock, 60s);
  RemoteStore store({.depot = slow,
                     .policy = std::make_shared<const TrustPolicy>(trust_.policy()),
                     .signer = nullptr,
                     .observer = {},
                     .clock = &clock,
                     .read_limit = 1h});
  const Allowance allowance(100s);
  EXPECT_TRUE(store.get(key_).ok());
  ASSERT_EQ(slow->limits.size(), 2u);
  EXPECT_LE(slow->limits[0], 100s);
  EXPECT_LE(slow->limits[1], 40s);
}

TEST_F(RemoteStoreTest, OnlyClosuresBelowRootsAndTheWorkingFolderMayTravel) {
  EXPECT_TRUE(may_travel(Closure()));
  EXPECT_TRUE(may_travel(closure_number(1)));
  EXPECT_TRUE(may_travel(naming("folder/", Closure::State::Absent)));
  EXPECT_TRUE(may_travel(naming("./", Closure::State::Absent)));  // the whole root
  EXPECT_TRUE(may_travel(naming("a..b/..c/d..")));
  Closure in_working_folder = naming("header.h");
  in_working_folder.items[0].root = Closure::kWorkingDirectory;
  EXPECT_TRUE(may_travel(in_working_folder));

  Closure absolute = naming("etc/passwd");
  absolute.items[0].root = Closure::kAbsolute;
  EXPECT_FALSE(may_travel(absolute));
  for (const char* name :
       {"", "/", "/etc/passwd", "..", "../x", "a/../x", "a/..", ".", "./x", "a/./x", "a//x", "a/", "./"}) {
    EXPECT_FALSE(may_travel(naming(name))) << name;
  }
  EXPECT_FALSE(may_travel(naming(std::string("a\0b", 3))));
  EXPECT_FALSE(may_travel(naming("/", Closure::State::Absent)));
  EXPECT_FALSE(may_travel(naming("../", Closure::State::Absent)));
  Closure located = closure_number(1);
  located.located = true;
  EXPECT_FALSE(may_travel(located));
  Closure timed = closure_number(1);
  timed.timed = true;
  EXPECT_FALSE(may_travel(timed));
}

TEST_F(RemoteStoreTest, ClosuresThatMayNotTravelAreNotSent) {
  ASSERT_TRUE(ci().add_closure(request_number(1), naming("../outside.h")).ok());
  EXPECT_TRUE(depot_->written().empty());
  EXPECT_TRUE(reader().closures(request_number(1)).value().empty());
}

TEST_F(RemoteStoreTest, AClosureThatNamesAPipeADeviceOrAnEndlessFileCostsNothingButAMismatch) {
  const TemporaryDirectory root;
  ASSERT_EQ(mkfifo(root.path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", root.path("device"));
  std::ofstream(root.path("sparse")).close();
  std::filesystem::resize_file(root.path("sparse"), std::uintmax_t{1} << 40);
  Places places{root.path(), {}};
  places.roots.push_back({root.path()});
  FileDigests digests("");
  for (const char* name : {"pipe", "device", "sparse"}) {
    ASSERT_TRUE(ci().add_closure(request_number(1), naming(name)).ok());
    const auto hints = reader().closures(request_number(1), 1);
    ASSERT_TRUE(hints.ok());
    EXPECT_TRUE(check(hints->front(), places, digests).has_value()) << name;
  }
  EXPECT_EQ(digests.digested(), 0u);
}

TEST_F(RemoteStoreTest, TheOldestClosuresGoWhenTheyBecomeTooMuch) {
  const auto large = [](char number, std::size_t megabytes) { return naming(std::string(megabytes << 20, number)); };
  for (const char number : {'1', '2', '3', '4', '5', '6'}) {
    ASSERT_TRUE(ci().add_closure(request_number(1), large(number, 1)).ok());
  }
  const auto kept = reader().closures(request_number(1));
  ASSERT_TRUE(kept.ok());
  ASSERT_EQ(kept->size(), 3u);  // four and what is around them would be more than four megabytes
  EXPECT_EQ(kept->front(), large('6', 1));
  EXPECT_EQ(kept->back(), large('4', 1));
  // One that is too large by itself is not sent, and drives out no other.
  ASSERT_TRUE(ci().add_closure(request_number(1), large('7', 4)).ok());
  EXPECT_EQ(reader().closures(request_number(1), 1).value().front(), large('6', 1));
}

TEST_F(RemoteStoreTest, AClosureThatIsFirstAlreadyIsNotWrittenAgain) {
  ASSERT_TRUE(ci().add_closure(request_number(1), closure_number(1)).ok());
  ASSERT_TRUE(ci().add_closure(request_number(1), closure_number(1)).ok());
  EXPECT_EQ(depot_->written().size(), 1u);
}

}  // namespace
}  // namespace kiln::test
