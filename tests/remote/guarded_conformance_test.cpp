// SPDX-License-Identifier: Apache-2.0
// The store conformance tests for a guarded store.
#include "conformance/store_conformance.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "remote/guarded_store.hpp"
#include "support/fakes/memory_store.hpp"

namespace kiln::test {
namespace {

// A store that drains the background queue after each put, so that an entry can be read immediately.
class DrainedStore final : public Store {
 public:
  DrainedStore() {
    ServerGuard::Params guard;
    guard.name = "memory";
    guard.probe = [](const Deadline&) { return Status(); };
    guard.background_queue = background_queue_;
    auto inner = std::make_shared<MemoryStore>();
    store_ = std::make_unique<GuardedStore>(
        GuardedStore::Params{std::move(inner), ServerGuard::make(std::move(guard)), background_queue_, {}, {}});
  }
  Result<std::optional<Hit>> get(const ArtifactKey& key, const RequestContext& context) override {
    return store_->get(key, context);
  }
  Status put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& context) override {
    return behind(store_->put(key, artifact, context));
  }
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey& request, std::size_t limit,
                                                     const RequestContext& context) override {
    return store_->dependency_sets(request, limit, context);
  }
  Status add_dependency_set(const RequestKey& request, const DependencySet& dependency_set,
                            const RequestContext& context) override {
    return behind(store_->add_dependency_set(request, dependency_set, context));
  }
  std::string describe() const override { return store_->describe(); }

 private:
  Status behind(Status status) {
    EXPECT_TRUE(background_queue_->drain(std::chrono::seconds(20)));
    return status;
  }

  std::shared_ptr<BackgroundQueue> background_queue_ = std::make_shared<BackgroundQueue>();
  std::unique_ptr<GuardedStore> store_;
};

class DrainedSetup final : public StoreSetup {
 public:
  std::unique_ptr<Store> open() override { return std::make_unique<DrainedStore>(); }
  bool persistent() const override { return false; }
};

}  // namespace

INSTANTIATE_TEST_SUITE_P(Guarded, StoreConformance,
                         testing::Values(StoreHarness{"guarded", [] { return std::make_unique<DrainedSetup>(); }}));

}  // namespace kiln::test
