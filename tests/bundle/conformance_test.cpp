#include "conformance/store_conformance.hpp"

#include <map>
#include <utility>

#include "support/bundles.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

/// A bundle that is written and opened anew after each put, so that the suite has something to put into.
class RewrittenBundle final : public Store {
 public:
  explicit RewrittenBundle(std::string path) : path_(std::move(path)) {
    if (std::filesystem::exists(path_)) members_ = opened()->members().value();
    rewrite();
  }

  Result<std::optional<Hit>> get(const Key& key) override { return bundle()->get(key); }
  Result<std::vector<Closure>> closures(const RequestKey& request, std::size_t limit) override {
    return bundle()->closures(request, limit);
  }
  Status put(const Key& key, const Artifact& artifact) override {
    BundleMember member;
    member.kind = "cuda";
    member.unit = {key.digest};
    member.request = {key.digest};
    member.key = key;
    member.artifact = artifact;
    member.artifact.closure.reset();  // the keys of the suite are made up: no closure gives them
    MutexLock lock(mutex_);
    members_.push_back(std::move(member));
    rewrite();
    return {};
  }
  Status add_closure(const RequestKey&, const Closure&) override { return {}; }
  std::string describe() const override { return "bundle"; }

 private:
  std::unique_ptr<Bundle> opened() const { return Bundle::open(open_bundle_file(path_).value(), nullptr).value(); }
  std::shared_ptr<Bundle> bundle() {
    MutexLock lock(mutex_);
    return bundle_;
  }
  void rewrite() KILN_REQUIRES(mutex_) {
    spit(path_ + ".new", image_of(members_).whole());
    std::filesystem::rename(path_ + ".new", path_);
    bundle_ = opened();
  }

  const std::string path_;
  Mutex mutex_;
  std::vector<BundleMember> members_ KILN_GUARDED_BY(mutex_);
  std::shared_ptr<Bundle> bundle_ KILN_GUARDED_BY(mutex_);
};

class BundleSetup final : public StoreSetup {
 public:
  std::unique_ptr<Store> open() override { return std::make_unique<RewrittenBundle>(directory_.path("a.kiln")); }
  bool persistent() const override { return true; }

 private:
  TemporaryDirectory directory_;
};

INSTANTIATE_TEST_SUITE_P(Bundles, StoreConformance,
                         testing::Values(StoreHarness{.name = "bundle",
                                                      .make = [] { return std::make_unique<BundleSetup>(); },
                                                      .keeps_closures = false,
                                                      .keeps_costs_and_logs = false}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace kiln::test
