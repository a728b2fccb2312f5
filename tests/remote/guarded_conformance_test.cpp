// What every store promises, of a guarded one.
#include "conformance/store_conformance.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "remote/guarded_store.hpp"
#include "support/memory_store.hpp"

namespace kiln::test {
namespace {

// Whoever puts finds it at once: the courier is drained behind each put.
class DrainedStore final : public Store {
 public:
  DrainedStore() {
    ServerGuard::Parts guard;
    guard.name = "memory";
    guard.probe = [](std::chrono::nanoseconds) { return Status(); };
    guard.courier = courier_;
    auto inner = std::make_shared<MemoryStore>();
    store_ = std::make_unique<GuardedStore>(
        GuardedStore::Parts{std::move(inner), ServerGuard::make(std::move(guard)), courier_, {}, {}});
  }
  Result<std::optional<Hit>> get(const Key& key) override { return store_->get(key); }
  Status put(const Key& key, const Artifact& artifact) override { return behind(store_->put(key, artifact)); }
  Result<std::vector<Closure>> closures(const RequestKey& request, std::size_t limit) override {
    return store_->closures(request, limit);
  }
  Status add_closure(const RequestKey& request, const Closure& closure) override {
    return behind(store_->add_closure(request, closure));
  }
  std::string describe() const override { return store_->describe(); }

 private:
  Status behind(Status status) {
    EXPECT_TRUE(courier_->drain(std::chrono::seconds(20)));
    return status;
  }

  std::shared_ptr<Courier> courier_ = std::make_shared<Courier>();
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
