// SPDX-License-Identifier: Apache-2.0
#include "conformance/store_conformance.hpp"

#include "cache/disk_store.hpp"
#include "cache/tiered_store.hpp"
#include "support/fakes/memory_store.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

class MemorySetup final : public StoreSetup {
 public:
  std::unique_ptr<Store> open() override { return std::make_unique<MemoryStore>(); }
  bool persistent() const override { return false; }
};

class DiskSetup final : public StoreSetup {
 public:
  std::unique_ptr<Store> open() override { return DiskStore::open({.root = directory_.path("cache")}).value(); }
  bool persistent() const override { return true; }

 private:
  TemporaryDirectory directory_;
};

class TieredSetup final : public StoreSetup {
 public:
  std::unique_ptr<Store> open() override {
    using Distance = TieredStore::Distance;
    std::shared_ptr<Store> disk = DiskStore::open({.root = directory_.path("cache")}).value();
    std::shared_ptr<Store> image = DiskStore::open({.root = directory_.path("image"), .read_only = true}).value();
    return std::make_unique<TieredStore>(
        std::vector<TieredStore::Tier>{{std::make_shared<MemoryStore>(), Distance::Memory},
                                       {std::move(disk), Distance::Disk},
                                       {std::move(image), Distance::Disk}});
  }
  bool persistent() const override { return true; }

 private:
  TemporaryDirectory directory_;
};

template <class Setup>
StoreHarness harness(std::string name) {
  return {std::move(name), [] { return std::make_unique<Setup>(); }};
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreConformance,
                         testing::Values(harness<MemorySetup>("memory"), harness<DiskSetup>("disk"),
                                         harness<TieredSetup>("tiered")),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace kiln::test
